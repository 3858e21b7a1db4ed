"""Folders that tools may read. A path is checked on the opened file, not on its name.

So links and `..` cannot lead outside an allowed folder.
"""

import errno
import os
import secrets
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from io import FileIO
from pathlib import Path

from localrun.base.files import write_whole
from localrun.base.request import Json
from localrun.base.small_file import kind_of
from localrun.tools.running_call import ToolError

_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_OPEN = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_FOLDER = _OPEN | getattr(os, "O_DIRECTORY", 0) | _NOFOLLOW
_FILE = _OPEN | _NOFOLLOW | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
CAN_WALK = os.open in os.supports_dir_fd  # where a folder can be opened within an open one


class Folders:
    """The allowed folders of this chat.

    Paths of a model are relative to the first one, or to the folder where localrun was started.
    """

    def __init__(self, allowed: Iterable[Path] = ()) -> None:
        self.allowed: list[Path] = []
        for folder in allowed:
            self.allow(folder)

    def allow(self, folder: Path) -> None:
        """Let tools read a folder. Raises ToolError where it is not one."""
        real = Path(os.path.realpath(folder))
        if not real.is_dir():
            raise ToolError(f"{folder} is not a folder", "name one that is there")
        if real not in self.allowed:
            self.allowed.append(real)

    @property
    def base(self) -> Path:
        """The folder that relative paths start from."""
        return self.allowed[0] if self.allowed else Path(os.path.realpath("."))

    def real_path(self, path: str) -> Path:
        """The absolute path that a model means, with links resolved. Raises ToolError."""
        try:
            wanted = Path(path).expanduser() if path.startswith("~") else Path(path)
            return Path(os.path.realpath(self.base / wanted))
        except (OSError, ValueError, RuntimeError) as error:  # a home that there is not, links in a circle
            raise ToolError(f"{path} is no path: {error}") from None

    def scope(self, arguments: Json) -> str:
        """The real path in the argument `path` of a tool. Raises ToolError."""
        return str(self.real_path(arguments["path"]))

    def to_ask_for(self, path: Path) -> Path:
        """The folder that a person is asked to allow for a path outside all allowed ones.

        Where localrun was started if the path is inside, else the folder of the path.
        """
        here = Path(os.path.realpath("."))
        if path.is_relative_to(here):
            return here
        return path if path.is_dir() else path.parent


def is_inside(path: Path, folders: Sequence[Path]) -> bool:
    """Whether a real path is one of these folders, or inside one."""
    return any(path.is_relative_to(folder) for folder in folders)


def open_inside(path: Path, folders: Sequence[Path]) -> FileIO:
    """Open a regular file in one of `folders` for reading.

    `path` is a real one: a link found on the way was put there since, and is not followed. Raises ToolError.
    """
    fd = _open(path, folders, _FILE)
    mode = os.fstat(fd).st_mode
    if not stat.S_ISREG(mode):
        os.close(fd)
        raise ToolError(f"{path} is {kind_of(mode)}, not a file")
    return os.fdopen(fd, "rb", buffering=0)


def list_inside(path: Path, folders: Sequence[Path]) -> list[tuple[str, os.stat_result]]:
    """Names in a folder inside `folders`, each with its stat; links are not followed."""
    if not CAN_WALK:
        _require_inside(path, folders)
        with os.scandir(path) as entries:
            return sorted((entry.name, entry.stat(follow_symlinks=False)) for entry in entries)
    fd = _open(path, folders, _FOLDER)
    found = []
    try:
        for name in sorted(os.listdir(fd)):
            with suppress(OSError):  # gone since
                found.append((name, os.stat(name, dir_fd=fd, follow_symlinks=False)))
    finally:
        os.close(fd)
    return found


def write_inside(path: Path, folders: Sequence[Path], data: bytes) -> None:
    """Replace a file in one of `folders` by `data`, completely or not at all.

    A file with other names elsewhere keeps its content under those. Raises ToolError.
    """
    try:
        if not CAN_WALK:
            _require_inside(path, folders)
            write_whole(path, data)
            return
        at = _open(path.parent, folders, _FOLDER)
        try:
            _replace_at(at, path.name, data)
        finally:
            os.close(at)
    except OSError as error:
        raise ToolError(f"{path} cannot be written: {error.strerror}") from None


def _replace_at(at: int, name: str, data: bytes) -> None:
    """Replace file `name` of the opened folder `at`; its permissions stay. Raises OSError."""
    fresh, mode = f".{secrets.token_hex(8)}.tmp", None
    with suppress(FileNotFoundError):
        mode = stat.S_IMODE(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode) & 0o777
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW, 0o666, dir_fd=at)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(fd)
            if mode is not None:
                os.chmod(fd, mode)
        os.replace(fresh, name, src_dir_fd=at, dst_dir_fd=at)
    except BaseException:
        with suppress(OSError):
            os.unlink(fresh, dir_fd=at)
        raise


def _open(path: Path, folders: Sequence[Path], flags: int) -> int:
    """Descriptor of a file or folder, opened step by step from an allowed folder."""
    folder = _require_inside(path, folders)
    try:
        if not CAN_WALK:  # the name is checked once more when it is open
            fd = os.open(path, flags)
            if Path(os.path.realpath(path)) != path:
                os.close(fd)
                raise OSError(errno.ELOOP, "it leads elsewhere now")
            return fd
        names = path.relative_to(folder).parts
        if not names:
            return os.open(folder, flags)
        at = os.open(folder, _FOLDER)
        for number, name in enumerate(names, 1):
            above = at
            try:
                at = os.open(name, flags if number == len(names) else _FOLDER, dir_fd=above)
            finally:
                os.close(above)
        return at
    except (OSError, ValueError) as error:
        raise ToolError(f"{path} cannot be opened: {getattr(error, 'strerror', None) or error}") from None


def _require_inside(path: Path, folders: Sequence[Path]) -> Path:
    folder = next((folder for folder in folders if path.is_relative_to(folder)), None)
    if folder is None:
        raise ToolError(f"{path} is outside of the folders that are allowed")
    return folder
