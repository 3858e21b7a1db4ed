"""Choosing the next token: small pure functions on the best candidates of a row.

Penalties and bias are already in the logits (ops). The chain is temperature, top-k, top-p, min-p, draw. It runs on
the 256 best candidates with probabilities of the whole vocabulary; where those cannot decide, it says so by returning
None and is run again on the full row, with the same result as if that had been done at once.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from localrun.base.request import Sampling

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
MAX_SEED = 2**63


@dataclass(frozen=True, slots=True)
class SamplerSettings:
    """A Sampling with every choice made."""

    temperature: float = 0.8
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    repeat_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0


@dataclass(frozen=True, slots=True)
class Candidates:
    """Tokens best first. `probabilities` are shares of the whole vocabulary; `complete`: no other token can win."""

    ids: Ints  # [n]
    probabilities: Floats  # [n]
    complete: bool

    @property
    def mass(self) -> float:
        """What a draw is scaled by: everything, or all that is left."""
        return float(self.probabilities.sum()) if self.complete else 1.0


def candidates(ids: Ints, logits: Floats, logsumexp: float, temperature: float, complete: bool) -> Candidates:
    """Candidates from adjusted logits; `logsumexp` is that of all logits / temperature."""
    return Candidates(ids, np.exp(logits / temperature - logsumexp), complete)


def keep_top_k(c: Candidates, k: int) -> Candidates | None:
    """The k best; 0 keeps all."""
    if k <= 0 or (c.complete and k >= len(c.ids)):
        return c
    if k > len(c.ids):
        return None
    return Candidates(c.ids[:k], c.probabilities[:k], complete=True)


def keep_top_p(c: Candidates, p: float) -> Candidates | None:
    """The smallest set of best tokens that holds share p of what is left (Holtzman et al. 2020)."""
    if p >= 1.0:
        return c
    n = int(c.probabilities.cumsum().searchsorted(p * c.mass)) + 1
    if n > len(c.ids):
        return c if c.complete else None
    return Candidates(c.ids[:n], c.probabilities[:n], complete=True)


def keep_min_p(c: Candidates, share: float) -> Candidates | None:
    """Tokens at least `share` as likely as the best (Nguyen et al. 2024)."""
    if share <= 0.0:
        return c
    n = int((-c.probabilities).searchsorted(-share * c.probabilities[0], side="right"))
    if n == len(c.ids) and not c.complete:
        return None
    return Candidates(c.ids[: max(n, 1)], c.probabilities[: max(n, 1)], complete=True)


def draw(c: Candidates, u: float) -> int | None:
    """The token at share u in [0, 1) of the candidates laid end to end, best first."""
    reached = int(c.probabilities.cumsum().searchsorted(u * c.mass, side="right"))
    if reached < len(c.ids):
        return int(c.ids[reached])
    return int(c.ids[-1]) if c.complete else None  # u at the very end, lost to rounding


def choose(c: Candidates, settings: SamplerSettings, u: float) -> int | None:
    """Run the chain; None when more candidates are needed to decide."""
    kept = keep_top_k(c, settings.top_k)
    kept = kept and keep_top_p(kept, settings.top_p)
    kept = kept and keep_min_p(kept, settings.min_p)
    return None if kept is None else draw(kept, u)


def settle(wish: Sampling, own: Sampling) -> SamplerSettings:
    """A request's wishes, then the model's own settings, then our defaults."""
    chosen = {}
    for name in SamplerSettings.__dataclass_fields__:
        value = getattr(wish, name)
        value = getattr(own, name) if value is None else value
        if value is not None:
            chosen[name] = value
    return SamplerSettings(**chosen)
