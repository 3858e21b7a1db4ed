"""Words, as a double click selects them."""

import re

from rich.cells import cell_len

_RUNS = re.compile(r"\w+(?:[-.'’/:@~]+\w+)*|\s+|[^\w\s]+")  # a word, path or time; spaces; other signs


def word_at(text: str, index: int) -> tuple[int, int]:
    """The span of the word that holds a character; empty behind the text."""
    spans = (found.span() for found in _RUNS.finditer(text))
    return next((span for span in spans if span[0] <= index < span[1]), (len(text), len(text)))


def index_at(text: str, cell: int) -> int:
    """The character at a cell of a line; its length behind the text."""
    n_cells = 0
    for index, character in enumerate(text):
        n_cells += cell_len(character)
        if n_cells > cell:
            return index
    return len(text)
