"""Files to attach: found in a folder within limits, by a path, a glob or a folder."""

import os
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import translate
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from localrun.base.content import Attachment, FilePart
from localrun.base.dataclass import dataclass
from localrun.base.errors import ImageError, UsageError
from localrun.base.image_file import is_image_name
from localrun.base.sanitize import clean
from localrun.base.small_file import read_small
from localrun.chat.attachments import MAX_BYTES, read_attachment
from localrun.chat.images import ImageShelf
from localrun.chat.left_out import Attached, LeftOut, TooLongError, UnreadError, left_out_words
from localrun.chat.long_text.condensed_file import ReadingWatch, unwatched
from localrun.chat.long_text.part_of_text import TextRange, split_part

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

MOST_FILES, MOST_SECONDS = 20_000, 3.0  # of a walk
MOST_AT_ONCE = 50  # files that a glob or a folder attaches
_PASSED_OVER = frozenset(["node_modules", "__pycache__", "venv", "site-packages"])
_BINARIES = """ico mp3 mp4 mov avi wav flac ogg zip gz xz bz2 zst 7z tar whl so a o dll
exe dylib bin pyc class jar gguf safetensors pt npy npz sqlite db woff woff2 ttf otf"""
_NO_TEXT = frozenset(f".{suffix}" for suffix in _BINARIES.split())


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file or a folder; `name` is its path in the searched folder, with a `/` at the end for a folder."""

    path: Path
    name: str
    n_bytes: int = 0
    part: TextRange | None = None  # only this of it

    @property
    def is_folder(self) -> bool:
        return self.name.endswith("/")

    @property
    def is_image(self) -> bool:
        return is_image_name(self.name)


@dataclass(frozen=True, slots=True)
class Files:
    """Files in `root`; not `is_whole` where there are too many for one search."""

    root: Path
    found: tuple[FoundFile, ...]
    is_whole: bool = True
    left_out: tuple[LeftOut, ...] = ()  # what has no text by its name, or cannot be looked at

    def below(self, folder: str) -> "Files":
        """The same files by their paths from further up; `folder` ends with a `/`, or is empty."""
        found = tuple(replace(one, name=folder + one.name) for one in self.found)
        return replace(self, found=found, left_out=tuple(replace(one, name=folder + one.name) for one in self.left_out))

    def fitting(self, glob: str = "*") -> "Files":
        """The files that match a glob, without folders, and images only where it ends as their names do.

        Folders that were left out stay listed, as they may hold matches.
        """
        fitting = [one for one in self.found if not one.is_folder and fits(glob, one.name)]
        found = tuple(one for one in fitting if not one.is_image or is_image_name(glob))
        images = [LeftOut(one.name, "is an image: name it to attach it") for one in fitting if one not in found]
        left_out = (*(one for one in self.left_out if one.name.endswith("/") or fits(glob, one.name)), *images)
        return replace(self, found=found, left_out=left_out)


def walk(root: Path, below: str = "", most: int = MOST_FILES, seconds: float = MOST_SECONDS) -> Files:
    """Files in a folder, those of upper folders first, without hidden ones and those that .gitignore excludes.

    `below` is the subfolder to begin with, with / at its end.
    """
    give_up = time.monotonic() + seconds
    found: list[FoundFile] = []
    left_out: list[LeftOut] = []
    above = ["", *accumulate(part + "/" for part in below.split("/")[:-1])][:-1] if below else []
    upper = tuple(spec for prefix in above for spec in _gitignore(root / prefix, prefix))
    level: list[tuple[Path, str, tuple[tuple[str, GitIgnoreSpec], ...]]] = [(root / below, below, upper)]
    while level:
        lower = []
        for folder, prefix, ignored in level:
            ignored = (*ignored, *_gitignore(folder, prefix))
            try:
                entries = _entries(folder)
            except OSError:
                left_out.append(LeftOut(prefix or f"{folder.name}/", "cannot be opened"))
                continue
            for entry in entries:
                if len(found) >= most or time.monotonic() > give_up:
                    return Files(root, tuple(found), is_whole=False, left_out=tuple(left_out))
                match _look(entry, prefix, ignored):
                    case LeftOut() as one:
                        left_out.append(one)
                    case FoundFile() as one:
                        found.append(one)
                        if one.is_folder:
                            lower.append((one.path, one.name, ignored))
        level = lower
    return Files(root, tuple(found), left_out=tuple(left_out))


def place_of(wanted: str, here: Path) -> tuple[Path, str]:
    """The folder to search and the pattern to search for; `wanted` may leave the folder `here` by /, ~ or .."""
    folder, _, rest = wanted.rpartition("/")
    if wanted.startswith(("/", "~", "../")) and "/" in wanted:
        root = Path(f"{folder}/").expanduser()
        return (root if root.is_absolute() else here / root), rest
    return here, wanted


def read_found(chosen: Sequence[FoundFile], shelf: ImageShelf, watch: ReadingWatch = unwatched) -> Attached:
    """Read the chosen files by their names, and all text files in chosen folders. UsageError for too many, or none."""
    files: list[FoundFile] = []
    left_out: list[LeftOut] = []
    for one in chosen:
        if one.is_folder:
            inside = walk(one.path.parents[one.name[:-1].count("/")], one.name).fitting()
            _require_whole(inside, one.name)
            files += inside.found
            left_out += inside.left_out
        else:
            files.append(one)
    return _read_all(files, left_out, shelf, watch)


def read_files(wanted: str, here: Path, shelf: ImageShelf, watch: ReadingWatch = unwatched) -> Attached:
    """Read the files that a path, a glob or a folder typed in `here` means, or a part of a file, as in `log:-200`.

    Those in `here` have the same name however they are chosen: their path from there. UsageError where there are none.
    """
    try:
        root, rest = place_of(wanted, here)
        path = root / rest
        if not path.exists() and (named := part_of_file(wanted, here)) is not None:
            return Attached([_under(_inside(named[0].parent, here), read_attachment(*named, watch))])
        if path.is_file() or (not is_glob(rest) and not path.is_dir()):
            return Attached([_under(_inside(path.parent, here), read_one(path, shelf))])
        if path.is_dir():
            files = walk(path).fitting().below(_inside(path, here))
        else:
            files = walk(root).fitting(rest).below(_inside(root, here))
    except (OSError, ValueError, RuntimeError) as error:  # also the home of a user whom there is not
        raise UsageError(f"{wanted} cannot be read: {error}", "check the path") from None
    _require_whole(files, str(files.root))
    if not files.found and not files.left_out:
        raise UsageError(f"there is no file {wanted}", "check the path")
    return _read_all(files.found, files.left_out, shelf)


def read_one(path: Path, shelf: ImageShelf) -> Attachment:
    """Read one text file, or keep one image. Raises UsageError."""
    return shelf.attach(path) if is_image_name(path.name) and path.is_file() else read_attachment(path)


def _inside(folder: Path, here: Path) -> str:
    """The path of a folder from `here` on, with a `/` at its end; empty for `here` itself and for one elsewhere."""
    path = os.path.relpath(folder, here).replace(os.sep, "/")
    return "" if path == "." or path.split("/")[0] == ".." else f"{path}/"


def _under(folder: str, read: Attachment) -> Attachment:
    """A text by its path from further up."""
    return replace(read, name=clean(folder, keep_newlines=False) + read.name) if isinstance(read, FilePart) else read


def part_of_file(wanted: str, here: Path) -> tuple[Path, TextRange] | None:
    """A file and the part of it that is named behind; None where none is."""
    typed, part = split_part(wanted)
    root, rest = place_of(typed, here)
    return (root / rest, part) if part is not None and (root / rest).is_file() else None


def _require_whole(files: Files, name: str) -> None:
    if not files.is_whole:
        raise UsageError(f"there are too many files below {name}", "name a folder further down")


def _read_all(
    files: Sequence[FoundFile], passed: Sequence[LeftOut], shelf: ImageShelf, watch: ReadingWatch = unwatched
) -> Attached:
    """Read texts and images; `passed` were left out before."""
    if len(files) > MOST_AT_ONCE:
        raise UsageError(f"these are {len(files):,} files; {MOST_AT_ONCE} are the most at once", "choose fewer")
    read: list[Attachment] = []
    n_read = 0  # characters
    left_out: list[LeftOut] = []
    for one in files:
        try:
            part = read_attachment(one.path, one.part, watch) if one.part else read_one(one.path, shelf)
            if isinstance(part, FilePart):
                part = replace(part, name=one.name)
                n_read += len(part.text)
            read.append(part)
        except ImageError as error:
            if len(files) == 1 and not passed:
                raise
            left_out.append(LeftOut(one.name, f"cannot be seen: {error.message}"))
        except UnreadError as error:
            if len(files) == 1 and not passed:
                raise
            way = " (/read reads it in parts)" if isinstance(error, TooLongError) else ""
            left_out.append(LeftOut(one.name, error.why + way))
        if n_read > MAX_BYTES:
            raise UsageError("these files are too much text for one message", "choose fewer")
    words = left_out_words([*left_out, *passed], len(files) + len(passed))
    if not read:
        raise UsageError(f"there is no text file among them{words and f' ({words})'}", "choose another folder")
    return Attached(read, words)


def _entries(folder: Path) -> list["os.DirEntry[str]"]:
    with os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: entry.name)


def _look(
    entry: "os.DirEntry[str]", prefix: str, ignored: tuple[tuple[str, "GitIgnoreSpec"], ...]
) -> FoundFile | LeftOut | None:
    """Look at one entry; None where it is skipped. Links to folders are skipped, as they may form a cycle."""
    name = entry.name
    if name.startswith(".") or name in _PASSED_OVER:
        return None
    try:
        is_folder = entry.is_dir(follow_symlinks=False)
        path = f"{prefix}{name}{'/' if is_folder else ''}"
        if any(spec.match_file(path.removeprefix(base)) for base, spec in ignored):
            return None
        if not name.isprintable():
            return LeftOut(path, "has a name that cannot be shown")
        if not is_folder and entry.is_dir():
            return LeftOut(f"{path}/", "is a link to a folder")
        if not is_folder and not entry.is_file():
            return LeftOut(path, "is not a file")
        if not is_folder and os.path.splitext(name)[1].lower() in _NO_TEXT:
            return LeftOut(path, "is not text")
        return FoundFile(Path(entry.path), path, 0 if is_folder else entry.stat().st_size)
    except OSError:
        return LeftOut(f"{prefix}{name}", "cannot be read")


def _gitignore(folder: Path, prefix: str) -> Iterator[tuple[str, "GitIgnoreSpec"]]:
    from pathspec import GitIgnoreSpec  # who starts to chat may never walk a folder

    try:
        yield prefix, GitIgnoreSpec.from_lines(read_small(folder / ".gitignore", MAX_BYTES).decode().splitlines())
    except (OSError, ValueError):
        return


def may_be_attached(name: str) -> bool:
    """Whether a file or folder of this name is looked at: not a hidden one, nor what a build leaves, nor a binary that
    is no image."""
    return not name.startswith(".") and name not in _PASSED_OVER and os.path.splitext(name)[1].lower() not in _NO_TEXT


def is_glob(wanted: str) -> bool:
    """Whether the text is a glob."""
    return any(sign in wanted for sign in "*?[")


def fits(glob: str, name: str) -> bool:
    """Whether a glob matches a file; one without a folder matches names in any folder."""
    return re.match(translate(glob), name if "/" in glob else name.rpartition("/")[2]) is not None
