"""Lines a person types, and lines that come through a pipe."""

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
    """Messages typed at a terminal; a line that ends in a backslash goes on in the next one, and one that begins with
    three quotes up to three quotes."""
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
    """One line from the terminal. The prompt goes to stdout only where that is the same terminal."""
    try:
        if at_terminal():
            return typed_text(input(prompt))
        tell(prompt)
        return typed_text(input())
    except UnicodeDecodeError:
        raise UsageError("that line was not UTF-8 text") from None


def drop_typed_ahead() -> None:
    """Drop what was typed at the terminal before now: it is no answer to a question that was not there yet."""
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
    """One message a line, as they arrive."""
    for line in piped_lines():
        if text := line.strip():
            yield text
