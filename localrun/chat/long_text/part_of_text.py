"""A part of a long text, as it is typed behind the name of a file: lines, the end, the lines with certain words, or the
kinds of lines."""

import re

from localrun.base.dataclass import dataclass
from localrun.base.errors import UsageError

CONDENSED = "condensed"
PARTS = "FILE:-200 is its end, FILE:100-900 these lines, FILE:/words/ lines with these, FILE:condensed alike ones once"
HOW_TO_SHORTEN = f"/read reads it in parts; {PARTS}"
AROUND = 2  # lines that go along on both sides of one with the words

_TYPED = re.compile(r"(?P<path>.+?):(?P<part>-?\d+|\d+-\d*|/.+/?|condensed)\Z", re.S)
_LINES = re.compile(r"(\d+)-?(\d*)\Z")


@dataclass(frozen=True, slots=True)
class TextRange:
    """A part of a text. `name` is how it is typed; lines count from 1."""

    name: str
    first: int = 1
    last: int | None = None  # None: to the end
    n_last: int = 0  # only so many lines before the end
    words: str = ""  # only lines with these
    is_condensed: bool = False  # alike lines once

    def first_line(self, text: str) -> int:
        """Number of the first line of this part; 1 for found lines, which have their numbers in them."""
        return max(len(text.splitlines()) - self.n_last + 1, 1) if self.n_last else self.first


def split_part(typed: str) -> tuple[str, TextRange | None]:
    """A path and the part named behind it; None where there is none. UsageError for a part that cannot be."""
    match = _TYPED.match(typed)
    return (typed, None) if match is None else (match["path"], part_of(match["part"]))


def part_of(typed: str) -> TextRange:
    """The part of a text that was typed: `-200`, `100-900`, `100-`, `/words/`, `condensed`. UsageError for anything
    else."""
    if typed == CONDENSED:
        return TextRange(typed, is_condensed=True)
    if typed.startswith("/") and (words := typed.strip("/").strip()):
        return TextRange(f"/{words}/", words=words)
    if typed.startswith("-") and typed[1:].isdigit() and int(typed[1:]):
        return TextRange(typed, n_last=int(typed[1:]))
    lines = _LINES.match(typed)
    first, last = (int(lines[1]), int(lines[2] or 0)) if lines else (0, 0)
    if not first or (last and last < first):
        raise UsageError(f"{typed} is no part of a text", PARTS)
    return TextRange(typed, first, last or (None if typed.endswith("-") else first))


def take(text: str, part: TextRange) -> str:
    """The part of a text. Found lines have their numbers, and `…` where some are left out between them.

    UsageError where nothing of the text is in the part.
    """
    if part.is_condensed:
        from localrun.chat.long_text.condensed import Kinds

        return Kinds(text).condensed().text
    lines = text.splitlines()
    if part.words:
        taken = _with_words(lines, part.words)
    elif part.n_last:
        taken = lines[-part.n_last :]
    else:
        taken = lines[part.first - 1 : part.last]
    if not taken:
        of = f"its {len(lines):,} line{'' if len(lines) == 1 else 's'}"
        has = f"none of {of} has “{part.words}”" if part.words else f"{part.name} has nothing of {of}"
        raise UsageError(has, "name other lines, or words that it has")
    return "\n".join(taken)


def _with_words(lines: list[str], words: str) -> list[str]:
    """Lines that have the words, in any case, and a few around each."""
    wanted = words.lower()
    taken: list[str] = []
    last = -1  # index of the last line taken
    for i, line in enumerate(lines):
        if wanted not in line.lower():
            continue
        first = max(i - AROUND, last + 1)
        if taken and first > last + 1:
            taken.append("…")
        end = min(i + AROUND + 1, len(lines))
        taken += [f"{n + 1}: {lines[n]}" for n in range(first, end)]
        last = end - 1
    return taken
