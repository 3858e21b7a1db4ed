"""Choosing the next token: small pure functions on the best candidates of a row.

Penalties and bias are already in the logits (ops). The chain is top-k, temperature, top-p, min-p, draw. It runs on the
256 best candidates with probabilities of the whole vocabulary; where those cannot decide, it says so by returning None
and is run again on more of the row, with the same result as if that had been done at once. Candidates are plain lists:
for so few, and in caches that the weights have just passed through, numpy's machinery takes longer than the sums. For
many rows it does not: `sampler_rows` has the same chain for them.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import accumulate
from operator import neg

import numpy as np

from localrun.base.request import DEFAULT_SAMPLING, Sampling

MAX_SEED = 2**53  # of the seeds we draw: readers of JSON in other languages keep no more digits
MORE_CANDIDATES = 8192  # what a flat distribution is tried with before the whole vocabulary


@dataclass(frozen=True, slots=True)
class SamplerSettings:
    """A Sampling with every choice made."""

    temperature: float = DEFAULT_SAMPLING["temperature"]
    top_k: int = int(DEFAULT_SAMPLING["top_k"])
    top_p: float = DEFAULT_SAMPLING["top_p"]
    min_p: float = DEFAULT_SAMPLING["min_p"]
    repeat_penalty: float = DEFAULT_SAMPLING["repeat_penalty"]
    presence_penalty: float = DEFAULT_SAMPLING["presence_penalty"]
    frequency_penalty: float = DEFAULT_SAMPLING["frequency_penalty"]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Tokens best first. `probabilities` are shares of the whole vocabulary; `complete`: no other token can win."""

    ids: list[int]
    probabilities: list[float]
    reached: list[float]  # sums of the probabilities up to each
    complete: bool

    @property
    def mass(self) -> float:
        """What a draw is scaled by: everything, or all that is left."""
        return self.reached[-1] if self.complete else 1.0

    def best(self, n: int) -> "Candidates":
        """The best n and no others."""
        return Candidates(self.ids[:n], self.probabilities[:n], self.reached[:n], complete=True)


def keep_top_k(
    ids: np.ndarray, logits: np.ndarray, logsumexp: float, complete: bool, settings: SamplerSettings
) -> Candidates | None:
    """The top_k best of ids [n] with adjusted logits [n], 0: all; `logsumexp` is that of all logits / temperature."""
    k, n = settings.top_k, len(ids)
    if k > n and not complete:
        return None
    if 0 < k <= n:
        ids, logits, complete = ids[:k], logits[:k], True
    probabilities = likelihoods(logits, settings.temperature, logsumexp).tolist()
    return Candidates(ids.tolist(), probabilities, list(accumulate(probabilities)), complete)


def likelihoods(logits: np.ndarray, temperature: float | np.ndarray, logsumexp: float | np.ndarray) -> np.ndarray:
    """Shares of the whole vocabulary, f64 like logits [..., n], which are best first: none is more than one before."""
    exponents = np.minimum(logits.astype(np.float64) / temperature - logsumexp, 0.0)
    shares: np.ndarray = np.minimum.accumulate(np.exp(exponents), axis=-1)
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
        return c.ids[n]
    return c.ids[-1] if c.complete else None  # u at the very end, lost to rounding


def choose(
    ids: np.ndarray, logits: np.ndarray, logsumexp: float, complete: bool, settings: SamplerSettings, u: float
) -> int | None:
    """Run the chain on tokens best first, [n] of the row or all of it; None when more are needed to decide."""
    kept = keep_top_k(ids, logits, logsumexp, complete, settings)
    kept = kept and keep_top_p(kept, settings.top_p)
    kept = kept and keep_min_p(kept, settings.min_p)
    return None if kept is None else draw(kept, u)


def best_ids(row: np.ndarray, n: int) -> np.ndarray:
    """At least the n best ids of a row of logits, all that equal the last, best first and equal ones by id."""
    ids = np.flatnonzero(row >= np.partition(row, len(row) - n)[len(row) - n])
    return ids[np.argsort(-row[ids], kind="stable")]


def choose_of_row(row: np.ndarray, logsumexp: float, settings: SamplerSettings, u: float) -> int:
    """Run the chain on adjusted logits [vocab]: on the best of them, and on all where those cannot decide."""
    for n in (min(MORE_CANDIDATES, len(row)), len(row)):
        ids = best_ids(row, n)
        token = choose(ids, row[ids], logsumexp, len(ids) == len(row), settings, u)
        if token is not None:
            return token
    raise AssertionError("all tokens decide")


def resolve_settings(wish: Sampling, own: Sampling) -> SamplerSettings:
    """A request's wishes, then the model's own settings, then our defaults."""
    chosen = {}
    for name in SamplerSettings.__dataclass_fields__:
        value = getattr(wish, name)
        value = getattr(own, name) if value is None else value
        if value is not None:
            chosen[name] = value
    return SamplerSettings(**chosen)
