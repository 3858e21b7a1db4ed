"""`localrun` and `python -m localrun`. Nothing else is imported before Ctrl-C is taken care of."""

import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType


def main() -> None:
    """Run the command line, or at once the app."""
    interrupt = _Interrupt()
    from localrun.base.startup import keep_garbage, leave_deleted_folder, look_less_often

    look_less_often()
    leave_deleted_folder()
    from localrun.cli.open_app import begins_app, open_app

    try:
        if begins_app(sys.argv[1:]):
            interrupt.end_waiting()
            code = open_app()
        else:
            from localrun.cli.app import run_command_line

            code = run_command_line(sys.argv[1:], interrupt.end_waiting)
    except KeyboardInterrupt:  # before the app has begun, or while an error is printed
        code = 130
    except Exception as error:  # of an import: the command line and the app report their own errors
        from localrun.cli.console import open_streams
        from localrun.cli.failure import report

        open_streams()
        code = report(error, sys.argv[1:])
    interrupt.leave_to_system()
    keep_garbage()
    sys.exit(code)


class _Interrupt:
    """Ctrl-C. While the command line is being imported it waits: what it ends needs those imports. A second one ends
    at once.

    A process that was started with it ignored, as shells start jobs in the background, goes on ignoring it.
    """

    def __init__(self) -> None:
        self._pressed = False
        self._before = signal.signal(signal.SIGINT, self._on_interrupt)
        self._is_ignored = self._before is signal.SIG_IGN
        if self._is_ignored:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    def end_waiting(self) -> None:
        """Raise KeyboardInterrupt from now on; at once if Ctrl-C was pressed already."""
        signal.signal(signal.SIGINT, self._before)
        if self._pressed and not self._is_ignored:
            raise KeyboardInterrupt

    def leave_to_system(self) -> None:
        """All is said: nothing that still closes has a traceback to print."""
        if not self._is_ignored:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        exec("")  # `python -m` forgets a Ctrl-C amid code made of text, by which it would end, whatever the exit code

    def _on_interrupt(self, number: int, frame: "FrameType | None") -> None:
        self._pressed = True
        signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    main()
