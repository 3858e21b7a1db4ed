"""Files with the same bytes on one disk: found by hash, which is computed only for files of equal size."""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from localrun.hub.disk.stored import StoredModel

_NAMED_BY_HASH = re.compile(r"(?:sha256-)?([0-9a-f]{64})")


def find_duplicates(models: Iterable[StoredModel], read: bool = False) -> list[list[StoredModel]]:
    """Groups of single-file models that hold the same bytes in different places; the largest first.

    The caches of Hugging Face and Ollama name files by their sha256, so these cost nothing. With `read`, other files of
    equal size are hashed (about a second per GiB).
    """
    by_size: dict[int, dict[tuple[int, int], StoredModel]] = defaultdict(dict)
    for model in models:
        if model.path.is_file():
            stat = model.path.stat()
            by_size[stat.st_size].setdefault((stat.st_dev, stat.st_ino), model)
    groups: dict[str, list[StoredModel]] = defaultdict(list)
    for same_size in by_size.values():
        for model in same_size.values() if len(same_size) > 1 else ():
            digest = content_hash(model.path, read)
            if digest:
                groups[digest].append(model)
    found = [group for group in groups.values() if len(group) > 1]
    return sorted(found, key=lambda group: -reclaimable(group))


def reclaimable(group: list[StoredModel]) -> int:
    """Bytes that would be free if one copy of the group stayed."""
    return group[0].path.stat().st_size * (len(group) - 1)


def content_hash(path: Path, read: bool) -> str:
    """sha256 of a file: from a name that is one, else by reading the file; empty without `read`."""
    named = _NAMED_BY_HASH.fullmatch(path.resolve().name)
    if named:
        return named[1]
    if not read:
        return ""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
