"""Checks of names from the hub before they become part of a path on disk."""

import re
from pathlib import PureWindowsPath

_REPO = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9_][\w.-]{0,95}", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{40}")
_ETAG = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_FORBIDDEN = frozenset('\\:*?"<>|')
_DEVICE = re.compile(r"(con|prn|aux|nul|com\d|lpt\d|conin\$|conout\$)(\..*)?", re.IGNORECASE)


def is_repo(name: str) -> bool:
    """Whether `name` is `org/name` as the hub allows it: no `..`, and no `--`, which the cache uses as separator."""
    return bool(_REPO.fullmatch(name)) and ".." not in name and "--" not in name and not name.endswith((".git", "."))


def is_file(path: str) -> bool:
    """Whether `path` is relative, stays inside its folder, and means the same on every system."""
    return 0 < len(path) <= 1024 and path.isprintable() and all(map(_is_plain, path.split("/")))


def is_commit(text: str) -> bool:
    return bool(_COMMIT.fullmatch(text))


def is_etag(text: str) -> bool:
    """Whether `text` is a sha256 or the id of a git blob."""
    return bool(_ETAG.fullmatch(text))


def _is_plain(part: str) -> bool:
    return (
        part not in ("", ".", "..")
        and len(part.encode(errors="replace")) <= 240
        and not set(part) & _FORBIDDEN
        and part[-1] not in ". "
        and not _DEVICE.fullmatch(part)
        and PureWindowsPath(part).name == part
    )
