"""Where localrun keeps its own files. LOCALRUN_HOME puts everything under one folder; nothing needs to exist."""

import os
import tempfile
from pathlib import Path
from typing import Literal

from platformdirs import PlatformDirs

from localrun.base.errors import UsageError
from localrun.base.files import make_private

FolderKind = Literal["config", "chats", "models", "cache", "logs"]
PRIVATE: tuple[FolderKind, ...] = ("chats", "cache", "logs")  # others may share models, and the folder of everything

_WHAT_IS_LOST: dict[FolderKind, str] = {
    "config": "settings are not kept",
    "chats": "chats are not kept",
    "models": "models cannot be stored",
    "cache": "nothing is cached, so the next start is slower",
    "logs": "no log is written",
}


def folder(kind: FolderKind) -> Path | None:
    """Where files of this kind belong, existing or not; None when there is no home folder to put them in. UsageError
    for a LOCALRUN_HOME that is no path."""
    home = os.environ.get("LOCALRUN_HOME")
    if home:
        try:
            root = Path(home).expanduser().absolute()
        except (OSError, RuntimeError):  # relative to a folder that was deleted, or in an unknown home
            raise UsageError(f"LOCALRUN_HOME points to nothing: {home}", "set it to an absolute path") from None
        return root if kind == "config" else root / kind
    if os.path.expanduser("~").startswith("~"):  # no HOME and no entry in the user database
        return None
    dirs = PlatformDirs("localrun", appauthor=False)
    return {
        "config": dirs.user_config_path,
        "chats": dirs.user_data_path / "chats",
        "models": dirs.user_data_path / "models",
        "cache": dirs.user_cache_path,
        "logs": dirs.user_log_path,
    }[kind]


def writable_folder(kind: FolderKind) -> Path | None:
    """`folder(kind)`, made if need be and readable by its owner only; None when nothing can be written there.

    One that holds what was said and that others may read is closed to them.
    """
    path = folder(kind)
    if path is None:
        return None
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        if kind in PRIVATE:
            make_private(path)
        with tempfile.TemporaryFile(dir=path):
            return path
    except OSError:
        return None


def what_is_not_kept(kind: FolderKind) -> str:
    """One sentence for the user when `writable_folder(kind)` is None."""
    path = folder(kind)
    where = f"cannot write to {path}" if path else "there is no home folder (set HOME or LOCALRUN_HOME)"
    return f"{where}: {_WHAT_IS_LOST[kind]}"
