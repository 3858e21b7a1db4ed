"""Reading small files that anybody may have put there: regular, bounded in size, and without ever waiting."""

import errno
import os
import stat
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import BinaryIO

_FLAGS = os.O_RDONLY
for _name in ("O_BINARY", "O_CLOEXEC", "O_NOCTTY", "O_NONBLOCK"):  # non-blocking: a pipe must not stop us in open()
    _FLAGS |= getattr(os, _name, 0)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISLNK, "a link"),
)
_CHUNK_BYTES = 1 << 20


class NotAFileError(OSError):
    """A folder, a pipe, a device … where a file should be; `strerror` says which."""

    strerror: str

    def __init__(self, kind: str, path: Path) -> None:
        super().__init__(errno.EINVAL, f"this is {kind}, not a file", str(path))


class TooBigError(OSError):
    """More bytes than a file of this sort can sensibly have; `strerror` says how many are."""

    strerror: str

    def __init__(self, message: str, path: Path) -> None:
        super().__init__(errno.EFBIG, message, str(path))


def read_small(path: Path, max_bytes: int, follow_links: bool = True) -> bytes:
    """All of a file of at most `max_bytes`. Raises OSError, of which NotAFileError and TooBigError are two."""
    with open_regular(path, follow_links) as file:
        size = os.fstat(file.fileno()).st_size
        if size > max_bytes:
            raise TooBigError(f"{size:,} bytes, where at most {max_bytes:,} are sensible", path)
        data = bytearray()
        while chunk := _read(file, path):  # to the end, wherever that is: files of /proc say they are empty
            data += chunk
            if len(data) > max_bytes:
                raise TooBigError(f"more than {max_bytes:,} bytes, which is not sensible", path)
        return bytes(data)


def open_regular(path: Path, follow_links: bool = True) -> FileIO:
    """An unbuffered file to read from. Raises OSError: NotAFileError where opening could wait or reading never end."""
    _require_regular(os.stat(path, follow_symlinks=follow_links).st_mode, path)  # opening alone can set off a device
    fd = os.open(path, _FLAGS if follow_links else _FLAGS | _NOFOLLOW)
    try:
        _require_regular(os.fstat(fd).st_mode, path)  # it may have been exchanged since
        return os.fdopen(fd, "rb", buffering=0)
    except BaseException:
        with suppress(OSError):
            os.close(fd)
        raise


def _require_regular(mode: int, path: Path) -> None:
    if not stat.S_ISREG(mode):
        raise NotAFileError(kind_of(mode), path)


def kind_of(mode: int) -> str:
    """Name of something that is no regular file, by its `st_mode`: a folder, a pipe, a device …"""
    return next((name for is_kind, name in _KINDS if is_kind(mode)), "a device")


def _read(file: BinaryIO, path: Path) -> bytes:
    data: bytes | None = file.read(_CHUNK_BYTES)
    if data is None:  # a file of /proc that waits for news
        raise NotAFileError("a stream", path)
    return data
