"""Token ids to text, one at a time."""

import codecs
from collections.abc import Collection

from localrun.text.tokenizer import Tokenizer


class Detokenizer:
    """Text of a growing list of ids. A character whose bytes are spread over several ids comes with the last of them;
    bytes that are not UTF-8 become U+FFFD. Control tokens are silent, except those whose text is in `spoken`: the tags
    around a thought have to be seen."""

    def __init__(self, tokenizer: Tokenizer, spoken: Collection[str] = ()) -> None:
        self._pieces = tokenizer.pieces
        self._silent = {i for i in tokenizer.control_ids if tokenizer.token_text(i) not in spoken}
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token_id: int) -> str:
        """The text this id completes. Ids beyond the vocabulary (a padded output matrix) have none."""
        if token_id in self._silent or not 0 <= token_id < len(self._pieces):
            return ""
        return self._decoder.decode(self._pieces[token_id])

    def flush(self) -> str:
        """What is left at the end: U+FFFD when the last character is incomplete."""
        return self._decoder.decode(b"", final=True)
