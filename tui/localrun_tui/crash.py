"""Unexpected ends of the app: an error, reported in one line without a word of any chat, or a lost terminal."""

import asyncio
import platform
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from textual.app import App
from textual.worker import WorkerFailed

from localrun import __version__
from localrun.base.content import Content, text_of
from localrun.base.files import write_whole
from localrun.base.paths import what_is_not_kept, writable_folder
from localrun.base.sanitize import clean
from localrun_tui.state.draft import keep_draft

BY_SIGNAL = 128  # exit code of a program that a signal ends: this, and the number of the signal
_NAME = "crash.txt"


class PlainEnd(App[None]):
    """An app that ends plainly. `crash`: the line for the user after an error."""

    crash = ""

    @property
    def unsent(self) -> Content:
        """The draft in the editor."""
        return ()

    def run_on_terminal(self) -> int:
        """Run until the user leaves; gives the exit code. An error of the app's own is one line on stderr."""
        if sys.platform != "win32":
            from localrun_tui.terminal import Terminal

            self.driver_class = Terminal
        try:
            self.run()
        except Exception as error:  # of the terminal, before or after the app
            self._handle_exception(error)
        if self.crash:
            print(f"localrun: {clean(self.crash, keep_newlines=False)}", file=sys.stderr)
        return self.return_code or 0

    def leave(self, return_code: int = 0) -> None:
        """End; the draft comes back at the next start."""
        if not self._exit:
            self._keep_unsent()
            self.exit(return_code=return_code)

    def end_by(self, signal: int) -> None:
        """End as by this signal; SIGHUP where the terminal is gone."""
        self.leave(BY_SIGNAL + signal)

    def _handle_exception(self, error: Exception) -> None:
        """End with a report. Textual's own writes values of variables to the terminal, and so parts of chats."""
        self._return_code = 1
        if self._exception is None:
            self._exception = error  # for tests
            self._exception_event.set()
            self.crash = _report(error) + self._keep_unsent()
        self._close_messages_no_wait()

    def _keep_unsent(self) -> str:
        try:
            is_kept, text = keep_draft(self.unsent), text_of(self.unsent)
            kept = is_kept if text.strip() else None
        except Exception:  # where the editor itself has failed
            kept = False
        if kept is None:
            return ""
        return "; what you were writing " + ("comes back at the next start" if kept else "could not be kept")

    def on_load(self) -> None:
        asyncio.get_running_loop().set_exception_handler(self._on_loop_error)

    def _on_loop_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """End at a failed callback of the event loop, which is reported nowhere else."""
        error = context.get("exception")
        if "handle" in context and isinstance(error, Exception):
            self._handle_exception(error)


def _report(error: BaseException) -> str:
    """Write a report of an error; gives the line for the user, with the place of the report.

    The words of an error and the values of variables may quote a chat: the report has its type and lines of code.
    """
    if isinstance(error, WorkerFailed):
        error = error.error
    frames = traceback.extract_tb(error.__traceback__)
    place = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    words = f"the app ended with an error of its own: {type(error).__name__}{place}"
    folder = writable_folder("logs")
    if folder is None:
        return f"{words} ({what_is_not_kept('logs')})"
    try:
        write_whole(folder / _NAME, "\n".join(_lines(error)).encode("utf-8", "replace"))
    except OSError as failed:
        return f"{words} (no report could be written to {folder}: {failed.strerror})"
    return f"{words}; please report it with {folder / _NAME}, which quotes no chat"


def _lines(error: BaseException) -> Iterator[str]:
    """Lines of the report: the error and its causes."""
    yield f"localrun {__version__}, Python {platform.python_version()}, {platform.platform()}, {time.asctime()}"
    seen: list[BaseException] = []
    one: BaseException | None = error
    while one is not None and one not in seen:
        seen.append(one)
        yield f"\n{type(one).__module__}.{type(one).__qualname__}"
        yield from traceback.format_tb(one.__traceback__)
        one = one.__cause__ or one.__context__
