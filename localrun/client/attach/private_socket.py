"""A Unix socket that only programs of this user can open, in a folder of its own."""

import os
import shutil
import socket
import stat
import struct
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

PREFIX, NAME = "localrun-engine-", "socket"  # in the folder of temporary files: paths of sockets are short
BACKLOG = 16
_PEER = struct.Struct("3i")  # ucred of Linux: process, user, group
_LOCAL_PEERCRED, _LOCAL_PEERPID = 1, 2  # of macOS, at level 0


class Peer(NamedTuple):
    """The program at the other end of a connection."""

    pid: int | None
    uid: int


def listen() -> tuple[socket.socket, Path]:
    """Listen on a new socket; gives it and its path. Raises OSError, on Windows always."""
    if sys.platform == "win32":
        raise OSError("Windows has no Unix sockets")
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))  # mode 0700
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(folder / NAME))
        (folder / NAME).chmod(0o600)
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return listener, folder / NAME


def connect(path: Path) -> socket.socket:
    """Connect to a socket of this user. Raises OSError for one that others could have made, or may open."""
    if sys.platform == "win32":
        raise OSError("Windows has no Unix sockets")
    if not _is_private(path):
        raise PermissionError(f"{path} is not private")
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(str(path))
        if peer_of(connection).uid != os.getuid():
            raise PermissionError(f"{path} is another user's")
    except OSError:
        connection.close()
        raise
    return connection


def peer_of(connection: socket.socket) -> Peer:
    """Credentials of the other end, from the system. Raises OSError where it has none."""
    if sys.platform == "linux":
        pid, uid, _ = _PEER.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
        return Peer(pid, uid)
    if sys.platform == "darwin":
        _, uid = struct.unpack("2I", connection.getsockopt(0, _LOCAL_PEERCRED, 76)[:8])
        return Peer(connection.getsockopt(0, _LOCAL_PEERPID), uid)
    raise OSError("this system does not tell who connects")


def is_own(connection: socket.socket) -> bool:
    """Whether a program of this user is at the other end."""
    if sys.platform == "win32":
        return False
    try:
        return peer_of(connection).uid == os.getuid()
    except OSError:
        return False


def remove(path: Path) -> None:
    """Remove a socket without a listener, and its folder. Anything else stays."""
    if path.name == NAME and path.parent.name.startswith(PREFIX) and _is_private(path):
        with suppress(OSError):
            path.unlink()
            path.parent.rmdir()


def _is_private(path: Path) -> bool:
    """Whether it is a socket of this user in a folder that no other user can enter."""
    if sys.platform == "win32":
        return False
    try:
        folder, file = path.parent.lstat(), path.lstat()
    except OSError:
        return False
    closed = stat.S_ISDIR(folder.st_mode) and not stat.S_IMODE(folder.st_mode) & 0o077
    return closed and stat.S_ISSOCK(file.st_mode) and folder.st_uid == file.st_uid == os.getuid()
