"""Condensed reading of a file of any size: once from its beginning to its end, watched, and within bounded memory."""

import errno
import os
import time
from collections.abc import Callable
from io import BufferedReader, RawIOBase, TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from localrun.base.errors import NotFoundError
from localrun.base.sanitize import clean
from localrun.base.small_file import open_regular
from localrun.base.text_encoding import encoding_of
from localrun.base.units import gib, ms
from localrun.chat.left_out import UnreadError

if TYPE_CHECKING:
    from localrun.chat.long_text.condensed import Condensed

_CHUNK = 1 << 20  # bytes between two calls of a watch


class ReadingProgress:
    """The part of a file that was read; `n_bytes` is 0 where its size is not known."""

    def __init__(self, name: str, n_bytes: int = 0) -> None:
        self.name, self.n_bytes, self.n_read = name, n_bytes, 0
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self._began

    def __str__(self) -> str:
        """How much of it is read, and about how long the rest takes."""
        if not self.n_read or self.n_bytes < self.n_read:
            return f"reading {self.name}: {gib(self.n_read)}"
        share = self.n_read / self.n_bytes
        left = self.seconds * (1 - share) / share
        return f"reading {self.name}: {share:.0%} of {gib(self.n_bytes)}, ≈{ms(1000 * left)} left"


ReadingWatch = Callable[[ReadingProgress], object]  # called from time to time; an error that it raises ends the reading


def unwatched(progress: ReadingProgress) -> None:
    """Watch nothing."""


def condense_file(path: Path, watch: ReadingWatch = unwatched, may_wait: bool = False) -> "Condensed":
    """The kinds of lines of a file; of a pipe, too, with `may_wait`.

    NotFoundError where there is none, UnreadError where it cannot be read or is not text.
    """
    name = clean(path.name, keep_newlines=False)
    try:
        with path.open("rb", buffering=0) if may_wait else open_regular(path) as file:
            return condense(file, name, watch, os.fstat(file.fileno()).st_size)
    except (FileNotFoundError, NotADirectoryError):
        raise NotFoundError(f"there is no file {name}", "check the path") from None
    except (OSError, ValueError) as error:
        raise _unread(name, error) from None


def condense(file: BinaryIO | RawIOBase, name: str, watch: ReadingWatch = unwatched, n_bytes: int = 0) -> "Condensed":
    """The kinds of lines of an open file. UnreadError where it cannot be read or is not text."""
    from localrun.chat.long_text.condensed import Kinds, NotTextError

    watched = BufferedReader(_Watched(file, ReadingProgress(name, n_bytes), watch))
    try:
        return Kinds(TextIOWrapper(watched, encoding_of(watched.peek(2)), errors="replace")).condensed()
    except NotTextError as error:
        raise UnreadError(name, "cannot be condensed", "only text can be", str(error)) from None
    except OSError as error:
        raise _unread(name, error) from None


def _unread(name: str, error: Exception) -> UnreadError:
    why = (isinstance(error, OSError) and error.strerror) or str(error)
    return UnreadError(name, "cannot be read", "check the path and its permissions", why)


class _Watched(RawIOBase):
    """A file whose reading is told to a watch."""

    def __init__(self, file: BinaryIO | RawIOBase, progress: ReadingProgress, watch: ReadingWatch) -> None:
        self._file, self._progress, self._watch, self._next = file, progress, watch, _CHUNK

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        n: int | None = self._file.readinto(buffer)  # type: ignore[union-attr]
        if n is None:  # a file of /proc that waits for news
            raise OSError(errno.EINVAL, "this is a stream, not a file")
        self._progress.n_read += n
        if self._progress.n_read >= self._next:
            self._next += _CHUNK
            self._watch(self._progress)
        return n
