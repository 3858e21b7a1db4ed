"""The terminal of Linux and macOS, taken up again after every kind of stop; one that has gone away ends the app."""

import os
import selectors
import signal
from codecs import getincrementaldecoder
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TextIO

from textual.drivers.linux_driver import LinuxDriver

from localrun_tui.key_parser import KeyParser

_HANGUP = signal.Signals["SIGHUP"]  # which mypy does not know on Windows
_READ_BYTES = 4096
_TICK_SECONDS = 0.1  # after which an Esc that nothing follows is a key of its own


class Terminal(LinuxDriver):
    """Textual's own does its work inside of the signal handler. One that interrupts a write would wait for ever for
    the lock of that very write, so here the event loop does it, between two callbacks.

    And Textual's own takes SIGCONT for the end of a stop that it had prepared. After SIGSTOP, which gives no warning,
    a second thread would read keys beside the first, and quitting would leave the terminal as the app had set it.

    Textual's own also goes on reading from a terminal that has gone away, as fast as it can, and waits for ever to
    write to it."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._file: Any = _Output(self._file, self._hang_up)
        for number in (
            _HANGUP,
            signal.SIGTERM,
        ):  # else they end the app, the terminal as it is
            self._loop.add_signal_handler(number, self._end_by, number)

    def _sigtstp_application(self, *_: Any) -> None:
        if self._auto_restart:
            self._call_soon(super()._sigtstp_application)
        else:  # an editor has the terminal, and the event loop waits for it
            super()._sigtstp_application()

    def _sigcont_application(self, *_: Any) -> None:
        if self._must_signal_resume:  # a prepared stop: the locks that are held are of a thread that has ended
            super()._sigcont_application()
        else:
            self._call_soon(self._take_up_again)

    def _take_up_again(self) -> None:
        if self._auto_restart and self._key_thread is not None and self._key_thread.is_alive():
            self.suspend_application_mode()
            self._must_signal_resume = True
            self.resume_application_mode()

    def _run_input_thread(self) -> None:
        """Textual's own says where it failed, and leaves as if all were well."""
        try:
            self.run_input_thread()
        except Exception as error:
            self._app.call_later(self._app._handle_exception, error)

    def run_input_thread(self) -> None:
        """Read keys until the app takes them no more, or the terminal is gone."""
        parser, decode = KeyParser(self._debug), getincrementaldecoder("utf-8")().decode
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                if selector.select(_TICK_SECONDS):
                    data = _read(self.fileno)
                    if not data:
                        self._hang_up()
                        return
                    for message in parser.feed(decode(data)):
                        self.process_message(message)
                for message in parser.tick():
                    self.process_message(message)

    def _hang_up(self) -> None:
        """End the app; from any thread, any number of times."""
        self._call_soon(lambda: self._end_by(_HANGUP))

    def _end_by(self, number: int) -> None:
        self._app.end_by(number)  # type: ignore[attr-defined]

    def _call_soon(self, callback: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop has ended: the terminal is as it was already
            self._loop.call_soon_threadsafe(callback)


def _read(fileno: int) -> bytes:
    """Read typed bytes; none where the terminal is gone."""
    try:
        return os.read(fileno, _READ_BYTES)
    except OSError:
        return b""


class _Output:
    """The file that the app is drawn on; what it does not take any more is dropped, and `failed` called."""

    def __init__(self, file: TextIO, failed: Callable[[], None]) -> None:
        self.fileno = file.fileno
        self._file = file
        self._failed = failed

    def write(self, text: str) -> None:
        try:
            self._file.write(text)
        except OSError:
            self._failed()

    def flush(self) -> None:
        try:
            self._file.flush()
        except OSError:
            self._failed()
