"""The two output streams: stdout carries the answer only, stderr everything else."""

import contextlib
import io
import json
import math
import os
import shutil
import sys
import textwrap
import time
from collections.abc import Sequence
from typing import Any, TextIO

from localrun.base.errors import LocalrunError
from localrun.base.events import ImageProgress
from localrun.base.image_words import looking_words
from localrun.base.sanitize import Cleaner, clean
from localrun.cli.word_wrap import WordWrap

ONE_OR_MANY = 'localrun run "…" answers one prompt, localrun chat is a plain chat'
_TERM_CELLS = 22  # longer terms have what they mean below them
FIRST_NOTE_SECONDS, NEXT_NOTE_SECONDS = 2.0, 5.0


class ReaderGoneError(Exception):
    """The reader of stdout has closed it: stop at once, without a message."""


def open_streams() -> None:
    """Make stdout and stderr safe to write to: UTF-8 when piped, and a stream even where the caller closed one."""
    if sys.stdout is None:
        sys.stdout = _NoReader()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            encoding = stream.encoding if stream.isatty() else "utf-8"
            stream.reconfigure(encoding=encoding, errors="backslashreplace")


class _NoReader(io.TextIOBase):
    """Stand in for a stdout that was closed from the start; writing raises as if the reader had gone."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


def close_stdout() -> None:
    """Point stdout at the null device, so that the final flush does not fail without a reader."""
    _close(sys.stdout)


def _close(stream: TextIO | io.TextIOBase) -> None:
    with contextlib.suppress(OSError, ValueError):
        at = stream.fileno()
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, at)
        os.close(nothing)


def is_terminal(stream: TextIO | None) -> bool:
    """Whether the stream is a terminal."""
    return stream is not None and not stream.closed and stream.isatty()


def at_terminal() -> bool:
    """Whether a person types and reads: stdin and stdout are both a terminal."""
    return is_terminal(sys.stdin) and is_terminal(sys.stdout)


def write(text: str) -> None:
    """Write `text` to stdout at once.

    ReaderGoneError when the reader has closed it, LocalrunError when writing fails.
    """
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise ReaderGoneError from None
    except OSError as error:
        close_stdout()
        raise LocalrunError(f"cannot write the answer: {error.strerror}") from None


def write_json(value: Any) -> None:
    """Write one JSON value on one line of stdout; NaN and infinity become null."""
    line = json.dumps(_finite(value), ensure_ascii=False, allow_nan=False)
    write((clean(line) if is_terminal(sys.stdout) else line) + "\n")


def write_table(rows: Sequence[tuple[str, ...]]) -> None:
    """Write aligned columns to stdout."""
    for line in table(rows):
        write(f"{line}\n")


def table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Format rows as lines of columns: cleaned, left-aligned, two spaces apart."""
    cleaned = [[clean(cell, keep_newlines=False) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cleaned, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cleaned]


def definitions(rows: Sequence[tuple[str, str]]) -> list[str]:
    """Format terms and what they mean: beside them, wrapped there, and below a term that is long."""
    at = min(max(len(term) for term, _ in rows), _TERM_CELLS) + 2
    columns = shutil.get_terminal_size().columns
    lines = []
    for term, words in rows:
        beside = textwrap.wrap(words, max(columns - at, at), break_on_hyphens=False)
        lines += [term] if len(term) + 2 > at else [f"{term:{at}}{beside.pop(0)}"]
        lines += [" " * at + line for line in beside]
    return lines


def note(text: str) -> None:
    """Write a line for the user to stderr, broken between words on a terminal."""
    text = clean(text)
    if is_terminal(sys.stderr):
        wrap = WordWrap(lambda: shutil.get_terminal_size().columns)
        text = wrap.feed(text) + wrap.flush()
    tell(f"{text}\n")


def tell(text: str) -> None:
    """Write text to stderr unchanged; errors of writing are ignored."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError):  # what was not written waits: Python would try once more when it ends, with code 120
        _close(sys.stderr)


def show_progress(line: str) -> None:
    """Show progress on one line of stderr in place of the last; an empty `line` clears it.

    Nothing without a terminal.
    """
    if is_terminal(sys.stderr):
        tell(f"\r{line:<70}" + ("" if line else "\r"))


def agreed(question: str, usual: bool = False) -> bool:
    """Ask a yes-or-no question.

    `usual` is the answer of a bare Enter; the end of input means no.
    """
    tell(f"{clean(question, keep_newlines=False)} [{'Y/n' if usual else 'y/N'}] ")
    try:
        answer = input().strip().lower()
    except EOFError:
        return False
    return answer in ("y", "yes") or (usual and not answer)


def can_ask() -> bool:
    """Whether a person can read questions and type answers: stdin and stderr are terminals."""
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)


class AnswerWriter:
    """Write the answer to stdout, ended by exactly one line break.

    For a terminal it is cleaned, and its lines are broken between words; a pipe gets it raw.
    """

    def __init__(self) -> None:
        on_terminal = is_terminal(sys.stdout)
        self._cleaner = Cleaner() if on_terminal else None
        self._wrap = WordWrap(lambda: shutil.get_terminal_size().columns) if on_terminal else None
        self._last = ""

    def feed(self, text: str) -> None:
        shown = self._cleaner.feed(text) if self._cleaner else text
        self._write(self._wrap.feed(shown) if self._wrap else shown)

    def _write(self, shown: str) -> None:
        if shown:
            write(shown)
            self._last = shown[-1]

    def end(self) -> None:
        if self._wrap:
            self._write(self._wrap.flush())
        if self._last not in ("", "\n"):
            write("\n")
        self._last = ""


class ThinkingWriter:
    """Write the thinking part to stderr, always cleaned, with a line break before the answer begins."""

    def __init__(self) -> None:
        self._cleaner = Cleaner()
        self._open = False

    def feed(self, text: str) -> None:
        tell(self._cleaner.feed(text))
        self._open = True

    def end(self) -> None:
        if self._open:
            tell("\n\n")
        self._open = False


class PrefillNotes:
    """Report the progress of a long prompt to a person: one line every few seconds."""

    def __init__(self) -> None:
        self._next = time.monotonic() + FIRST_NOTE_SECONDS

    def tell(self, done: int, total: int) -> None:
        if done < total:
            self._note(f"(reading the prompt: {done:,} of {total:,} tokens)")

    def tell_image(self, progress: ImageProgress) -> None:
        self._note(f"({looking_words(progress)})")

    def _note(self, text: str) -> None:
        now = time.monotonic()
        if now >= self._next and is_terminal(sys.stderr):
            note(text)
            self._next = now + NEXT_NOTE_SECONDS


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
