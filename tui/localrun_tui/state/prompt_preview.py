"""Preview of the prompt before it is sent: exact where the engine counts, else a marked estimate."""

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from localrun.base.content import Content, text_of
from localrun.base.dataclass import dataclass
from localrun.base.errors import LocalrunError
from localrun.base.request import Request
from localrun.base.views import ImageView, PromptView
from localrun.chat.token_estimate import about_tokens
from localrun.chat.turn import ids_before, preview_request
from localrun_tui.state.session import Session

if TYPE_CHECKING:
    from localrun.chat.images import ImageShelf
    from localrun.chat.journal import Chat


@dataclass(frozen=True, slots=True)
class DraftSize:
    """Tokens of a message that was not sent yet, and of all that the model would read; `ctx` 0 where unknown."""

    draft: int
    total: int
    ctx: int
    is_exact: bool
    images: tuple[ImageView, ...] | None = None  # what images of the prompt cost; None: not known now

    def __str__(self) -> str:
        """The size in words for the user."""
        about = "" if self.is_exact else "≈"
        words = f"{about}{self.draft:,} token{'' if self.draft == 1 else 's'}"
        left = self.ctx - self.total
        if not self.ctx:
            return words
        return f"{words} · {about}{left:,} left" if left > 0 else f"{words} · ⚠ {about}{1 - left:,} too many"


async def preview(
    session: Session, content: Content, pieces: bool = False, instead_of: str | None = None
) -> PromptView | None:
    """How the chat would be read if `content` was sent now, perhaps in the place of a message; None where unknown, or
    where it could not be answered."""
    client = session.model.client
    if client is None or session.answering:
        return None
    try:
        images = await session.images()
        sees = not client.info.why_blind
        request = await session.disk.run(_request, session.chat, content, instead_of, images, sees)
        request = replace(request, tools=session.tools.for_model)
        return await asyncio.to_thread(client.preview, request, pieces) if request.messages else None
    except LocalrunError:  # a server that is gone, a template that refuses: sending it will say so
        return None


async def size_of_draft(session: Session, content: Content, held: int, instead_of: str | None = None) -> DraftSize:
    """The size of a message, perhaps in the place of another one; `held` tokens are taken by the chat before it, as the
    engine counted them."""
    ctx = session.info.ctx if session.info else 0
    found = await preview(session, content, instead_of=instead_of)
    if found is None:
        about = about_tokens(text_of(content))
        return DraftSize(about, held + about, ctx, is_exact=False)
    known = len(ids_before(session.chat, instead_of)) if session.chat else 0
    if session.info is not None and session.info.engine == "remote":  # whose ids we have not
        known = held
    return DraftSize(max(found.n_tokens - known, 0), found.n_tokens, ctx, is_exact=True, images=found.images)


def _request(
    chat: "Chat | None", content: Content, instead_of: str | None, images: "ImageShelf", sees: bool
) -> Request:
    from localrun.base.settings import read_settings
    from localrun.chat.journal import ChatStore
    from localrun_tui.state.answers import turn_options

    chat = chat or ChatStore(None, images).create(system=read_settings().system or "")
    return preview_request(chat, content, turn_options(chat), instead_of, sees)
