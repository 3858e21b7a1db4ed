"""Choosing the next token of a row of logits: small pure functions on its best candidates.

Penalties and bias are already in the logits. The chain is top-k, temperature, top-p, min-p, draw. It runs on the 256
best candidates with probabilities of the whole vocabulary; where those cannot decide, it says so by returning None and
is run again on more of the row, with the same result as if that had been done at once. A backend that chooses in its
own way is compared with this one; the others use it. Few candidates are plain lists, for which numpy would take longer.
"""

import math
from bisect import bisect_left, bisect_right
from itertools import accumulate
from operator import neg
from typing import NamedTuple

import numpy as np

from localrun.base.dataclass import dataclass

MORE_CANDIDATES = 8192  # what a flat distribution is tried with before the whole vocabulary
FEW = 1024  # candidates that are lists


class Draw(NamedTuple):
    """Sampling settings of one row, and the random number for its next token."""

    row: int  # of a step's logits
    top_k: int  # 0: all
    temperature: float  # that of the row's logsumexp; 0: the best token, whatever the rest says
    top_p: float
    min_p: float
    u: float  # in [0, 1)


@dataclass(frozen=True, slots=True)
class Candidates:
    """Tokens best first. `probabilities` are shares of the whole vocabulary; `complete`: no other token can win."""

    ids: list[int] | np.ndarray
    probabilities: list[float] | np.ndarray
    reached: list[float] | np.ndarray  # sums of the probabilities up to each, one after the other
    complete: bool

    @property
    def mass(self) -> float:
        """The mass that a draw is scaled by: everything, or all that is left."""
        return float(self.reached[-1]) if self.complete else 1.0

    def best(self, n: int) -> "Candidates":
        """The best n and no others."""
        return Candidates(self.ids[:n], self.probabilities[:n], self.reached[:n], complete=True)


def keep_top_k(ids: np.ndarray, logits: np.ndarray, logsumexp: float, complete: bool, how: Draw) -> Candidates | None:
    """The top_k best of ids [n] with adjusted logits [n], 0: all; `logsumexp` is that of all logits / temperature."""
    k, n = how.top_k, len(ids)
    if k > n and not complete:
        return None
    if 0 < k <= n:
        ids, logits, complete = ids[:k], logits[:k], True
    shares = likelihoods(logits, how.temperature, logsumexp)
    if len(ids) > FEW:
        return Candidates(ids, shares, np.cumsum(shares), complete)
    probabilities = shares.tolist()
    return Candidates(ids.tolist(), probabilities, list(accumulate(probabilities)), complete)


def likelihoods(logits: np.ndarray, temperature: float, logsumexp: float) -> np.ndarray:
    """Shares of the whole vocabulary, f64 like logits [n], which are best first: none is more than one before."""
    exponents = np.minimum(logits.astype(np.float64) / temperature - logsumexp, 0.0)
    shares: np.ndarray = np.minimum.accumulate(np.exp(exponents))
    return shares


def keep_top_p(c: Candidates, p: float) -> Candidates | None:
    """The smallest set of best tokens that holds share p of what is left (Holtzman et al. 2020)."""
    if p >= 1.0:
        return c
    n = bisect_left(c.reached, p * c.mass) + 1
    if n <= len(c.ids):
        return c.best(n)
    return c if c.complete else None


def keep_min_p(c: Candidates, share: float) -> Candidates | None:
    """Tokens at least `share` as likely as the best (Nguyen et al. 2024)."""
    if share <= 0.0:
        return c
    n = bisect_right(c.probabilities, -share * c.probabilities[0], key=neg)
    return c.best(max(n, 1)) if c.complete or n < len(c.ids) else None


def draw(c: Candidates, u: float) -> int | None:
    """The token at share u in [0, 1) of the candidates laid end to end, best first."""
    n = bisect_right(c.reached, u * c.mass)
    if n < len(c.ids):
        return int(c.ids[n])
    return int(c.ids[-1]) if c.complete else None  # u at the very end, lost to rounding


def choose(ids: np.ndarray, logits: np.ndarray, logsumexp: float, complete: bool, how: Draw) -> int | None:
    """Run the chain on tokens best first, [n] of the row or all of it; None when more are needed to decide."""
    kept = keep_top_k(ids, logits, logsumexp, complete, how)
    kept = kept and keep_top_p(kept, how.top_p)
    kept = kept and keep_min_p(kept, how.min_p)
    return None if kept is None else draw(kept, how.u)


def is_allowed(mask: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Which of ids [n] a mask allows: bit i % 8 of its byte i // 8 is that of token i."""
    allowed: np.ndarray = (mask[ids >> 3] >> (ids & 7).astype(np.uint8)) & 1 == 1
    return allowed


def choose_allowed(ids: np.ndarray, logits: np.ndarray, mask: np.ndarray, how: Draw) -> int | None:
    """Run the chain on the tokens that a mask allows, as if there were no others; the rest as for `choose`, of which
    `ids` are the best. None when they do not decide."""
    kept = is_allowed(mask, ids)
    ids, logits = ids[kept], logits[kept]
    if how.temperature <= 0:
        return int(ids[0]) if len(ids) else None
    if len(ids) < int(np.bitwise_count(mask).sum()) and not 0 < how.top_k <= len(ids):
        return None
    return choose(ids, logits, logsumexp_of(logits, how.temperature), True, how)


def choose_allowed_of_row(row: np.ndarray, best: np.ndarray, mask: np.ndarray, how: Draw) -> int:
    """Likewise of adjusted logits [vocab], of which `best` are the best ids. Some token has to be allowed."""
    ids = np.flatnonzero(np.unpackbits(mask, count=len(row), bitorder="little"))
    logits = row[ids]
    if how.temperature <= 0:
        return int(ids[logits.argmax()])
    logsumexp, few = logsumexp_of(logits, how.temperature), best[is_allowed(mask, best)]
    token = choose(few, row[few], logsumexp, len(few) == len(ids), how) if len(few) else None
    return int(ids[choose_of_row(logits, logsumexp, how)]) if token is None else token


def logsumexp_of(logits: np.ndarray, temperature: float) -> float:
    """The logsumexp of logits [n] / temperature."""
    best = float(logits.max())
    shares = np.exp((logits - np.float32(best)) * np.float32(1 / temperature))
    return best / temperature + math.log(float(shares.sum(dtype=np.float64)))


def best_ids(row: np.ndarray, n: int) -> np.ndarray:
    """At least the n best ids of a row of logits, all that equal the last, best first and equal ones by id."""
    if n == len(row):
        return best_first(row)
    ids: np.ndarray = np.flatnonzero(row >= np.partition(row, len(row) - n)[len(row) - n])
    found: np.ndarray = ids[best_first(row[ids])]
    return found


def best_first(row: np.ndarray) -> np.ndarray:
    """Places of f32 logits [n], best first and equal ones by place.

    They are sorted as integers that hold logit and place: numpy has vector instructions for these, and a stable sort of
    floats takes five times as long.
    """
    bits = (row.astype(np.float32, copy=False) + np.float32(0)).view(np.int32)  # -0 becomes 0, which it equals
    rising = bits ^ ((bits >> 31) & 0x7FFFFFFF)  # as integers in the order of the floats
    keys = (~rising).astype(np.int64) << 32 | np.arange(len(row))
    keys.sort()
    places: np.ndarray = keys & 0xFFFFFFFF
    return places


def choose_of_row(row: np.ndarray, logsumexp: float, how: Draw) -> int:
    """Run the chain on adjusted logits [vocab]: on the best of them, and on all where those cannot decide."""
    for n in (min(MORE_CANDIDATES, len(row)), len(row)):
        ids = best_ids(row, n)
        token = choose(ids, row[ids], logsumexp, len(ids) == len(row), how)
        if token is not None:
            return token
    raise AssertionError("all tokens decide")
