"""Interface of a drafter: it guesses how a text goes on. Token ids only."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class DraftedTokens(NamedTuple):
    """Tokens that may come next, and how much speaks for them: drafters have their own scale of that, 0 or more."""

    tokens: tuple[int, ...] = ()
    evidence: int = 0


class Drafter(Protocol):
    """Drafts of one text, which only grows."""

    def draft(self, token_ids: Sequence[int], most: int) -> DraftedTokens:
        """At most `most` tokens after these, which begin with those of the call before."""
        ...
