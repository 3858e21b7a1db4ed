"""Condensed reading of a long text: lines that are alike are shown once, with how many and which they are.

A log of megabytes becomes a few thousand tokens. The text says what was joined; every line is counted once.
"""

import re
from collections.abc import Iterable, Iterator
from io import StringIO
from typing import TextIO

from localrun.base.dataclass import dataclass
from localrun.chat.long_text.line_patterns import COMPARED, Line, Pattern, PatternTable
from localrun.chat.long_text.pieces import n_bytes

USUAL_BYTES = 6000  # of a condensed text where the context is not known: it fits one of 8,192 tokens
_LEAST_TOKENS = 8  # words and signs of a line; time, level and program of a log have as many
_CHUNK = 1 << 16  # characters that are read at once of a line that does not end
_HOW_TO_READ = """"[×20, 5–90]" is a kind of line, with # for numbers, times, ids, addresses and words that change: \
there are 20, the first is line 5 and the last line 90. "[7]" is line 7 as it is. Both are in the order of the file; \
those with words of errors come last."""
_ERRORS = "Errors:\n"
_HEAD = re.compile(r"\[(?:×([\d,]+), )?([\d,]+)(?:–([\d,]+))?\] (.*)")  # of a kind of lines, or of one line


class NotTextError(ValueError):
    """A NUL in what should be text."""


@dataclass(frozen=True, slots=True)
class _Detail:
    """How much is shown of a pattern: all of its lines up to `rare`, else so many examples, of so many characters."""

    rare: int
    examples: int
    error_examples: int
    warning_examples: int
    width: int


_DETAILS = (
    _Detail(3, 2, 5, 5, COMPARED),
    _Detail(3, 1, 4, 4, COMPARED),
    _Detail(3, 0, 3, 3, COMPARED),
    _Detail(2, 0, 2, 2, 240),
    _Detail(2, 0, 2, 1, 240),  # when an error came first and last is worth more than how warnings look
    _Detail(1, 0, 2, 0, 120),
    _Detail(1, 0, 1, 0, 120),
)


@dataclass(frozen=True, slots=True)
class Condensed:
    """A condensed text. `n_shown` lines stand in it as they are; each of the others belongs to one of `n_kinds`."""

    text: str
    n_lines: int
    n_kinds: int
    n_shown: int
    summary: str


class Kinds:
    """The kinds of lines of a text, or of a file of any size, which is read once. Raises NotTextError.

    `first` is the number of the first line, where the text is a part of a file.
    """

    def __init__(self, text: str | TextIO, first: int = 1) -> None:
        self._table = PatternTable(first)
        for line, length in _lines(StringIO(text, newline="\n") if isinstance(text, str) else text):
            self._table.add(line, length)
        self._patterns = self._table.patterns()

    @property
    def are_clear(self) -> bool:
        """Whether lines of a kind are alike: of a text with too many kinds hardly more than indents were compared."""
        return self._table.n_tokens is None or self._table.n_tokens >= _LEAST_TOKENS

    def condensed(self, most_bytes: int = USUAL_BYTES) -> Condensed:
        """All kinds in one text; less is shown of each where it would be more than `most_bytes`.

        No kind is left out: a text whose lines are all different stays longer.
        """
        for detail in _DETAILS:
            condensed = _shown(self._table, self._patterns, detail)
            if n_bytes(condensed.text) <= most_bytes:
                break
        return condensed


def _lines(file: TextIO) -> Iterator[tuple[str, int]]:
    """The beginning of each line, and its length in characters: a line of any length takes little memory."""
    begun, length = "", 0
    while chunk := file.readline(_CHUNK):
        if "\0" in chunk:
            raise NotTextError("it is not text")
        begun = begun or chunk[: COMPARED + 1]
        length += len(chunk)
        if chunk.endswith("\n"):
            yield begun.rstrip("\n"), length - 1
            begun, length = "", 0
    if length:
        yield begun, length


def only_errors(text: str) -> str:
    """Only the lines with words of errors of a condensed text; empty where it has none."""
    lines = error_lines(text)
    return "\n".join([f"Its lines with words of errors. {_HOW_TO_READ}\n\n{_ERRORS[:-1]}", *lines]) if lines else ""


def error_lines(text: str) -> list[str]:
    """The lines with words of errors that a condensed text ends with; none of another text."""
    before, heading, errors = text.rpartition(f"\n\n{_ERRORS}")
    return errors.splitlines() if heading and _HOW_TO_READ in before else []


def error_kinds(text: str) -> list[str]:
    """The kinds of lines with words of errors in a condensed text, each in plain words; none of another text."""
    kinds = []
    for found in filter(None, map(_HEAD.fullmatch, error_lines(text))):
        count, first, last, words = found.groups()
        where = f"line {first}" if count is None else f"lines {first} to {last}"
        kinds.append(f"{count or 1} × {words.lstrip('# ')}  ({where})")
    return kinds


def _shown(table: PatternTable, patterns: Iterable[Pattern], detail: _Detail) -> Condensed:
    """All patterns in one text, in the order of the lines they begin with; errors last, where a question follows."""
    usual: list[tuple[int, str]] = []
    errors: list[tuple[int, str]] = []
    n_shown = n_kinds = n_cut = n_errors = 0
    for pattern in patterns:
        blocks = errors if pattern.is_error else usual
        n_errors += pattern.count if pattern.is_error else 0
        width = COMPARED if pattern.is_grave else detail.width
        if pattern.count <= detail.rare:
            lines = pattern.examples
            blocks += [(line.number, f"[{line.number:,}] {_text(line, width)}") for line in lines]
            n_shown += pattern.count
        else:
            lines = _examples(pattern, detail)
            blocks.append((pattern.examples[0].number, _kind(pattern, lines, width)))
            n_kinds += 1
        n_cut += sum(line.length > width for line in lines)
    summary = _summary(table, n_kinds, n_shown, n_cut, n_errors)
    sections = (f"Condensed: {summary}. {_HOW_TO_READ}", _in_order(usual), _in_order(errors, _ERRORS))
    return Condensed("\n\n".join(filter(None, sections)), table.n_lines, n_kinds, n_shown, summary)


def _kind(pattern: Pattern, lines: Iterable[Line], width: int) -> str:
    """A pattern with these examples of it."""
    first, last = pattern.examples[0].number, pattern.last.number
    text = _text(Line(first, pattern.text, len(pattern.text)), width)
    examples = (f"  {line.number:,}: {_text(line, width)}" for line in lines)
    return "\n".join([f"[×{pattern.count:,}, {first:,}–{last:,}] {text}", *examples])


def _in_order(blocks: list[tuple[int, str]], heading: str = "") -> str:
    return heading + "\n".join(block for _, block in sorted(blocks)) if blocks else ""


def _examples(pattern: Pattern, detail: _Detail) -> list[Line]:
    """The first lines of a pattern, and its last one."""
    n = detail.examples
    if pattern.is_grave:
        n = detail.error_examples if pattern.is_error else detail.warning_examples
    return [*pattern.examples[: n - 1], pattern.last] if n > 1 else pattern.examples[:n]


def _text(line: Line, width: int) -> str:
    """The line, or its beginning and how much of it is not shown."""
    return line.text if line.length <= width else f"{line.text[:width]}… (+{line.length - width:,} characters)"


def _summary(table: PatternTable, n_kinds: int, n_shown: int, n_cut: int, n_errors: int) -> str:
    """The sizes of what was joined and of what was left, in words."""
    kinds = f"{table.n_lines - n_shown:,} alike in {n_kinds:,} kind{'' if n_kinds == 1 else 's'}"
    summary = f"{table.n_lines:,} lines, {kinds}, {n_shown:,} shown as they are"
    if n_errors:
        summary += f", {n_errors:,} with words of errors"
    if n_cut:
        summary += f", {n_cut:,} of the lines below cut where it says so"
    if table.n_tokens is not None:
        summary += f"; too many kinds, so only the first {table.n_tokens} words and signs of a line were compared"
    return summary
