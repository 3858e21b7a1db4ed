"""Interface of a drafter: it guesses how a text goes on. Token ids only."""

from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple, Protocol


class DraftedTokens(NamedTuple):
    """Tokens that may come next, and how much speaks for them: drafters have their own scale of that, 0 or more."""

    tokens: tuple[int, ...] = ()
    evidence: int = 0

    def until(self, token_id: int) -> "DraftedTokens":
        """The same as far as before the first of these tokens."""
        return self._replace(tokens=tuple(takewhile(lambda token: token != token_id, self.tokens)))


class Drafter(Protocol):
    """Drafts of one text, which only grows."""

    def draft(self, token_ids: Sequence[int], most: int) -> DraftedTokens:
        """At most `most` tokens after these, which begin with those of the call before."""
        ...
