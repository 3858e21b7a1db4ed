"""The terminal of Linux and macOS, taken up again after every kind of stop."""

from typing import Any

from textual.drivers.linux_driver import LinuxDriver


class Terminal(LinuxDriver):
    """Textual's own takes SIGCONT for the end of a stop that it had prepared. After SIGSTOP, which nobody sees coming,
    a second thread would read keys beside the first, and quitting would leave the terminal as the app had set it."""

    def _sigcont_application(self, *_: Any) -> None:
        if self._auto_restart and self._key_thread is not None and self._key_thread.is_alive():
            self.suspend_application_mode()
            self._must_signal_resume = True
        super()._sigcont_application()
