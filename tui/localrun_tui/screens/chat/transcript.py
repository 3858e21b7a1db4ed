"""Transcript of a chat, from the latest message upwards. Only the last are widgets; earlier ones come on demand."""

from collections.abc import Callable, Sequence

from textual import on
from textual.containers import VerticalScroll
from textual.content import Content
from textual.geometry import Size
from textual.message import Message as TextualMessage
from textual.reactive import Reactive
from textual.widget import Widget
from textual.widgets import Static

from localrun_tui.screens.chat.message_view import MessageView

_AT_ONCE = 24  # messages that are mounted together


class Horizon(Static):
    """The line above which messages are outside the context."""

    def __init__(self, n_above: int) -> None:
        messages = "message" if n_above == 1 else "messages"
        super().__init__(f"▲ the model no longer sees what is above ({n_above} {messages})", markup=False)


class NewText(Static):
    """Below the messages while their end is out of sight and there is more of it."""

    def __init__(self) -> None:
        super().__init__("↓ new text  (Ctrl+End goes there)", id="new-text", markup=False)


class Transcript(VerticalScroll, can_focus=False):
    """Shows a branch of the chat; stays at its end until the user scrolls up."""

    virtual_size: Reactive[Size] = Reactive(Size(0, 0), repaint=False)  # Textual's own lays all out again

    class WantsEarlier(TextualMessage):
        """The user is at the top, and there may be more above it."""

    class AtEnd(TextualMessage):
        """The end of the chat is in sight."""

    class LeaveDown(TextualMessage):
        """The user wants to go to what is below the last message."""

    def __init__(self) -> None:
        super().__init__(id="transcript")
        self._make: Sequence[Callable[[], MessageView]] = ()
        self._first = 0  # the first of `_make` that is mounted
        self._horizon: int | None = None
        self._edited: str | None = None  # the message that is marked

    def on_mount(self) -> None:
        self.anchor()

    @property
    def is_at_end(self) -> bool:
        """Whether the end is in sight, or will be as soon as what has just come is laid out."""
        follows = self.is_anchored and not self._anchor_released
        return follows or self.max_scroll_y - self.scroll_y < 1

    @property
    def views(self) -> list[MessageView]:
        return list(self.query_children(MessageView))

    def mark(self, message_id: str | None) -> None:
        """Show which message is being edited; None for none."""
        if message_id != self._edited:
            self._edited = message_id
            for view in self.views:
                view.set_class(view.message is not None and view.message.id == message_id, "edited")

    @on(MessageView.Go)
    def go(self, event: MessageView.Go) -> None:
        """Give another message the focus, unless the one it is to be counted from is gone."""
        event.stop()
        views = self.views
        if event.view not in views:
            return
        index = views.index(event.view) + event.step
        if index >= len(views):
            self.post_message(self.LeaveDown())
        elif index >= 0:
            self.screen.set_focus(views[index])
        else:
            self.post_message(self.WantsEarlier())

    async def show(
        self,
        make: Sequence[Callable[[], MessageView]],
        horizon: int | None,
        empty: Widget,
        at: int | None = None,
        go_there: bool = False,
    ) -> None:
        """Show these messages, or `empty` when there are none; above number `horizon` the model sees nothing. What is
        in sight is the end, or message number `at`, which has the focus if one of the messages had it, or with
        `go_there`; the focus of the editor stays where it is."""
        go_there = go_there or isinstance(self.screen.focused, MessageView)
        self._make, self._horizon = make, horizon
        self._first = max(min(len(make) - _AT_ONCE, len(make) if at is None else at), 0)
        widgets = self._widgets(self._first, len(make)) or [empty]
        with self.app.batch_update():
            await self.remove_children()
            await self.mount_all([*self._earlier(), *widgets])
        self.anchor()
        if at is not None:
            view = self.views[at - self._first]
            if go_there:
                self.screen.set_focus(view, scroll_visible=False)
            self.call_after_refresh(self._bring_in_sight, view)

    def _bring_in_sight(self, view: MessageView) -> None:
        """Scroll up to where a message begins, and stay there until there is another one."""
        if not view.is_attached:
            return
        if not view.virtual_region:  # not laid out yet
            self.call_after_refresh(self._bring_in_sight, view)
        elif view.virtual_region.y < self.max_scroll_y:
            self.anchor(False)
            self.scroll_to_widget(view, animate=False, top=True)

    async def add(self, view: MessageView) -> None:
        """Show one more message at the end."""
        with self.app.batch_update():
            if not self.views:
                await self.remove_children()
            await self.mount(view)
        self.anchor()

    async def show_earlier(self) -> None:
        """Mount the messages before those that are there, without moving what is on the screen."""
        if not self._first:
            return
        first, self._first = self._first, max(self._first - _AT_ONCE, 0)
        widgets = self._widgets(self._first, first)
        before = self.virtual_size.height
        with self.app.batch_update():
            await self.query_children("#earlier").remove()
            await self.mount_all([*self._earlier(), *widgets], before=0)
        self.call_after_refresh(lambda: self.scroll_relative(y=self.virtual_size.height - before, animate=False))

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if new_value <= 0 < old_value and self._first:
            self.post_message(self.WantsEarlier())
        if new_value > old_value and self.is_at_end:
            self.post_message(self.AtEnd())

    def _widgets(self, start: int, end: int) -> list[Widget]:
        widgets: list[Widget] = []
        for index in range(start, end):
            if index == self._horizon and index:
                widgets.append(Horizon(index))
            widgets.append(self._make[index]())
        return widgets

    def _earlier(self) -> list[Widget]:
        if not self._first:
            return []
        return [Static(Content(f"↑ {self._first} earlier messages"), id="earlier")]
