"""Token count of the draft, below the composer."""

import asyncio

from localrun.chat.sight import blind_words
from localrun_tui.screens.chat.chat_path import ChatPath
from localrun_tui.screens.chat.composer import WAITING, Composer
from localrun_tui.state.prompt_preview import size_of_draft
from localrun_tui.state.session import Session

_AT_REST = 0.3  # seconds without a key before a draft is counted: a long chat takes a while to render


class DraftCount:
    """Exact where the engine counts; else an estimate."""

    def __init__(self, session: Session, path: ChatPath, composer: Composer) -> None:
        self._session = session
        self._path = path
        self._composer = composer

    async def count(self) -> None:
        """Count after a pause in typing; show nothing where the message has changed by then."""
        content = self._composer.message
        if content:
            await asyncio.sleep(_AT_REST)
        edited = self._composer.edited if self._composer.edited != WAITING else None
        tokens = self._path.tokens_before(edited) if edited else self._path.tokens(self._session.under_way_here)
        size = await size_of_draft(self._session, content, tokens, edited) if content else None
        if self._composer.message == content:
            self._composer.border_subtitle = "" if size is None else str(size)
            if size is not None and size.images is not None:
                self._composer.attached.show_costs(size.images, blind_words(self._session.info))
