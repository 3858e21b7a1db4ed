"""Lines a person types, and lines that come through a pipe."""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress

from localrun.base.errors import UsageError
from localrun.cli.console import at_terminal, note, tell
from localrun.cli.text_input import decode


def typed_messages() -> Iterator[str]:
    """Messages typed at a terminal; a line that ends in a backslash goes on in the next one."""
    if os.environ.get("TERM") != "dumb":
        with suppress(ImportError):
            import readline  # noqa: F401  (gives input() editing and history)
    lines: list[str] = []
    while True:
        try:
            line = ask_line("… " if lines else "> ")
        except EOFError:
            tell("\n")
            return
        except KeyboardInterrupt:
            lines.clear()
            note("\n(Ctrl-D or /quit leaves)")
            continue
        lines.append(line)
        if line.endswith("\\"):
            lines[-1] = line[:-1]
            continue
        text = "\n".join(lines).strip()
        lines.clear()
        if text:
            yield text


def ask_line(prompt: str) -> str:
    """One line from the terminal. The prompt goes to stdout only where that is the same terminal."""
    try:
        if at_terminal():
            return input(prompt)
        tell(prompt)
        return input()
    except UnicodeDecodeError:
        raise UsageError("that line was not UTF-8 text") from None


def piped_messages() -> Iterator[str]:
    """One message a line, as they arrive."""
    if sys.stdin is None:
        return
    for number, line in enumerate(sys.stdin.buffer, 1):
        text = decode(line, f"line {number} of stdin").strip()
        if text:
            yield text
