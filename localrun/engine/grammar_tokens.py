"""A model's vocabulary in the form of llguidance, and sets of its tokens."""

from collections.abc import Iterable

import numpy as np
from llguidance import LLTokenizer, TokenizerWrapper

from localrun.base.errors import ConstraintError
from localrun.text.tokenizer import Tokenizer

_BEFORE = "\x02"  # put before another text, so that the tokenizer adds no space to that


class GrammarTokens:
    """Tokens as bytes. Sets of tokens are masks: bit i % 8 of byte i // 8 is that of token i."""

    def __init__(self, tokenizer: Tokenizer, special_ids: frozenset[int], n_logits: int) -> None:
        """`special_ids`: that no text is made of; ids from the vocabulary up to `n_logits` are padding. Raises
        ConstraintError where no token ends an answer."""
        ends = sorted(tokenizer.eog_ids)
        if not ends:
            raise ConstraintError("no token of this model ends an answer", "leave the constraint out")
        self._own = tokenizer
        self._pieces = [tokenizer.piece(token) for token in range(n_logits)]
        # What TokenizerWrapper reads:
        self.tokens, self.special_token_ids = self._pieces, sorted(special_ids.union(ends))
        self.eos_token_id, self.bos_token_id = ends[0], tokenizer.bos_id
        self.tokenizer = LLTokenizer(TokenizerWrapper(self), eos_token=ends)
        self.end_id = ends[0] if tokenizer.eos_id is None else tokenizer.eos_id
        self.no_ends = ~self.mask(ends)
        self.line_ends = self.mask(i for i, piece in enumerate(self._pieces) if piece and not piece.strip(b"\n"))

    def __call__(self, text: bytes) -> list[int]:
        """Tokenize a text as within an answer."""
        ids = self._own.encode(_BEFORE + text.decode(errors="replace"))
        for n_before in range(1, len(ids)):
            if b"".join(map(self._own.piece, ids[n_before:])) == text:
                return ids[n_before:]
        return self.tokenizer.greedy_tokenize(text.decode(errors="replace"))

    def mask(self, ids: Iterable[int]) -> np.ndarray:
        """The set of these tokens."""
        bits = np.zeros(-(-len(self._pieces) // 32) * 32, np.uint8)
        bits[list(ids)] = 1
        return np.packbits(bits, bitorder="little")
