"""Start of the app: whether to open it, with few imports so that the first frame appears at once."""

import os
import sys
from collections.abc import Container, Mapping
from typing import TYPE_CHECKING, Any

from localrun.base.environment import is_switched_on
from localrun.cli.console import at_terminal, is_terminal
from localrun.formats.gguf_names import is_gguf

if TYPE_CHECKING:
    from localrun.client.choice import ModelChoice


def begins_app(arguments: list[str]) -> bool:
    """Whether this call is `localrun` alone, typed at a terminal that can draw."""
    return not arguments and at_terminal() and not is_plain()


def opens_model(arguments: list[str], commands: Container[str]) -> bool:
    """Whether this call is `localrun FILE`: the app with the model in a file or folder that is there."""
    word = arguments[0] if arguments else ""
    if not word or word.startswith("-") or word in commands:
        return False
    is_path = looks_like_path(word) or word.startswith("~") or os.path.isdir(word)
    return is_path and os.path.exists(os.path.expanduser(word))


def looks_like_path(word: str) -> bool:
    """Whether a word is meant as a path: it has a separator, or the ending of a GGUF file."""
    return os.sep in word or is_gguf(word)


def is_plain() -> bool:
    """Whether the user wants plain lines, or the terminal shows nothing else.

    Reads LOCALRUN_PLAIN, TERM (dumb or missing) and whether stderr is a terminal.
    """
    lacks_term = os.name == "posix" and os.environ.get("TERM", "") in ("", "dumb", "unknown")
    draws = is_terminal(sys.stderr)  # where textual draws
    return lacks_term or not draws or is_switched_on("LOCALRUN_PLAIN")


def open_app(
    model: str | None = None,
    precision: str = "auto",
    attach: bool = True,
    held: Mapping[str, Any] | None = None,
    choice: "ModelChoice | None" = None,
    go_on: bool = False,
) -> int:
    """Run the app until the user leaves; gives the exit code. `attach`: it may use the engine of a running localrun.
    `held`: context, codec, window and adapters of the first model, None where they are not named. `choice`: the first
    model, if it is on a server. `go_on`: with the last chat."""
    try:
        from localrun_tui.start import run

        return run(model, precision, attach, held, choice, go_on)
    except KeyboardInterrupt:
        return 130
