"""Files of our own: nobody else's to read, and never half written."""

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def make_private(at: Path | int) -> None:
    """Take the rights of other users from a file or folder, or an open one, where it has any and is ours."""
    if os.name == "posix":
        with suppress(OSError):
            mode = stat.S_IMODE(os.stat(at).st_mode)
            if mode & _OTHERS:
                os.chmod(at, mode & ~_OTHERS)


def write_whole(path: Path, text: str) -> None:
    """Put `text` in the place of a file, all of it or, with OSError, none. What a link leads to is written, not it."""
    path = Path(os.path.realpath(path))
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as file:  # mode 0600
        fresh = Path(file.name)
        try:
            file.write(text)
            file.close()
            os.replace(fresh, path)
        except BaseException:
            with suppress(OSError):
                fresh.unlink()
            raise
