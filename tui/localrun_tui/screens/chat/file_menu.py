"""Files behind an @: what is offered for the letters that follow it, and a look at one."""

import re
import time
from collections.abc import Sequence
from pathlib import Path

from textual.content import Content

from localrun.base.errors import UsageError
from localrun.chat.attachments import about_tokens
from localrun_tui.screens.chat.suggestions import Suggestion
from localrun_tui.state.files import MOST_FILES, Files, Found, matching, place_of, walk
from localrun_tui.widgets.columns import say

_BEHIND_AT = re.compile(r"(?:^|(?<=\s))@(\S*)\Z")
_FRESH = 20.0  # seconds for which a walk holds


def behind_at(before_cursor: str) -> str | None:
    """What was typed behind an @ that begins a word; None elsewhere, as in an address of mail."""
    match = _BEHIND_AT.search(before_cursor)
    return match[1] if match else None


class FileMenu:
    """Looks below the folder `here`, or where what is typed leads. Every method is slow: call it on a thread."""

    def __init__(self, here: Path) -> None:
        self._here = here
        self._files: Files | None = None
        self._walked = 0.0

    def offers(self, wanted: str) -> list[Suggestion]:
        """Rows for what was typed behind the @; the first of a glob stands for all that it means."""
        root, rest = place_of(wanted, self._here)
        files = self._files
        if files is None or files.root != root or time.monotonic() - self._walked > _FRESH:
            files, self._walked = walk(root), time.monotonic()
            self._files = files
        found = matching(files, rest)
        rows = [offer(one, f"@{wanted}") for one in found[:40]]
        if len(found) > 1 and not rest.isalnum() and any(sign in rest for sign in "*?["):
            rows.insert(0, _all_of(found, wanted))
        if not files.is_whole and rows:
            note = Content.styled(f"only the first {MOST_FILES:,} files were looked at", "$text-warning")
            rows.append(Suggestion("", note))
        return rows

    def inside(self, folder: Found) -> list[Found]:
        """The files in a folder that was offered, and in those below it."""
        files = self._files.found if self._files else ()
        return [one for one in files if one.name.startswith(folder.name) and not one.is_folder]


def offer(one: Found, replaces: str, words: str = "") -> Suggestion:
    """A row for a file or a folder, in whose place `replaces` stands in the text."""
    size = "folder" if one.is_folder else f"≈{about_tokens(one.n_bytes):,} tokens"
    row = Content.assemble(say(f"{words}{one.name}", "bold"), (f"  {size}", "$foreground-muted"))
    return Suggestion(one.name, row, replaces=replaces, files=(one,))


def _all_of(found: Sequence[Found], wanted: str) -> Suggestion:
    tokens = sum(about_tokens(one.n_bytes) for one in found)
    row = Content.styled(f"all {len(found)} files  ≈{tokens:,} tokens", "bold")
    return Suggestion(wanted, row, replaces=f"@{wanted}", files=tuple(found))


def all_files(menu: FileMenu, files: Sequence[Found]) -> list[Found]:
    """The files that a choice means: a folder's are those in it. UsageError where there are none."""
    found = [each for one in files for each in (menu.inside(one) if one.is_folder else [one])]
    if not found:
        raise UsageError("there is no text file in this folder", "choose another one")
    return found
