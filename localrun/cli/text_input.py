"""Text from stdin or from a file."""

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from localrun.base.errors import NotFoundError, PromptTooLongError, UsageError
from localrun.base.parsers import is_unicode
from localrun.base.sanitize import clean
from localrun.base.timer import calling_after
from localrun.cli.console import is_terminal, note, show_progress

if TYPE_CHECKING:
    from localrun.chat.long_text.condensed_file import ReadingProgress

NOTICE_AFTER_SECONDS = 2.0
MAX_BYTES = 16 << 20  # no context holds more, and an endless stdin must end somewhere


def piped_stdin() -> BinaryIO | None:
    """stdin where it may hold text: a pipe, a socket or a file. None for a terminal, a device, or a closed stdin."""
    if sys.stdin is None or sys.stdin.closed:
        return None
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError):
        return None
    return None if stat.S_ISCHR(mode) or is_terminal(sys.stdin) else sys.stdin.buffer


def read_stdin(notice: str = "") -> str:
    """Read all of stdin; empty when there is none.

    `notice` is shown where stdin stays silent for 2 s.
    """
    stream = piped_stdin()
    if stream is None:
        return ""
    with _notice_when_slow(notice) if notice else nullcontext():
        return _read(stream, "stdin")


def read_text_file(path: str) -> str:
    """Read a whole text file; `-` is stdin. A note appears when a pipe stays silent for 2 s."""
    if path == "-":
        return read_stdin("reading stdin …")
    with _opened(path) as file:
        return _read(file, clean(path))


def read_condensed(path: str) -> str:
    """The kinds of lines of a text file of any size, or of stdin for `-`; a note says what was joined."""
    from localrun.chat.long_text.condensed_file import condense, condense_file

    stream = piped_stdin() if path == "-" else None
    if path == "-" and stream is None:
        return ""
    name = clean(Path(path).name) if stream is None else "stdin"
    try:
        with _notice_when_slow(f"reading {name} …"):
            if stream is not None:
                condensed = condense(stream, name, _tell_progress)
            else:
                condensed = condense_file(Path(path).expanduser(), _tell_progress, may_wait=True)
    finally:
        show_progress("")
    note(f"({name}: {condensed.summary})")
    return condensed.text


def _tell_progress(progress: "ReadingProgress") -> None:
    if progress.seconds > NOTICE_AFTER_SECONDS:
        show_progress(f"({progress})")


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    """A file to read. Raises NotFoundError or UsageError, for an error while it is read, too."""
    try:
        with _notice_when_slow(f"reading {path} …"), Path(path).expanduser().open("rb") as file:
            yield file
    except (FileNotFoundError, NotADirectoryError, ValueError):
        raise NotFoundError(f"there is no file {path}", "check the path") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", "check the path and its permissions") from None


def piped_lines() -> Iterator[str]:
    """The lines of stdin as they arrive, without line ends."""
    number = 0
    while sys.stdin is not None and (line := sys.stdin.buffer.readline(MAX_BYTES + 1)):
        number += 1
        yield _checked(line, f"line {number} of stdin").rstrip("\n")


def typed_text(text: str) -> str:
    """Return a text argument unchanged. UsageError for bytes that are not UTF-8, which only paths may have."""
    if not is_unicode(text):
        raise UsageError(f"{clean(text)!r} is not UTF-8 text", "convert it to UTF-8 first")
    return text


def decode(data: bytes, what: str) -> str:
    """Decode `data` as UTF-8 without a byte order mark. UsageError names `what` and the first wrong byte."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        hint = "convert it to UTF-8 first"
        raise UsageError(f"{what} is not UTF-8 text (byte {error.start:,} is not)", hint) from None


def _read(stream: BinaryIO, what: str) -> str:
    try:
        data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{what} cannot be read: {error.strerror}") from None
    return _checked(data, what)


def _checked(data: bytes, what: str) -> str:
    if len(data) > MAX_BYTES:
        raise PromptTooLongError(f"{what} is longer than {MAX_BYTES >> 20} MiB", "shorten it")
    return decode(data, what)


def _notice_when_slow(notice: str) -> AbstractContextManager[None]:
    return calling_after(NOTICE_AFTER_SECONDS, note, notice)
