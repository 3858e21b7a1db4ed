"""Text of a program that drafts, kept in step with one answer. Ints, and the hidden rows that wait to be read."""

from collections.abc import Sequence
from dataclasses import field
from typing import NamedTuple

import numpy as np

from localrun.base.dataclass import dataclass
from localrun.cache.sequence_cache import SequenceCache

KEY_BITS = 32  # of a token id


class Guess(NamedTuple):
    """The likeliest next token, how likely it is, and the hidden row that it was made of, f32 [hidden]."""

    token: int
    chance: float
    hidden: np.ndarray | None


@dataclass(eq=False, slots=True)
class DraftText:
    """Entries of one answer: entry i is token i of a smaller model, or of a layer token i + 1 and hidden row i.

    A layer whose model found the beginning of a text in its prefix cache, and it did not, begins with entry `first`:
    positions count for it only by their distance.
    """

    cache: SequenceCache
    lead: int  # tokens between an entry and its own: 1 for a layer
    first: int = 0
    n: int = 0  # entries computed, from `first` on
    waiting: list[np.ndarray] = field(default_factory=list)  # hidden rows of the entries after these, f32 [k, hidden]
    keys: list[int] = field(default_factory=list)  # of the entries computed
    guess: Guess | None = None  # after the last entry

    @property
    def end(self) -> int:
        """Number of the first entry that is not computed."""
        return self.first + self.n

    @property
    def n_waiting(self) -> int:
        return sum(map(len, self.waiting))

    def missing(self, token_ids: Sequence[int]) -> list[int]:
        """Tokens of the entries that are not computed."""
        return list(token_ids[self.end + self.lead :])

    def keep(self, start: int, rows: np.ndarray) -> None:
        """Keep a copy of the model's hidden rows from number `start` on, as far as they are new."""
        known = self.end + self.n_waiting
        if start <= known < start + len(rows):
            self.waiting.append(rows[known - start :].copy())

    def take(self, n: int) -> np.ndarray:
        """Remove and return the first `n` hidden rows that wait."""
        rows = np.concatenate(self.waiting)
        self.waiting = [rows[n:]] if len(rows) > n else []
        return rows[:n]

    def computed(self, token_ids: Sequence[int], n: int) -> None:
        """Count the next n entries as computed."""
        self.keys += keys_of(token_ids, self.lead, self.end, n)
        self.n += n


def keys_of(token_ids: Sequence[int], lead: int, start: int, n: int) -> list[int]:
    """Names of entries: the first entry of a layer is made of two tokens."""
    keys = list(token_ids[start + lead : start + lead + n])
    if lead and start == 0 and keys:
        keys[0] |= token_ids[0] + 1 << KEY_BITS
    return keys
