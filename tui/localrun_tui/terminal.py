"""The terminal of Linux and macOS, taken up again after every kind of stop."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from textual.drivers import linux_driver
from textual.drivers.linux_driver import LinuxDriver

from localrun_tui.key_parser import KeyParser

linux_driver.XTermParser = KeyParser  # type: ignore[attr-defined]  # the thread that reads makes its own, by this name


class Terminal(LinuxDriver):
    """Textual's own does its work inside of the signal handler. One that interrupts a write would wait for ever for
    the lock of that very write, so here the event loop does it, between two callbacks.

    And Textual's own takes SIGCONT for the end of a stop that it had prepared. After SIGSTOP, which gives no warning,
    a second thread would read keys beside the first, and quitting would leave the terminal as the app had set it."""

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

    def _call_soon(self, callback: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop has ended: the terminal is as it was already
            self._loop.call_soon_threadsafe(callback)
