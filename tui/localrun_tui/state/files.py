"""Files that may go along with a message: found below a folder, within bounds, by a few letters or a glob."""

import os
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import translate
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pathspec import GitIgnoreSpec
from textual.fuzzy import FuzzySearch

from localrun.base.errors import UsageError
from localrun.base.units import gib
from localrun.chat.attachments import MAX_BYTES, Attachment, read_attachment

MOST_FILES, MOST_SECONDS = 20_000, 3.0  # of a walk
MOST_SHOWN = 40
MOST_AT_ONCE = 50  # files that a glob or a folder attaches
_PASSED_OVER = frozenset(["node_modules", "__pycache__", "venv", "site-packages"])
_BINARIES = """png jpg jpeg gif webp ico bmp mp3 mp4 mov avi wav flac ogg zip gz xz bz2 zst 7z tar whl so a o dll
exe dylib bin pyc class jar gguf safetensors pt npy npz sqlite db woff woff2 ttf otf"""
_NO_TEXT = frozenset(f".{suffix}" for suffix in _BINARIES.split())
_LOOK_BYTES, _LOOK_LINES = 2048, 7
_SCORED = 400  # of those that have the letters in their order, the shortest


@dataclass(frozen=True, slots=True)
class Found:
    """A file or a folder; `name` is the path below where the search began, `/` at the end of a folder's."""

    path: Path
    name: str
    n_bytes: int = 0

    @property
    def is_folder(self) -> bool:
        return self.name.endswith("/")


@dataclass(frozen=True, slots=True)
class Files:
    """What there is below `root`; not `is_whole` where there is too much for one look."""

    root: Path
    found: tuple[Found, ...]
    is_whole: bool = True


def walk(root: Path, most: int = MOST_FILES, seconds: float = MOST_SECONDS) -> Files:
    """Files below a folder, those of upper folders first, without hidden ones and what .gitignore leaves out."""
    give_up = time.monotonic() + seconds
    found: list[Found] = []
    level: list[tuple[Path, str, tuple[tuple[str, GitIgnoreSpec], ...]]] = [(root, "", ())]
    while level:
        below = []
        for folder, prefix, ignored in level:
            ignored = (*ignored, *_gitignore(folder, prefix))
            for entry in _entries(folder):
                if len(found) >= most or time.monotonic() > give_up:
                    return Files(root, tuple(found), is_whole=False)
                one = _look(entry, prefix, ignored)
                if one is None:
                    continue
                found.append(one)
                if one.is_folder:
                    below.append((one.path, one.name, ignored))
        level = below
    return Files(root, tuple(found))


def matching(files: Files, wanted: str, most: int = MOST_SHOWN) -> list[Found]:
    """Those that a glob means, that lie in a folder which is named, or that have the letters in their order."""
    if _is_glob(wanted):
        return [one for one in files.found if not one.is_folder and _fits(wanted, one.name)]
    if not wanted or wanted.endswith("/"):
        inside = [one for one in files.found if one.name.startswith(wanted) and one.name != wanted]
        return sorted(inside, key=lambda one: (one.name.rstrip("/").count("/"), one.name))[:most]
    letters = re.compile(".*?".join(map(re.escape, wanted)), re.I)
    near = sorted((one for one in files.found if letters.search(one.name)), key=lambda one: len(one.name))[:_SCORED]
    search = FuzzySearch()
    scores = {one.name: search.match(wanted, one.name)[0] + _begins(wanted, one.name) for one in near}
    return sorted(near, key=lambda one: (-scores[one.name], len(one.name)))[:most]


def place_of(wanted: str, here: Path) -> tuple[Path, str]:
    """Where to look, and for what: what is typed may lead out of the folder `here`, by /, ~ or .."""
    folder, _, rest = wanted.rpartition("/")
    if wanted.startswith(("/", "~", "../")) and "/" in wanted:
        root = Path(f"{folder}/").expanduser()
        return (root if root.is_absolute() else here / root), rest
    return here, wanted


def read_all(files: Sequence[Found]) -> list[Attachment]:
    """What a glob or a folder means, each by the name it was found by; files without text are left out. UsageError
    where it is too much, or nothing."""
    if len(files) > MOST_AT_ONCE:
        raise UsageError(f"these are {len(files):,} files; {MOST_AT_ONCE} are the most at once", "choose fewer")
    read: list[Attachment] = []
    problem: UsageError | None = None
    for one in files:
        try:
            read.append(Attachment(one.name, read_attachment(one.path).text))
        except UsageError as error:
            problem = error
        if sum(len(each.text) for each in read) > MAX_BYTES:
            raise UsageError("these files are too much text for one message", "choose fewer")
    if not read:
        raise problem or UsageError("there is no text file among them", "choose another folder")
    return read


def look_at(files: Sequence[Found]) -> str:
    """How a file begins, with its size above; of several, their names."""
    if len(files) != 1 or files[0].is_folder:
        return "\n".join(one.name for one in files[:_LOOK_LINES]) if len(files) > 1 else ""
    (one,) = files
    try:
        with one.path.open("rb") as file:
            data = file.read(_LOOK_BYTES)
    except OSError as error:
        return f"{gib(one.n_bytes)}\n{error.strerror}"
    if data.startswith(b"%PDF-"):
        return f"{gib(one.n_bytes)} PDF\nits text goes along"
    if b"\0" in data:
        return f"{gib(one.n_bytes)}\nnot text"
    lines = data.decode("utf-8", "replace").splitlines()[:_LOOK_LINES]
    return "\n".join([f"{gib(one.n_bytes)}", *lines])


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


def _entries(folder: Path) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []


def _look(entry: "os.DirEntry[str]", prefix: str, ignored: tuple[tuple[str, GitIgnoreSpec], ...]) -> Found | None:
    """None for what is passed over. A link to a folder may lead round in a circle."""
    name = entry.name
    if name.startswith(".") or name in _PASSED_OVER or not name.isprintable():
        return None
    try:
        is_folder = entry.is_dir(follow_symlinks=False)
        if not is_folder and (not entry.is_file() or os.path.splitext(name)[1].lower() in _NO_TEXT):
            return None
        path = f"{prefix}{name}{'/' if is_folder else ''}"
        if any(spec.match_file(path.removeprefix(base)) for base, spec in ignored):
            return None
        return Found(Path(entry.path), path, 0 if is_folder else entry.stat().st_size)
    except OSError:
        return None


def _gitignore(folder: Path, prefix: str) -> Iterator[tuple[str, GitIgnoreSpec]]:
    try:
        yield prefix, GitIgnoreSpec.from_lines((folder / ".gitignore").read_text("utf-8").splitlines())
    except (OSError, ValueError):
        return


def _is_glob(wanted: str) -> bool:
    return any(sign in wanted for sign in "*?[")


def _fits(glob: str, name: str) -> bool:
    """A glob without a folder means names in any folder."""
    return re.match(translate(glob), name if "/" in glob else name.rpartition("/")[2]) is not None


def _begins(wanted: str, name: str) -> float:
    """More for a file whose own name begins so."""
    return 2.0 * name.rstrip("/").rpartition("/")[2].lower().startswith(wanted.lower())
