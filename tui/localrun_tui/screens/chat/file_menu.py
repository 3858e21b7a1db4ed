"""Files behind an @: suggestions for the letters that follow, and a preview."""

import re
import time
from collections.abc import Sequence
from pathlib import Path

from textual.content import Content

from localrun.base.errors import UsageError
from localrun.base.units import gib
from localrun.chat.attachments import MAX_BYTES
from localrun.chat.files import MOST_AT_ONCE, Files, FoundFile, is_glob, part_of_file, place_of, walk
from localrun.chat.long_text.part_of_text import TextRange
from localrun.chat.token_estimate import about_tokens_of_file
from localrun_tui.screens.chat.suggestions import Suggestion
from localrun_tui.state.files import MOST_SHOWN, dropped_paths, matching
from localrun_tui.widgets.columns import say

_BEHIND_AT = re.compile(r'(?:^|(?<=\s))@("[^"]*|\S*)\Z')
_FRESH = 20.0  # seconds for which a walk is used again


def behind_at(before_cursor: str) -> str | None:
    """The text behind an @ that begins a word, a quote before a name with spaces included; None elsewhere, as in
    an address of mail."""
    match = _BEHIND_AT.search(before_cursor)
    return match[1] if match else None


class FileMenu:
    """Looks below the folder `here`, or where what is typed leads. What does not await is slow: call it on a thread."""

    def __init__(self, here: Path) -> None:
        self._here = here
        self._known: dict[tuple[Path, str], tuple[Files, float]] = {}  # with the time of the walk

    def offers(self, typed: str) -> list[Suggestion]:
        """Rows for what was typed, @ included; the first of a glob stands for all that it means, that of a folder
        which is named for all that is in it. None for what cannot be: a part, the home of a user whom there is not, a
        folder that is gone."""
        try:
            return self._offers(typed.removeprefix("@"))
        except (UsageError, OSError, ValueError, RuntimeError):
            return []

    def _offers(self, typed: str) -> list[Suggestion]:
        wanted = typed.removeprefix('"')
        root, rest = place_of(wanted, self._here)
        files = self._below(root)
        if not files.is_whole and (folder := named_folder(root, rest)):  # it may have more
            files = self._below(root, folder)
        found, lead = matching(files, rest), wanted.removesuffix(rest)
        rows = [offer(one, f"@{typed}", _at(lead + one.name) if one.is_folder else "") for one in found[:MOST_SHOWN]]
        if wanted.endswith("/") and (root / rest).is_dir():
            rows[:0] = _whole_folder(root / rest, rest, f"@{typed}")
        if len(found) > 1 and not rest.isalnum() and any(sign in rest for sign in "*?["):
            rows.insert(0, _all_of(found, typed))
        if not found and (part := part_of_file(wanted, self._here)) is not None:
            rows.append(_part(part[0], part[1], f"@{typed}"))
        if not files.is_whole:
            words = f"only the first {len(files.found):,} files were looked at; @folder/ looks further down"
            rows.append(Suggestion("", Content.styled(words, "$text-warning")))
        return rows

    def _below(self, root: Path, folder: str = "") -> Files:
        files, walked = self._known.get((root, folder), (None, 0.0))
        if files is None or time.monotonic() - walked > _FRESH:
            files = walk(root, folder)
            self._known[root, folder] = files, time.monotonic()
        return files


def named_folder(root: Path, wanted: str) -> str:
    """The typed path up to its last /, where that is a folder below `root`; else empty."""
    folder = wanted[: wanted.rfind("/") + 1]
    return folder if folder and ".." not in folder and not is_glob(folder) and (root / folder).is_dir() else ""


def dropped_offer(text: str) -> list[Suggestion]:
    """The offer to attach the files whose paths were pasted, as many as go along at once; none where one is no file."""
    try:
        found = [FoundFile(path, path.name, path.stat().st_size) for path in dict.fromkeys(dropped_paths(text))]
    except OSError:
        return []
    if len(found) == 1:
        return [offer(found[0], text.strip(), words="attach ")]
    if len(found) <= MOST_AT_ONCE:
        return [_several(found, text.strip(), f"attach all {len(found)}")] if found else []
    return [_several(found[:MOST_AT_ONCE], text.strip(), f"attach the first {MOST_AT_ONCE} of {len(found):,}")]


def offer(one: FoundFile, replaces: str, leads_to: str = "", words: str = "") -> Suggestion:
    """A row for a file or a folder that replaces `replaces` in the text; Tab on a folder writes `leads_to`."""
    folder = "all of this folder" if leads_to == replaces else "folder"
    size = folder if one.is_folder else _size(one)
    row = Content.assemble(say(f"{words}{one.name}", "bold"), (f"  {size}", "$foreground-muted"))
    return Suggestion(one.name, row, replaces=replaces, leads_to=leads_to, files=(one,))


def _size(one: FoundFile) -> str:
    """The cost of a file; its bytes where they do not tell its tokens."""
    if one.is_image or _is_pdf(one):
        return f"{'image' if one.is_image else 'PDF'}, {gib(one.n_bytes)}"
    if one.n_bytes > MAX_BYTES:
        return f"{gib(one.n_bytes)}, a part of it or all in parts"
    tokens = about_tokens_of_file(one.path, one.n_bytes)
    return f"≈{tokens:,} tokens" if tokens else gib(one.n_bytes)


def _is_pdf(one: FoundFile) -> bool:
    return one.name.lower().endswith(".pdf")


def _part(path: Path, part: TextRange, replaces: str) -> Suggestion:
    """The row for a part of a file."""
    one = FoundFile(path, f"{path.name}:{part.name}", path.stat().st_size, part)
    what = "each kind once" if part.is_condensed else "this part"
    row = Content.assemble(say(one.name, "bold"), (f"  {what}", "$foreground-muted"))
    return Suggestion(one.name, row, replaces=replaces, files=(one,))


def _whole_folder(path: Path, name: str, typed: str) -> list[Suggestion]:
    """The row for the folder that was typed; none where it has no name, as /."""
    if not name:
        path = path.resolve()
        name = f"{path.name}/"
    return [offer(FoundFile(path, name), typed, typed)] if name != "/" else []


def _at(path: str) -> str:
    """How one types a path behind an @."""
    return f'@"{path}' if any(map(str.isspace, path)) else f"@{path}"


def _all_of(found: Sequence[FoundFile], wanted: str) -> Suggestion:
    return _several(found, f"@{wanted}", f"all {len(found)}")


def _several(found: Sequence[FoundFile], replaces: str, words: str) -> Suggestion:
    """A row for several files: `words`, what they are, and where they may go along at once the tokens of the texts."""
    texts = [one for one in found if not one.is_image and not _is_pdf(one)]
    tokens = sum(about_tokens_of_file(one.path, one.n_bytes) for one in texts) if len(found) <= MOST_AT_ONCE else 0
    n_images = sum(one.is_image for one in found)
    kind = "images" if n_images == len(found) else "files" if n_images else "text files"
    row = Content.styled(f"{words} {kind}" + (f"  ≈{tokens:,} tokens" if tokens else ""), "bold")
    return Suggestion(replaces, row, replaces=replaces, files=tuple(found))
