"""`localrun` and `python -m localrun`."""

import signal
import sys
from types import FrameType

from localrun.base.garbage import look_less_often


def main() -> None:
    """Run the command line, or at once the app."""
    waiting = _WaitingInterrupt()
    look_less_often()
    from localrun.cli.open_app import begins_app, open_app

    if begins_app(sys.argv[1:]):
        waiting.end()
        sys.exit(130 if waiting.pressed else open_app())
    from localrun.cli.app import run_command_line
    from localrun.cli.failure import report

    waiting.end()
    arguments = sys.argv[1:]
    code = report(KeyboardInterrupt(), arguments) if waiting.pressed else run_command_line(arguments)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # all is said: nothing that still closes has a traceback to print
    sys.exit(code)


class _WaitingInterrupt:
    """Ctrl-C while the command line is being imported: what it ends needs those imports. A second one ends at once."""

    def __init__(self) -> None:
        self.pressed = False
        self._previous = signal.signal(signal.SIGINT, self._on_interrupt)

    def end(self) -> None:
        signal.signal(signal.SIGINT, self._previous)

    def _on_interrupt(self, number: int, frame: FrameType | None) -> None:
        self.pressed = True
        signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    main()
