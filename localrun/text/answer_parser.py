"""Parser of an answer: from token ids to thinking, answer and calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from localrun.base.events import ToolCallDelta
from localrun.text.answer_start import UpToAnswer
from localrun.text.detokenizer import Detokenizer
from localrun.text.marks import Marks
from localrun.text.reasoning import Splitter
from localrun.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from localrun.text.tool_calls.events import Piece
    from localrun.text.tool_calls.harmony_syntax import HarmonyCallParser
    from localrun.text.tool_calls.parser import CallParser


class AnswerParser:
    """Parse an answer, streamed or whole: ids go in one at a time, pieces of text come out.

    With `strips_space` the answer begins without the space that encoding puts before a text.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        marks: Marks,
        splitter: Splitter | UpToAnswer | CallParser | HarmonyCallParser | None,
        strips_space: bool,
    ) -> None:
        self.tokenizer = tokenizer
        self._detokenizer = Detokenizer(tokenizer, marks)
        self._marks = marks
        self._splitter = splitter
        self._strips_space = strips_space

    def push(self, token_id: int) -> list[Piece]:
        """Take the next id; returns the pieces that are certain, in order, none of them empty."""
        return self._shown(self._split(self._detokenizer.push(token_id)))

    def flush(self) -> list[Piece]:
        """Return the text that was held back, once no more tokens come."""
        pieces = self._split(self._detokenizer.flush())
        return self._shown([*pieces, *(self._splitter.flush() if self._splitter else ())])

    def _split(self, text: str) -> list[Piece]:
        return [*self._splitter.push(text)] if self._splitter else [("answer", text)]

    def _shown(self, pieces: list[Piece]) -> list[Piece]:
        shown: list[Piece] = []
        for piece in pieces:
            if isinstance(piece, ToolCallDelta):
                shown.append(piece)
                continue
            channel, text = piece
            text = self._marks.plain(text)
            if text and channel == "answer" and self._strips_space:
                text, self._strips_space = text.removeprefix(" "), False
            if text:
                shown.append((channel, text))
        return shown
