"""The figures around a chat: title, progress of the answer, use of the context, contents of the cache."""

import time
from collections.abc import Mapping
from typing import Any

from textual.content import Content
from textual.widget import Widget

from localrun_tui.screens.chat.chat_path import ChatPath
from localrun_tui.screens.chat.inspector import Inspector
from localrun_tui.screens.chat.live_phases import phases_of
from localrun_tui.screens.chat.message_view import MessageView
from localrun_tui.screens.chat.status_line import StatusLine, context_parts, live_parts, stats_parts, waiting_parts
from localrun_tui.screens.chat.top_bar import TopBar
from localrun_tui.state.session import Session


class Figures:
    """Keeps the first line, the last one and the inspector in line with the session."""

    def __init__(
        self, session: Session, path: ChatPath, top_bar: TopBar, status_line: StatusLine, inspector: Inspector
    ) -> None:
        self._session = session
        self._path = path
        self._top_bar = top_bar
        self._status_line = status_line
        self._inspector = inspector

    def show(self, focused: Widget | None) -> None:
        """Show the figures of the message that has the focus, else of the answer under way, else of the last one."""
        session, path = self._session, self._path
        chosen = _stats(focused)
        stats = chosen or path.last_stats()
        live = session.under_way_here
        left = live_parts(live) if live else stats_parts(stats)
        if live is None and session.answering:
            left = [Content.styled("● answering in another chat", "$text-warning")]
        elif live is None and session.asking:
            left = [Content.styled("● sending", "$text-warning")]
        waiting = waiting_parts(len(session.waiting), session.waiting.held)
        is_kept = not (session.disk.notice or session.problem)
        self._top_bar.show_title(session.chat.title if session.chat else "", is_kept)
        self._status_line.show(waiting + left, context_parts(path.tokens(live), session.info))
        if self._inspector.display:  # opening it shows figures anew
            figures = phases_of(live, time.monotonic()) if live is not None and not chosen else stats
            self._inspector.show(figures, session.rates, session.info, session.answered_last)

    async def look(self) -> None:
        """Fetch the contents of the cache from the engine, which may take a moment."""
        self._inspector.show_view(await self._session.model.view())


def _stats(focused: Widget | None) -> Mapping[str, Any]:
    message = focused.message if isinstance(focused, MessageView) else None
    return message.stats if message else {}
