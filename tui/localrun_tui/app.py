"""The app: screens, themes, keys, and the session they share."""

import time
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

from rich.console import RenderableType
from textual._compositor import CompositorUpdate
from textual.app import SystemCommand
from textual.binding import BindingType
from textual.events import Event, Key, Paste
from textual.message import Message
from textual.screen import Screen

from localrun.base.content import Content
from localrun.base.environment import is_switched_on
from localrun_tui.crash import PlainEnd
from localrun_tui.keys import EVERYWHERE
from localrun_tui.keys_in_order import KeysInOrder
from localrun_tui.pages import Pages
from localrun_tui.screens.chat.chat_screen import ChatScreen
from localrun_tui.screens.chat.history_groups import ago
from localrun_tui.state.desktop import LONG_SECONDS, Desktop
from localrun_tui.state.draft import keep_draft, take_draft
from localrun_tui.state.session import Session
from localrun_tui.themes import put_theme_on
from localrun_tui.widgets.minimal_update import MinimalUpdate, ShownRows
from localrun_tui.widgets.toast import LineToasts, toast
from localrun_tui.widgets.told_copies import ToldCopies

if TYPE_CHECKING:
    from localrun.chat.journal import ChatStore
    from localrun.client.choice import ModelChoice
    from localrun.client.model_slot import OpenClient
    from localrun_tui.screens.downloads.downloads_queue import Downloads
    from localrun_tui.screens.first_run import FirstStep

_QUIET = 3.0  # seconds after which what is not needed at once is read
_TWICE = 2.0  # seconds within which a second Ctrl+C quits


class LocalrunApp(Pages, LineToasts, ToldCopies, PlainEnd):
    """`choose` finds the model to begin with, on a thread; None lets the user choose one.

    `flags` are settings that came with the command line. `go_on`: with the chat that was used last.
    """

    TITLE = "localrun"
    # What the first screens need is parsed once: a sheet that comes later has Textual parse all of them again.
    CSS_PATH = ["app.tcss", "screens/chat/chat_screen.tcss", "screens/first_run.tcss"]  # noqa: RUF012
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = EVERYWHERE

    def __init__(
        self,
        open_client: "OpenClient",
        open_store: "Callable[[], ChatStore]",
        choose: "Callable[[], ModelChoice | None]" = lambda: None,
        theme: str | None = None,
        flags: Mapping[str, Any] | None = None,
        go_on: bool = False,
    ) -> None:
        super().__init__()
        put_theme_on(self, theme)
        self.set_class(self.console.color_system == "standard", "-few-colours")  # 16 of them
        self.session = Session(open_client, open_store, self._tell)
        self._choose = choose
        self.flags = flags or {}
        self._goes_on = go_on
        self.desktop = Desktop(self._write)
        self.chat_screen = ChatScreen(self.session, self.desktop)
        self._interrupted = 0.0
        self._paper = ShownRows()
        self._draws_whole = is_switched_on("LOCALRUN_FULL_REDRAW")
        self.keys = KeysInOrder(self, super().on_event)

    def get_default_screen(self) -> Screen[Any]:
        return self.chat_screen

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        """Write only the cells that changed, unless the user wants all of what Textual drew."""
        if self._batch_count and renderable is not None:  # Textual drops it, and would not paint these regions again
            screen.refresh()
            return
        if isinstance(renderable, CompositorUpdate) and not self._draws_whole:
            renderable = MinimalUpdate(renderable, self._paper, self.size)
        super()._display(screen, renderable)

    @property
    def unsent(self) -> Content:
        return self.chat_screen.composer.unsent

    def on_mount(self) -> None:
        self.app_suspend_signal.subscribe(self, lambda _: self._leave_terminal())
        self.app_resume_signal.subscribe(self, lambda _: self._paper.forget())
        self.app_resume_signal.subscribe(self, lambda _: self.refresh(layout=True))
        self.call_after_refresh(self._begin)

    def _leave_terminal(self) -> None:
        """Restore the title and the style of the terminal for other programs."""
        self.desktop.leave()
        self._write("\x1b[0m")

    def _write(self, codes: str) -> None:
        if self._driver is not None:
            self._driver.write(codes)

    def on_app_blur(self) -> None:
        self.desktop.is_away = True

    def on_app_focus(self) -> None:
        self.desktop.is_away = False

    async def on_unmount(self) -> None:
        self._leave_terminal()
        await self.session.server.stop(at_once=True)
        if "downloads" in vars(self):
            self.downloads.close()
        self.session.close()

    @cached_property
    def downloads(self) -> "Downloads":
        """The queue of downloads; it outlives the screens that fill it."""
        from localrun_tui.screens.downloads.downloads_queue import Downloads

        told = partial(self.desktop.tell, seconds=LONG_SECONDS)
        return Downloads(self, told, wanted=self._load_arrived)

    def _load_arrived(self, choice: "ModelChoice") -> None:
        """Load a model after its download, unless another model than the built-in one is in use by now."""
        from localrun.hub.catalogue import BUILTIN

        info = self.session.info
        if info is None or info.name == BUILTIN:
            from localrun_tui.state.continue_chat import load_when_idle

            self.chat_screen.run_guarded(load_when_idle(self.session, choice))

    def _tell(self, message: Message) -> None:
        self.chat_screen.post_message(message)

    async def on_event(self, event: Event) -> None:
        if isinstance(event, Key | Paste) and not event.is_forwarded:
            await self.keys.take(event)
        else:
            await super().on_event(event)

    async def _begin(self) -> None:
        """After the first frame, find the first model, and unfinished downloads of earlier runs."""
        await self.keys.begin()
        self.chat_screen.run_guarded(self._take_up_draft())
        self.chat_screen.run_guarded(self._choose_first())
        self.chat_screen.run_guarded(self.chat_screen.show_downloads())
        self.set_timer(_QUIET, lambda: self.chat_screen.run_guarded(self._open_chats()))

    async def _take_up_draft(self) -> None:
        disk, chat = self.session.disk, self.chat_screen
        draft = await disk.run(take_draft, disk.images)
        if draft.content:
            chat.composer.continue_chat(draft.content)
            chat.composer.border_title = f"Your draft of {ago(time.time() - draft.at, 'a moment ago')}"
        if draft.gone:
            toast(chat, "Not in your draft any more", "; ".join(draft.gone), "warning")

    async def _open_chats(self) -> None:
        """Read the list of chats while idle; an empty chat says what is not kept."""
        disk, pane = self.session.disk, self.chat_screen.pane
        await disk.run(disk.warm_up)
        self.session.prompts[:0] = await disk.run(disk.last_prompts)
        if disk.notice and pane.path.is_empty:
            await pane.show(rebuild=True)

    async def _choose_first(self) -> None:
        if self._goes_on:
            from localrun_tui.state.continue_chat import open_last

            choice = await open_last(self.session, self._choose, self.flags)
        else:
            choice = await self.session.disk.run(self._choose)
        if choice is not None:
            await self.session.load(choice)
            return
        from localrun_tui.screens.first_run import FirstRunScreen

        await self._begin_with(await self.push_screen_wait(FirstRunScreen(self.chat_screen.composer.editor.insert)))

    async def _begin_with(self, answer: "FirstStep") -> None:
        """Carry out the choice of the first screen."""
        if answer == "downloads":
            self.action_downloads()
        elif answer == "models":
            await self.choose_model("catalogue")
        elif answer is not None:
            from localrun.client.choice import builtin
            from localrun_tui.screens.downloads.get_model import get_model

            if answer != "builtin":
                get_model(self, self.downloads, answer.name)
            await self.session.load(await self.session.disk.run(builtin))

    # ---- keys and commands

    async def action_quit(self) -> None:
        """Quit; first ask where that ends downloads or the server, or loses a draft or a chat."""
        from localrun_tui.screens.dialogs.confirm import ConfirmScreen
        from localrun_tui.screens.dialogs.quit_question import quit_question

        active = [one for one in self.downloads.all() if one.active] if "downloads" in vars(self) else []
        is_lost = not keep_draft(self.unsent)
        unwritten = await self.session.disk.run(self.session.disk.unwritten)
        question = quit_question(active, self.session.server, is_lost, unwritten)
        if question is None:
            self.leave()
        elif not isinstance(self.screen, ConfirmScreen):  # which asks already
            self.push_screen(question, lambda yes: self.leave() if yes else None)

    async def action_interrupt(self) -> None:
        """Stop the answer; without one, quit at a second Ctrl+C."""
        now = time.monotonic()
        if self.session.answering:
            self.chat_screen.run_guarded(self.session.stop())
        elif now - self._interrupted < _TWICE:
            await self.action_quit()
        else:
            self._interrupted = now
            self.notify("Ctrl+C again quits", timeout=_TWICE)

    def action_command_palette(self) -> None:
        from localrun_tui.screens.palette import Palette

        if not isinstance(self.screen, Palette):
            self.push_screen(Palette())

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        from localrun_tui.commands import commands

        yield from commands(self, screen if isinstance(screen, ChatScreen) else None)
