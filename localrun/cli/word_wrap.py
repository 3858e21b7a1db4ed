"""Lines of an answer on a terminal, broken between words."""

import re
from collections.abc import Callable

_PIECE = re.compile(r"\n|[^\S\n]+|\S+")
_FENCE = ("```", "~~~")
_TABLE = "|"


class WordWrap:
    """Break the lines of a stream where the next word would reach beyond `width()` cells.

    A word is held back until it is whole. Code between fences and rows of tables stay as they are.
    """

    def __init__(self, width: Callable[[], int]) -> None:
        self._width = width
        self._column = 0
        self._first = ""  # word of the line
        self._space = self._word = ""  # behind the column, not written yet
        self._is_code = False

    def feed(self, text: str) -> str:
        """The part that is certain now."""
        shown = []
        for piece in _PIECE.findall(text):
            if not piece.isspace():
                self._word += piece
                continue
            shown.append(self._settle())
            if piece == "\n":
                shown.append(f"{self._space}\n")
                self._is_code ^= self._first.startswith(_FENCE)
                self._column, self._space, self._first = 0, "", ""
            else:
                self._space += piece
        return "".join(shown)

    def flush(self) -> str:
        """The word that was held back."""
        return self._settle()

    def _settle(self) -> str:
        if not self._word:
            return ""
        from rich.cells import cell_len

        self._first = self._first or self._word
        space, word, cells = self._space, self._word, cell_len(self._word)
        self._space = self._word = ""
        if self._column and self._column + len(space) + cells > self._width() and not self._is_verbatim:
            self._column = cells
            return f"\n{word}"
        self._column += len(space) + cells
        return space + word

    @property
    def _is_verbatim(self) -> bool:
        return self._is_code or self._first.startswith((*_FENCE, _TABLE))
