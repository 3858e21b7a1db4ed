"""Token ids to text, one at a time."""

import codecs
from collections.abc import Iterable

from localrun.text.marks import NO_MARKS, Marks
from localrun.text.tokenizer import Tokenizer


class Detokenizer:
    """Text of a growing list of ids.

    A character whose bytes are spread over several ids comes with the last of them; bytes that are not UTF-8 become
    U+FFFD. Tokens among `marks` become their stand-ins; control tokens are silent unless `special`.
    """

    def __init__(self, tokenizer: Tokenizer, marks: Marks = NO_MARKS, *, special: bool = False) -> None:
        self._tokenizer = tokenizer
        self._marks = marks.by_id
        self._silent = frozenset[int]() if special else tokenizer.control_ids
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token_id: int) -> str:
        """Take the next id; returns the text that it completes."""
        if (mark := self._marks.get(token_id)) is not None:
            return self.flush() + mark
        return "" if token_id in self._silent else self._decoder.decode(self._tokenizer.piece(token_id))

    def flush(self) -> str:
        """Return the remaining text: U+FFFD when the last character is incomplete."""
        return self._decoder.decode(b"", final=True)


def text_of(tokenizer: Tokenizer, ids: Iterable[int], marks: Marks) -> str:
    """The whole text of `ids`, control tokens included."""
    stream = Detokenizer(tokenizer, marks, special=True)
    return "".join(map(stream.push, ids)) + stream.flush()
