"""Token ids to text as they come, never half a character."""

import codecs
from collections.abc import Collection

from localrun.text.tokenizer import Tokenizer


class Detokenizer:
    """Text of one answer. Bytes of an unfinished UTF-8 character wait for the rest.

    Control tokens are silent, except those whose text is in `spoken`: the tags around a thought have to be seen.
    """

    def __init__(self, tokenizer: Tokenizer, spoken: Collection[str] = ()) -> None:
        self._pieces = tokenizer.pieces
        self._control = {i for i in tokenizer.control_ids if tokenizer.token_text(i) not in spoken}
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token_id: int) -> str:
        """The text that is certain now."""
        return "" if token_id in self._control else self._decoder.decode(self._pieces[token_id])

    def flush(self) -> str:
        """What is left at the end: U+FFFD for a character that never came to its end."""
        return self._decoder.decode(b"", final=True)
