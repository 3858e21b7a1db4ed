"""Files that may go along with a message: found below a folder, within bounds, by a path, a glob or a folder."""

import os
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import translate
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from localrun.base.content import FilePart
from localrun.base.errors import UsageError
from localrun.base.small_file import read_small
from localrun.chat.attachments import MAX_BYTES, read_attachment

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

MOST_FILES, MOST_SECONDS = 20_000, 3.0  # of a walk
MOST_AT_ONCE = 50  # files that a glob or a folder attaches
_PASSED_OVER = frozenset(["node_modules", "__pycache__", "venv", "site-packages"])
_BINARIES = """png jpg jpeg gif webp ico bmp mp3 mp4 mov avi wav flac ogg zip gz xz bz2 zst 7z tar whl so a o dll
exe dylib bin pyc class jar gguf safetensors pt npy npz sqlite db woff woff2 ttf otf"""
_NO_TEXT = frozenset(f".{suffix}" for suffix in _BINARIES.split())


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


def walk(root: Path, below: str = "", most: int = MOST_FILES, seconds: float = MOST_SECONDS) -> Files:
    """Files below a folder, those of upper folders first, without hidden ones and what .gitignore leaves out. `below`
    is the folder in it to begin with, / at its end."""
    give_up = time.monotonic() + seconds
    found: list[Found] = []
    above = ["", *accumulate(part + "/" for part in below.split("/")[:-1])][:-1] if below else []
    upper = tuple(spec for prefix in above for spec in _gitignore(root / prefix, prefix))
    level: list[tuple[Path, str, tuple[tuple[str, GitIgnoreSpec], ...]]] = [(root / below, below, upper)]
    while level:
        lower = []
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
                    lower.append((one.path, one.name, ignored))
        level = lower
    return Files(root, tuple(found))


def place_of(wanted: str, here: Path) -> tuple[Path, str]:
    """Where to look, and for what: what is typed may lead out of the folder `here`, by /, ~ or .."""
    folder, _, rest = wanted.rpartition("/")
    if wanted.startswith(("/", "~", "../")) and "/" in wanted:
        root = Path(f"{folder}/").expanduser()
        return (root if root.is_absolute() else here / root), rest
    return here, wanted


def read_all(files: Sequence[Found]) -> list[FilePart]:
    """What a glob or a folder means, each by the name it was found by; files without text are left out. UsageError
    where it is too much, or nothing."""
    if len(files) > MOST_AT_ONCE:
        raise UsageError(f"these are {len(files):,} files; {MOST_AT_ONCE} are the most at once", "choose fewer")
    read: list[FilePart] = []
    problem: UsageError | None = None
    for one in files:
        try:
            read.append(FilePart(one.name, read_attachment(one.path).text))
        except UsageError as error:
            problem = error
        if sum(len(each.text) for each in read) > MAX_BYTES:
            raise UsageError("these files are too much text for one message", "choose fewer")
    if not read:
        raise problem or UsageError("there is no text file among them", "choose another folder")
    return read


def read_files(wanted: str, here: Path) -> list[FilePart]:
    """The files that a path, a glob or a folder means, as one types it in `here`. UsageError where that is none."""
    try:
        root, rest = place_of(wanted, here)
        path = root / rest
        if not is_glob(rest) and not path.is_dir():
            return [read_attachment(path)]
        files = walk(root if is_glob(rest) else path)
    except (OSError, ValueError, RuntimeError) as error:  # also the home of a user whom there is not
        raise UsageError(f"{wanted} cannot be read: {error}", "check the path") from None
    found = [one for one in files.found if not one.is_folder and (not is_glob(rest) or fits(rest, one.name))]
    if not files.is_whole:
        raise UsageError(f"there are too many files below {files.root}", "name a folder further down")
    if not found:
        raise UsageError(f"there is no file {wanted}", "check the path")
    return read_all(found)


def _entries(folder: Path) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []


def _look(entry: "os.DirEntry[str]", prefix: str, ignored: tuple[tuple[str, "GitIgnoreSpec"], ...]) -> Found | None:
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


def _gitignore(folder: Path, prefix: str) -> Iterator[tuple[str, "GitIgnoreSpec"]]:
    from pathspec import GitIgnoreSpec  # who starts to chat may never walk a folder

    try:
        yield prefix, GitIgnoreSpec.from_lines(read_small(folder / ".gitignore", MAX_BYTES).decode().splitlines())
    except (OSError, ValueError):
        return


def is_glob(wanted: str) -> bool:
    """Whether this means all files that look so."""
    return any(sign in wanted for sign in "*?[")


def fits(glob: str, name: str) -> bool:
    """Whether a glob means a file; one without a folder means names in any folder."""
    return re.match(translate(glob), name if "/" in glob else name.rpartition("/")[2]) is not None
