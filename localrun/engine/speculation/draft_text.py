"""Text of a program that drafts, kept in step with one answer. Ints, and the hidden rows that wait to be read."""

from collections.abc import Sequence
from dataclasses import field
from typing import NamedTuple

import numpy as np

from localrun.base.dataclass import dataclass
from localrun.cache.sequence_cache import SequenceCache

KEY_BITS = 32  # of a token id
LEAST_WAITING = 32  # hidden rows that there is memory for from the first one on


class Guess(NamedTuple):
    """The likeliest next token, how likely it is, and the hidden row that it was made of, f32 [hidden]."""

    token: int
    chance: float
    hidden: np.ndarray | None


class WaitingRows:
    """Hidden rows in the order of their entries, in memory that grows with them."""

    def __init__(self, rows: np.ndarray | None = None) -> None:
        self._memory = np.empty((0, 0), np.float32)
        self._first = self.n = 0  # where they begin in it, and how many there are
        if rows is not None:
            self.add(rows)

    def add(self, rows: np.ndarray) -> None:
        """Add a copy of these, f32 [k, hidden]."""
        end, n = self._first + self.n, len(rows)
        if end + n > len(self._memory):
            grown = np.empty((max(LEAST_WAITING, 2 * (self.n + n)), rows.shape[1]), np.float32)
            if self.n:
                grown[: self.n] = self.newest(self.n)
            self._memory, self._first, end = grown, 0, self.n
        self._memory[end : end + n] = rows
        self.n += n

    def take(self, n: int) -> np.ndarray:
        """Remove and return the first n, which are valid until some are added."""
        rows = self._memory[self._first : self._first + n]
        self._first, self.n = self._first + n, self.n - n
        return rows

    def newest(self, n: int) -> np.ndarray:
        """The last n, likewise."""
        end = self._first + self.n
        return self._memory[end - n : end]


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
    waiting: WaitingRows = field(default_factory=WaitingRows)  # of the entries after these
    keys: list[int] = field(default_factory=list)  # of the entries computed
    guess: Guess | None = None  # after the last entry

    @property
    def end(self) -> int:
        """Number of the first entry that is not computed."""
        return self.first + self.n

    def missing(self, token_ids: Sequence[int]) -> list[int]:
        """Tokens of the entries that are not computed."""
        return list(token_ids[self.end + self.lead :])

    def keep(self, start: int, rows: np.ndarray) -> None:
        """Keep a copy of the model's hidden rows from number `start` on, as far as they are new."""
        known = self.first + self.n + self.waiting.n
        if start <= known < start + len(rows):
            self.waiting.add(rows[known - start :])

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
