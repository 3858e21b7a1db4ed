"""Files by a few letters, dropped on the terminal, or previewed."""

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from textual.fuzzy import FuzzySearch

from localrun.base.text_encoding import encoding_of
from localrun.base.units import gib
from localrun.chat.files import Files, FoundFile, is_glob

MOST_SHOWN = 40
MOST_DROPPED = 1000  # paths in one paste
_PATH_BEGINS = ("/", "~", "'", '"', "file://", "\\") if os.name == "posix" else ("",)
_LOOK_BYTES, _LOOK_LINES = 2048, 7
_SCORED = 400  # of those that have the letters in their order, the shortest


def matching(files: Files, wanted: str, most: int = MOST_SHOWN) -> list[FoundFile]:
    """Files that match a glob, lie in a named folder, or have the letters in their order."""
    if is_glob(wanted):
        return list(files.fitting(wanted).found)
    if not wanted or wanted.endswith("/"):
        inside = [one for one in files.found if one.name.startswith(wanted) and one.name != wanted]
        return sorted(inside, key=lambda one: (one.name.rstrip("/").count("/"), one.name))[:most]
    letters = re.compile(".*?".join(map(re.escape, wanted)), re.I)
    near = sorted((one for one in files.found if letters.search(one.name)), key=lambda one: len(one.name))[:_SCORED]
    search = FuzzySearch()
    scores = {one.name: search.match(wanted, one.name)[0] + _begins(wanted, one.name) for one in near}
    return sorted(near, key=lambda one: (-scores[one.name], len(one.name)))[:most]


def look_at(files: Sequence[FoundFile]) -> str:
    """How a file begins, with its size above; of several, their names."""
    if len(files) != 1 or files[0].is_folder:
        return "\n".join(one.name for one in files[:_LOOK_LINES]) if len(files) > 1 else ""
    (one,) = files
    if one.is_image:
        return f"{gib(one.n_bytes)} image\nfor a model that sees"
    try:
        with one.path.open("rb") as file:
            data = file.read(_LOOK_BYTES)
    except OSError as error:
        return f"{gib(one.n_bytes)}\n{error.strerror}"
    if data.startswith(b"%PDF-"):
        return f"{gib(one.n_bytes)} PDF\nits text goes along"
    text = data.decode(encoding_of(data), "replace")
    if "\0" in text:
        return f"{gib(one.n_bytes)}\nnot text"
    lines = text.splitlines()[:_LOOK_LINES]
    return "\n".join([f"{gib(one.n_bytes)}", *lines])


def dropped_paths(text: str) -> list[Path]:
    """The files whose paths were pasted or dropped, a line each or in a row of words; none where one is no file, or
    where there are more than MOST_DROPPED."""
    lines = [line for line in text.strip().split("\n") if line.strip()]
    if not 0 < len(lines) <= MOST_DROPPED or not text.lstrip().startswith(_PATH_BEGINS):
        return []
    found = [dropped_path(line) for line in lines]
    if found == [None]:  # several files in one line, as terminals type them
        try:
            words = shlex.split(lines[0]) if os.name == "posix" else []
        except ValueError:  # a quote that is not closed
            words = []
        found = [dropped_path(shlex.quote(word)) for word in words[: MOST_DROPPED + 1]]
    return [path for path in found if path] if None not in found and len(found) <= MOST_DROPPED else []


def dropped_path(text: str) -> Path | None:
    """The path that a terminal types when a file is dropped on it: in quotes, with backslashes, or as a file: URL."""
    text = text.strip()
    if not text or "\n" in text or len(text) > 4096:
        return None
    if text.startswith("file://"):
        text = unquote(urlsplit(text).path)
    elif text[0] == text[-1] and text[0] in "'\"" and len(text) > 2:
        text = text[1:-1]
    else:
        text = re.sub(r"\\(.)", r"\1", text) if os.name == "posix" else text
    try:
        path = Path(text).expanduser()
        return path if path.is_absolute() and path.is_file() else None
    except (OSError, ValueError, RuntimeError):
        return None


def _begins(wanted: str, name: str) -> float:
    """More for a file whose own name begins so."""
    return 2.0 * name.rstrip("/").rpartition("/")[2].lower().startswith(wanted.lower())
