"""Interface of a drafter: it guesses how a text goes on. Token ids only."""

from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    import numpy as np

    from localrun.engine.generation import GenerationState
    from localrun.engine.step_plan import StepPlan

HALF_EVIDENCE = 8  # evidence for which a token is as likely right as wrong, as far as nothing else is known
MOST_EVIDENCE = 1 << 12


class DraftedTokens(NamedTuple):
    """Tokens that may come next, and how much speaks for them, from 0 on: of a lookup the tokens of a match."""

    tokens: tuple[int, ...] = ()
    evidence: int = 0
    of_model: bool = False  # a program guessed them
    after_edit: bool = False  # of a lookup: the newest tokens match nothing, those before them did
    resumed: bool = False  # likewise, but the newest one is that of the text which is quoted
    agreed: int = 0  # first tokens that all other places it found go on with, too
    is_fork: bool = False  # there are such places
    distance: int = 0  # of a lookup: tokens from its place to the end of the text

    @classmethod
    def likely(cls, tokens: Sequence[int], chance: float) -> "DraftedTokens":
        """Guesses of a program, each right with this probability."""
        evidence = min(MOST_EVIDENCE, int(HALF_EVIDENCE * chance / max(1e-9, 1 - chance)))
        return cls(tuple(tokens), evidence, of_model=True)

    def until(self, token_id: int) -> "DraftedTokens":
        """The same as far as before the first of these tokens."""
        return self._replace(tokens=tuple(takewhile(lambda token: token != token_id, self.tokens)))


class Drafter(Protocol):
    """Drafts of one text, which only grows."""

    def read(self, token_ids: Sequence[int], most: int) -> bool:
        """Note `most` tokens at most of a text that is being computed -> whether all are noted."""
        ...

    def may_draft(self, token_ids: Sequence[int]) -> bool:
        """Whether there may be a draft after these, as far as a glance tells."""
        ...

    def draft(self, token_ids: Sequence[int], most: int) -> DraftedTokens:
        """At most `most` tokens after these, which begin with those of the call before."""
        ...

    def close(self) -> None:
        """Learn that the text has ended."""


class GuessingProgram(Protocol):
    """A program that drafts for all answers, kept in step with them."""

    name: str  # for people

    def follow(self, plan: "StepPlan", starts: Sequence[int], hidden: "np.ndarray | None") -> None:
        """Keep what it needs of a step whose tokens are chosen; its work began at the tokens `starts`. `hidden`: rows
        after the last norm."""

    def n_behind(self, sequence: "GenerationState") -> int:
        """Entries of a text that are to be read before it can be drafted for; 0: it can, or never will."""

    def catch_up(self, sequence: "GenerationState") -> int:
        """Read on in such a text -> entries that were read; 0 where there was no room."""

    def draft(self, sequences: "Sequence[GenerationState]", depth: int) -> list[DraftedTokens]:
        """At most `depth` tokens after each sequence; none after one that it is not ready for."""

    def forget(self, sequence: "GenerationState") -> None:
        """Let go of a sequence."""

    def close(self) -> None:
        """Give memory back, before the model's threads end."""
