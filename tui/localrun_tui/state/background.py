"""Slow work off the UI's thread: disk, hub and fit. Daemon threads, so that quitting never waits for a network."""

import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, TypeVar

from textual.message_pump import MessagePump

from localrun.base.errors import LocalrunError

T = TypeVar("T")


class Task:
    """One piece of work. `cancel` drops its result, and calls what the work has registered to be broken off with."""

    def __init__(self) -> None:
        self.cancelled = False
        self.is_over = False  # its result is there, or was dropped
        self._on_cancel: list[Callable[[], None]] = []

    def on_cancel(self, stop: Callable[[], None]) -> None:
        """`stop` ends what the work waits for; called at once when it is cancelled already."""
        self._on_cancel.append(stop)
        if self.cancelled:
            stop()

    def cancel(self) -> None:
        self.cancelled = self.is_over = True
        for stop in self._on_cancel:
            stop()


def run_in_background(
    owner: MessagePump,
    work: Callable[[Task], T],
    done: Callable[[T], Any],
    failed: Callable[[LocalrunError], Any] = lambda error: None,
) -> Task:
    """Do `work` on a thread; then `done` or `failed` on the UI's, unless the task was cancelled or `owner` is gone."""
    task = Task()

    def finish(callback: Callable[[Any], Any], value: Any) -> None:
        if not task.cancelled and owner.is_running:
            callback(value)
        task.is_over = True

    def body() -> None:
        try:
            answer: tuple[Callable[[Any], Any], Any] = done, work(task)
        except LocalrunError as error:
            answer = failed, error
        except Exception as error:
            answer = failed, LocalrunError(f"{type(error).__name__}: {error}", "this is a mistake in localrun")
        if not task.cancelled:
            tell(owner, finish, *answer)

    threading.Thread(target=copy_context().run, args=(body,), name="localrun-background", daemon=True).start()
    return task


def tell(owner: MessagePump, callback: Callable[..., Any], *arguments: Any) -> None:
    """Call `callback` on the UI's thread, from any thread; nothing where the app has just ended."""
    try:
        owner.call_later(callback, *arguments)
    except RuntimeError:  # the event loop is closed
        return
