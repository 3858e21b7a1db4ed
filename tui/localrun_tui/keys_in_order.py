"""Keys act in the order they were pressed, each where the one before it led to."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from textual.app import App
from textual.events import Key, Paste
from textual.message_pump import MessagePump
from textual.widget import Widget
from textual.widgets import Input, TextArea
from textual.worker import Worker

_PATIENCE = 10.0  # seconds: a disk or a server that does not answer holds keys no longer
_ROUNDS = 2  # a list is told in the first one that a row was chosen, its screen in the second
_STEP = 0.01  # seconds


class KeysInOrder:
    """Textual hands a key on before what an earlier one asked for is there: a field, a list, a dialog. Here keys and
    pastes wait for that. What is typed into a field makes none wait."""

    def __init__(self, app: App[Any], hand_on: Callable[[Key | Paste], Awaitable[None]]) -> None:
        """`hand_on`: as Textual does it. All wait until `begin`."""
        self._app = app
        self._hand_on = hand_on
        self._waiting: list[Key | Paste] = []
        self._led_there: list[Callable[[], bool]] = []  # all of them have to say so
        self._going_on: asyncio.Task[None] | None = None
        self.is_held = True

    async def begin(self) -> None:
        await self._act_on_all()

    async def take(self, event: Key | Paste) -> None:
        """Act on a key or a paste, now or in its turn."""
        self._waiting.append(event)
        if not self.is_held:
            self.is_held = True
            await self._act_on_all()

    def wait_until(self, is_there: Callable[[], bool]) -> None:
        """Hold what comes next until this says that what it is meant for is there."""
        self._led_there.append(is_there)

    async def _act_on_all(self) -> None:
        while self._waiting and self._app.screen_stack:
            event, focused = self._waiting.pop(0), self._app.focused
            if not (isinstance(event, Key) and await _acts_at_once(self._app, event)):
                await self._hand_on(event)
            if not _is_typed(focused, event):
                self._going_on = asyncio.create_task(self._go_on(focused))
                return
        self.is_held = False

    async def _go_on(self, focused: Widget | None) -> None:
        try:
            try:
                await asyncio.wait_for(self._led(focused), _PATIENCE)
            except TimeoutError:
                self._led_there.clear()
            await self._act_on_all()
        except Exception as error:
            self._app.call_later(_raise, error)

    async def _led(self, focused: Widget | None) -> None:
        """Wait until the key that `focused` was given has led to where it leads."""
        app = self._app
        while app.screen_stack:
            screen, now = app.screen, app.focused
            for _ in range(_ROUNDS):
                for node in focused.ancestors_with_self if focused else (screen, app):
                    await _all_done(node)
            while not all(is_there() for is_there in self._led_there):
                await asyncio.sleep(_STEP)
            self._led_there.clear()
            if app.screen is screen and app.focused is now and screen.is_mounted:
                return
            focused = app.focused


async def _acts_at_once(app: App[Any], key: Key) -> bool:
    """Whether the key did something outside of fields, where Textual would ask the widgets first. Fields do it so in
    `widgets/fields.py`."""
    if not app.app_focus or isinstance(app.focused, Input | TextArea):
        return False
    # Textual has no public name for this: active_bindings gives one binding of a key, and where its action is skipped,
    # as by a list with nothing to scroll, that of an ancestor is to act.
    return await app._check_bindings(key.key, priority=True) or await app._check_bindings(key.key)


def _is_typed(focused: Widget | None, event: Key | Paste) -> bool:
    """Whether the event is text of a field."""
    if not isinstance(focused, Input | TextArea):
        return False
    return isinstance(event, Paste) or focused.check_consume_key(event.key, event.character)


def _raise(error: Exception) -> None:
    """Let the app end as it does where a handler raises."""
    raise error


async def _all_done(pump: MessagePump) -> None:
    """Wait until all messages that `pump` has now are handled."""
    reached = asyncio.Event()
    if pump.is_running and pump.call_later(reached.set):
        await reached.wait()


def keys_wait_for_dialog(worker: Worker[Any], app: App[Any], opens_none: Callable[[], bool] = lambda: False) -> None:
    """Have keys wait for the dialog that `worker` opens, if it does."""
    source = app.screen
    keys_wait_until(lambda: worker.is_finished or app.screen is not source or opens_none(), app)


def keys_wait_until(is_there: Callable[[], bool], app: App[Any]) -> None:
    """Have keys wait, in an app that keeps them in order."""
    keys = getattr(app, "keys", None)
    if isinstance(keys, KeysInOrder):
        keys.wait_until(is_there)
