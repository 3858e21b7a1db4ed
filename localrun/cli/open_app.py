"""When a person gets the app, and how it starts: importing little, so that it is there at once."""

import os
import sys

from localrun.cli.console import at_terminal, is_terminal


def begins_app(arguments: list[str]) -> bool:
    """Whether this call is `localrun` alone, typed at a terminal that can draw."""
    return not arguments and at_terminal() and not is_plain()


def is_plain() -> bool:
    """Whether lines are wanted, or all that can be shown: LOCALRUN_PLAIN, TERM=dumb or none, stderr led elsewhere."""
    lacks_term = os.name == "posix" and os.environ.get("TERM", "") in ("", "dumb", "unknown")
    draws = is_terminal(sys.stderr)  # where textual draws
    return lacks_term or not draws or os.environ.get("LOCALRUN_PLAIN", "") not in ("", "0")


def open_app(model: str | None = None, precision: str = "auto", attach: bool = True) -> int:
    """Run the app until the user leaves; gives the exit code. `attach`: it may use the engine of a running localrun."""
    try:
        from localrun_tui.start import run

        return run(model, precision, attach)
    except KeyboardInterrupt:
        return 130
