"""Patterns of lines: those that differ only in numbers, times, addresses, ids or one changing word count as one.

A table reads lines once, in any number, within bounded memory. It forgets no line: the counts of its patterns add up
to the lines it was given.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import islice
from typing import TypeVar

from localrun.base.dataclass import dataclass

MOST_VALUES = 8  # of a small number or a word, that count as different patterns; with more it is one that changes
MOST_EXAMPLES = 5  # lines that a pattern keeps, the first ones; the last one is kept beside them
COMPARED = 400  # characters of a line, from its beginning, that are compared and kept
MOST_PATTERNS = 4096  # in a table; when it is full, patterns are joined
_FEWER_TOKENS = (8, 3, 1, 0)  # words and signs that are compared when nothing else makes room
_ROUNDS = 3  # of joining: words that change in one line

ANY = "#"  # in a pattern: what changes
_CHANGING = re.compile(
    r"(?<!\w)(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|0x[0-9a-f]+|(?=[a-f]*\d)[0-9a-f]{6,})(?!\w)"  # ids
    r"|\d+(?:[.,:/+T-]\d+)+|\d{4,}",  # dates, times, addresses, fractions, large numbers
    re.ASCII | re.IGNORECASE,
)
_SMALL = re.compile(r"(\d+)", re.ASCII)
_TOKEN = re.compile(r"[\w#.-]+|[^\w#.-]+")
_ERROR = re.compile(
    r"error|fatal|panic|critical|exception|traceback|fail|denied|refused|corrupt|timed? ?out|abort|crash|killed|unable"
    r"|cannot|could not|no space|overflow|alert|emerg|severe",
    re.IGNORECASE,
)
_WARNING = re.compile("warn", re.IGNORECASE)
_Key = TypeVar("_Key", str, tuple[str, ...])


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a text by its number, from 1, with its first `COMPARED` characters of `length`."""

    number: int
    text: str
    length: int


class Pattern:
    """Lines that are alike: how many, the first ones, and the last. The `text` has ANY for what changes."""

    __slots__ = ("count", "examples", "last", "text")

    def __init__(self, line: Line) -> None:
        self.text = ""  # once the table is read
        self.count = 1
        self.examples = [line]
        self.last = line

    def add(self, line: Line) -> None:
        """Count a line behind all others."""
        self.count += 1
        self.last = line
        if len(self.examples) < MOST_EXAMPLES:
            self.examples.append(line)

    @classmethod
    def of(cls, patterns: Sequence["Pattern"]) -> "Pattern":
        """The lines of all these, as alike."""
        in_order = merge(*(one.examples for one in patterns), key=lambda line: line.number)
        joined = cls(next(in_order))
        joined.examples += islice(in_order, MOST_EXAMPLES - 1)
        joined.last = max((one.last for one in patterns), key=lambda line: line.number)
        joined.count = sum(one.count for one in patterns)
        return joined

    @property
    def is_error(self) -> bool:
        """Whether its first line has a word of errors."""
        return _ERROR.search(self.examples[0].text) is not None

    @property
    def is_grave(self) -> bool:
        """Whether its first line has a word of errors or warnings."""
        return is_grave(self.examples[0].text)


def is_grave(text: str) -> bool:
    """Whether a text has a word of errors or warnings."""
    return _ERROR.search(text) is not None or _WARNING.search(text) is not None


class _Frame:
    """Lines with the same text around their small numbers: a pattern for each combination of numbers that take few
    values."""

    def __init__(self, n_numbers: int) -> None:
        self.patterns: dict[tuple[str, ...], Pattern] = {}
        self._values: dict[int, set[str]] = {i: set() for i in range(n_numbers)}  # of numbers that take few
        self._changing = (ANY,) * n_numbers

    def add(self, numbers: Sequence[str], line: Line) -> None:
        """Count a line with these numbers."""
        for i, values in tuple(self._values.items()):
            values.add(numbers[i])
            if len(values) > MOST_VALUES:
                del self._values[i]
                self.patterns = _joined((self._key(key), one) for key, one in self.patterns.items())
        key = self._key(numbers)
        if (pattern := self.patterns.get(key)) is None:
            self.patterns[key] = Pattern(line)
        else:
            pattern.add(line)

    def _key(self, numbers: Sequence[str]) -> tuple[str, ...]:
        if not self._values:
            return self._changing
        return tuple([one if i in self._values else ANY for i, one in enumerate(numbers)])


class PatternTable:
    """The patterns of the lines that were added one after the other."""

    def __init__(self, first: int = 1) -> None:
        """`first`: the number of the first line."""
        self._first = first
        self.n_lines = 0
        self.n_tokens: int | None = None  # words and signs of a line that are compared; None for all
        self._frames: dict[tuple[str, ...], _Frame] = {}  # by the text around small numbers
        self._texts: dict[str, Pattern] = {}  # by a text with ANY for what changes
        self._n_new = 0  # patterns in frames
        self._fewer = iter(_FEWER_TOKENS)

    def add(self, text: str, length: int) -> None:
        """Count the next line: its beginning, and its length in characters."""
        line = Line(self._first + self.n_lines, text[:COMPARED], length)
        self.n_lines += 1
        masked = _CHANGING.sub(ANY, line.text)
        if self.n_tokens is not None:
            key = _beginning(masked, self.n_tokens)
            if (pattern := self._texts.get(key)) is None:
                self._texts[key] = Pattern(line)
            else:
                pattern.add(line)
        else:
            around = _SMALL.split(masked)
            texts = tuple(around[::2])
            if (frame := self._frames.get(texts)) is None:
                frame = self._frames[texts] = _Frame(len(texts) - 1)
            self._n_new -= len(frame.patterns)
            frame.add(around[1::2], line)
            self._n_new += len(frame.patterns)
        if len(self._texts) + self._n_new > MOST_PATTERNS:
            self._make_room()

    def patterns(self) -> list[Pattern]:
        """All patterns, in the order of their first lines."""
        patterns = join_words(self._all())
        for text, pattern in patterns.items():
            pattern.text = text if self.n_tokens is None else f"{text}…"
        return sorted(patterns.values(), key=lambda pattern: pattern.examples[0].number)

    def _all(self) -> dict[str, Pattern]:
        """Patterns by their text."""
        framed = (
            ("".join(_alternately(around, numbers)), pattern)
            for around, frame in self._frames.items()
            for numbers, pattern in frame.patterns.items()
        )
        return _joined((*self._texts.items(), *framed))

    def _make_room(self) -> None:
        """Join patterns until half of the table is free; compare fewer tokens from now on where words do not do it."""
        self._texts = join_words(self._all())
        self._frames.clear()
        self._n_new = 0
        while len(self._texts) > MOST_PATTERNS // 2:
            self.n_tokens = n = next(self._fewer)
            self._texts = _joined((_beginning(text, n), pattern) for text, pattern in self._texts.items())


def join_words(patterns: dict[str, Pattern]) -> dict[str, Pattern]:
    """Join patterns that differ in one word only, where it has more than `MOST_VALUES` values, or was joined before.

    Words of errors and warnings stay apart from all others.
    """
    patterns = dict(patterns)
    for _ in range(_ROUNDS):
        n_alike = Counter(hash(wild) for text in patterns for wild in _wild(text))
        known = {hash(text) for text in patterns}
        alike: dict[str, list[str]] = {}
        for text in patterns:
            for wild in _wild(text):
                if n_alike[hash(wild)] > MOST_VALUES or hash(wild) in known:
                    alike.setdefault(wild, []).append(text)
        n_before = len(patterns)
        for wild, texts in sorted(alike.items(), key=lambda one: (-len(one[1]), one[0])):
            left = [text for text in texts if text in patterns]
            if len(left) > MOST_VALUES or (left and wild in patterns):
                joined = [(wild, patterns.pop(text)) for text in (*left, *([wild] if wild in patterns else ()))]
                patterns |= _joined(joined)
        if len(patterns) == n_before:
            break
    return patterns


def _wild(text: str) -> Iterator[str]:
    """The text with ANY in the place of each of its words in turn."""
    tokens = _TOKEN.findall(text)
    for i, token in enumerate(tokens):
        if token[0].isalnum() and not is_grave(token):
            yield "".join((*tokens[:i], ANY, *tokens[i + 1 :]))


def _beginning(text: str, n_tokens: int) -> str:
    """The first tokens of a text, with ANY for its numbers."""
    return "".join(islice(_TOKEN.findall(_SMALL.sub(ANY, text)), n_tokens))


def _alternately(around: Sequence[str], numbers: Sequence[str]) -> Iterator[str]:
    for text, number in zip(around, numbers, strict=False):
        yield text
        yield number
    yield around[-1]


def _joined(patterns: Iterable[tuple[_Key, Pattern]]) -> dict[_Key, Pattern]:
    """Patterns by their keys; those with the same key are one."""
    alike: dict[_Key, list[Pattern]] = {}
    for key, pattern in patterns:
        alike.setdefault(key, []).append(pattern)
    return {key: some[0] if len(some) == 1 else Pattern.of(some) for key, some in alike.items()}
