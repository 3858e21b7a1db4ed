"""Lines typed by a person, and lines from a pipe."""

import os
import select
import sys
from collections.abc import Iterator
from contextlib import suppress

from localrun.base.errors import UsageError
from localrun.cli.console import at_terminal, is_terminal, note, tell
from localrun.cli.text_input import piped_lines, typed_text

_QUOTES = '"""'


def typed_messages() -> Iterator[str]:
    """Read messages from the terminal. A line that ends in a backslash continues on the next one, and one that begins
    with three quotes continues up to the next three quotes."""
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
        text = "\n".join(lines).strip()
        if text.startswith(_QUOTES):
            text, is_closed, _ = text.removeprefix(_QUOTES).partition(_QUOTES)
            if not is_closed:
                continue
        elif line.endswith("\\"):
            lines[-1] = line[:-1]
            continue
        lines.clear()
        if text := text.strip():
            yield text


def ask_line(prompt: str) -> str:
    """Read one line from the terminal. The prompt goes to stdout only where stdout is the same terminal."""
    try:
        if at_terminal():
            return typed_text(input(prompt))
        tell(prompt)
        return typed_text(input())
    except UnicodeDecodeError:
        raise UsageError("that line was not UTF-8 text") from None


def drop_typed_ahead() -> None:
    """Discard what was typed at the terminal before now, so that it does not answer a question not yet shown."""
    if not is_terminal(sys.stdin):
        return
    if sys.platform == "win32":
        import msvcrt

        while msvcrt.kbhit():
            msvcrt.getwch()
    else:
        import termios

        if select.select([sys.stdin], [], [], 0.0)[0]:
            note("(what was typed before this question is left out)")
        termios.tcflush(sys.stdin, termios.TCIFLUSH)


def piped_messages() -> Iterator[str]:
    """Read one message from each line of stdin, as the lines arrive."""
    for line in piped_lines():
        if text := line.strip():
            yield text
