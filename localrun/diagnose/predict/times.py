"""Predicted times on a machine with known limits. Torch-free."""

from localrun.base.dataclass import dataclass
from localrun.diagnose.predict.what_if import WhatIf
from localrun.fit.rates import Rates
from localrun.fit.roofline import Roofline, Seconds, usual_roofline
from localrun.ops.kv import BLOCK_TOKENS


@dataclass(frozen=True, slots=True)
class Times:
    """Predicted times. `free`: bytes of free memory; None where that is not asked."""

    what: WhatIf
    rates: Rates
    free: int | None = None

    @property
    def roofline(self) -> Roofline:
        """The typical speed: the same for all sizes and precisions, so that they compare."""
        return usual_roofline(self.rates)

    def prefill(self, n_tokens: int, start: int = 0) -> Seconds:
        """Time to read `n_tokens` tokens of a prompt after `start` cached ones."""
        middle = start + n_tokens // 2
        return self.roofline.prefill(self.what.work, n_tokens, self._seen(middle), self.what.kv_bytes(middle))

    def with_cache(self, length: int) -> Seconds:
        """Time of the next token of each chat, after a cached text of `length` tokens."""
        return self.roofline.decode(self.what.work, self._seen(length), self.what.kv_bytes(length), self.what.chats)

    def without_cache(self, length: int) -> Seconds:
        """Time of the next token where the whole text is computed again for it."""
        one = self.prefill(length)
        return Seconds(one.memory * self.what.chats, one.arithmetic * self.what.chats)

    def token(self, length: int) -> Seconds:
        """Time of the next token, with or without the cache as chosen."""
        return self.with_cache(length) if self.what.cached else self.without_cache(length)

    def answer_seconds(self) -> float:
        """Seconds for all tokens of the answer but the first, which comes with the prompt."""
        what = self.what
        return (what.answer - 1) * self.token(what.ctx - what.answer // 2).longer

    def _seen(self, length: int) -> int:
        window = self.what.window
        return length if window is None else min(length, window + BLOCK_TOKENS)
