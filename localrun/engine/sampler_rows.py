"""The sampler chain on the candidates of many rows at once: the same tokens as `sampler.choose` finds row by row."""

from collections.abc import Sequence

import numpy as np

from localrun.engine.sampler import SamplerSettings, likelihoods

UNDECIDED = -1  # in place of a token: the candidates of that row cannot tell


def choose_rows(
    ids: np.ndarray,
    logits: np.ndarray,
    logsumexp: np.ndarray,
    complete: bool,
    settings: Sequence[SamplerSettings],
    u: np.ndarray,
) -> np.ndarray:
    """Run the chain on tokens best first, ids and logits [L, n], each row with its settings and draw -> ids [L].

    `complete`: the n are the whole vocabulary. UNDECIDED where a row needs more of it.
    """
    chains = np.array([(s.temperature, s.top_k, s.top_p, s.min_p) for s in settings])
    temperature, top_k, top_p, min_p = chains.T  # f64 [L] each
    n = ids.shape[1]
    is_cut = (top_k > 0) & (top_k <= n)
    width = np.where(is_cut, top_k, n).astype(np.int64)  # candidates that are left of each row
    is_whole = is_cut | complete  # no other token can win
    undecided = (top_k > n) & ~is_whole
    widest = int(width.max())
    probabilities = likelihoods(logits[:, :widest], temperature[:, None], logsumexp[:, None])
    reached = np.cumsum(probabilities, axis=1)
    place = np.arange(widest)

    def mass() -> np.ndarray:
        """What a draw is scaled by: all that is left of a row, or everything."""
        return np.where(is_whole, np.take_along_axis(reached, width[:, None] - 1, 1)[:, 0], 1.0)

    def count(holds: np.ndarray) -> np.ndarray:
        """Candidates of each row, among those left, of which it is true."""
        counted: np.ndarray = (holds & (place < width[:, None])).sum(1)
        return counted

    n_top_p = count(reached < (top_p * mass())[:, None]) + 1
    undecided |= (top_p < 1.0) & (n_top_p > width) & ~is_whole
    is_cut = (top_p < 1.0) & (n_top_p <= width)
    width, is_whole = np.where(is_cut, n_top_p, width), is_whole | is_cut
    n_min_p = count(probabilities >= min_p[:, None] * probabilities[:, :1])
    is_cut = (min_p > 0.0) & (is_whole | (n_min_p < width))
    undecided |= (min_p > 0.0) & ~is_cut
    width, is_whole = np.where(is_cut, np.maximum(n_min_p, 1), width), is_whole | is_cut
    drawn = count(reached <= (u * mass())[:, None])
    undecided |= (drawn >= width) & ~is_whole
    chosen = np.take_along_axis(ids, np.minimum(drawn, width - 1)[:, None], 1)[:, 0]
    return np.where(undecided, UNDECIDED, chosen)
