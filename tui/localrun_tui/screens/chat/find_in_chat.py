"""Find words in the open chat, and scroll to the messages that have them."""

from typing import TYPE_CHECKING

from textual.content import Content

from localrun_tui.screens.chat.find_bar import FindBar
from localrun_tui.screens.chat.history_groups import with_hits

if TYPE_CHECKING:
    from localrun_tui.screens.chat.chat_path import ChatPath
    from localrun_tui.screens.chat.message_view import MessageView
    from localrun_tui.screens.chat.transcript import Transcript
    from localrun_tui.state.session import Session

_ABOVE = 2  # lines that stay in sight above what was found


class FindInChat:
    """Search of the shown branch."""

    def __init__(self, session: "Session", path: "ChatPath", transcript: "Transcript", bar: FindBar) -> None:
        self._session = session
        self._path = path
        self._transcript = transcript
        self._bar = bar
        self._found: list[str] = []
        self._at = 0
        self._words: list[str] = []

    async def look(self, words: str) -> None:
        """Mark the words, and begin with the last message that has them."""
        from localrun.chat.search import places

        chat = self._session.chat
        self._found = places(chat.tree.path(chat.tree.head), words) if chat else []
        self._words, self._at = words.split(), len(self._found) - 1
        await self._show()

    async def go(self, step: int) -> None:
        """Go to the next or previous one, round and round."""
        if self._found:
            self._at = (self._at + step) % len(self._found)
            await self._show()

    async def leave(self) -> None:
        await self.look("")
        self._transcript.anchor()

    async def _show(self) -> None:
        self._bar.tell(self._at + 1, len(self._found))
        wanted = self._found[self._at] if self._found else None
        if wanted is not None and self._view(wanted) is None:
            await self._path.show(rebuild=True, at=wanted)
            self._bar.box.focus()
        for view in self._transcript.views:
            self._mark(view, self._words if view.message and view.message.id in self._found else [])
        if wanted is not None and (view_there := self._view(wanted)):
            self._transcript.call_after_refresh(self._bring_in_sight, view_there)

    def _mark(self, view: "MessageView", words: list[str]) -> None:
        if view.document.marked != words:
            view.document.marked = words
            view.changed()

    def _bring_in_sight(self, view: "MessageView") -> None:
        lines = view.lines(view.size.width)
        first = next((y for y, line in enumerate(lines) if y and with_hits(Content(line.plain), self._words).spans), 0)
        self._transcript.anchor(False)
        self._transcript.scroll_to(y=view.virtual_region.y + first - _ABOVE, animate=False)

    def _view(self, message_id: str) -> "MessageView | None":
        views = self._transcript.views
        return next((view for view in views if view.message and view.message.id == message_id), None)
