"""Text of files that a tool may read, with a limit; other files are refused."""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from localrun.base.dataclass import dataclass
from localrun.tools.folders import Folders, open_inside
from localrun.tools.running_call import RunningCall, ToolError

MAX_FILE = 8 << 20  # bytes that are read of a file
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class FileText:
    """A file as it was read; `digest` tells whether it has changed."""

    path: Path
    text: str
    digest: str


def read_bytes(path: Path, folders: Sequence[Path], call: RunningCall | None = None) -> bytes:
    """Read a whole file. Raises ToolError for one outside the folders, not regular, or too large."""
    data = bytearray()
    with open_inside(path, folders) as file:
        try:
            while chunk := file.read(_CHUNK):
                data += chunk
                if len(data) > MAX_FILE:
                    raise ToolError(f"{path} has more than {MAX_FILE:,} bytes", "grep finds lines in a smaller one")
                if call is not None:
                    call.check()
        except OSError as error:
            raise ToolError(f"{path} cannot be read: {error.strerror}") from None
    return bytes(data)


def read_text(path: Path, folders: Sequence[Path], call: RunningCall | None = None) -> FileText:
    """Read a text file. Raises ToolError also for one that is not UTF-8."""
    data = read_bytes(path, folders, call)
    text = as_text(data)
    if text is None:
        raise ToolError(f"{path} is not a text file")
    return FileText(path, text, hashlib.sha256(data).hexdigest())


def as_text(data: bytes) -> str | None:
    """Decode a file; None where it is not text."""
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


def lines_of(text: str) -> list[str]:
    """Lines with their ends; only a line feed ends one, as in editors and compilers."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def shown_path(path: Path, folders: Folders) -> str:
    """A path as the model sees it: relative to the base of its own paths, if it is inside."""
    return str(path.relative_to(folders.base)) if path.is_relative_to(folders.base) else str(path)
