"""Token ids to text, one at a time."""

import codecs
from collections.abc import Set as AbstractSet

from localrun.text.tokenizer import Tokenizer


class Detokenizer:
    """Text of a growing list of ids. A character whose bytes are spread over several ids comes with the last of them;
    bytes that are not UTF-8 become U+FFFD. Control tokens are silent, except for the ids in `visible`."""

    def __init__(self, tokenizer: Tokenizer, visible: AbstractSet[int] = frozenset()) -> None:
        self._tokenizer = tokenizer
        self._silent = tokenizer.control_ids - visible
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token_id: int) -> str:
        """The text this id completes."""
        return "" if token_id in self._silent else self._decoder.decode(self._tokenizer.piece(token_id))

    def flush(self) -> str:
        """What is left at the end: U+FFFD when the last character is incomplete."""
        return self._decoder.decode(b"", final=True)
