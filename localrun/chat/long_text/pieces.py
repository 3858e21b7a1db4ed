"""Pieces of a long text, each of which fits the context of a model."""

from collections.abc import Iterator
from io import StringIO

from localrun.base.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A piece of a text; its lines count from 1."""

    text: str
    first: int
    last: int

    @property
    def lines(self) -> str:
        """The lines in words."""
        return lines_in_words(self.first, self.last)

    def smaller(self) -> list["TextPiece"]:
        """The piece in two or three, where it was too large; none where it cannot be cut."""
        return [*cut(self.text, -(-n_bytes(self.text) // 2), self.first)] if len(self.text) > 1 else []


def lines_in_words(first: int, last: int) -> str:
    return f"lines {first:,}–{last:,}" if last > first else f"line {first:,}"


def n_bytes(text: str) -> int:
    return len(text.encode(errors="replace"))


def cut(text: str, most: int, first: int = 1) -> Iterator[TextPiece]:
    """Pieces of about `most` bytes that together are the text, cut at ends of lines; a longer line is cut within.

    `first` is the number of its first line.
    """
    held: list[str] = []
    size, begin, end = 0, first, first
    for number, line in enumerate(StringIO(text, newline="\n"), first):
        for bit, length in _bits(line, most):
            if held and size + length > most:
                yield TextPiece("".join(held), begin, end)
                held, size, begin = [], 0, number
            held.append(bit)
            size, end = size + length, number
    if held:
        yield TextPiece("".join(held), begin, end)


def _bits(line: str, most: int) -> Iterator[tuple[str, int]]:
    """A line as it is, or a longer one in bits of about `most` bytes; and the bytes of each."""
    size = n_bytes(line)
    if size <= most:
        yield line, size
        return
    step = max(len(line) * most // size, 1)
    for start in range(0, len(line), step):
        bit = line[start : start + step]
        yield bit, n_bytes(bit)
