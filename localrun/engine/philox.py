"""Counter-based random numbers: the draw for a position never depends on what else was drawn.

Philox4x32-10 of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011).
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
MASK = 0xFFFFFFFF
ROUNDS = 10
MANY = 16  # draws from which on arrays are quicker than one by one


def philox(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """Four random 32-bit words for a counter of four and a key of two words."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(ROUNDS):
        product0, product1 = MULTIPLIERS[0] * c0, MULTIPLIERS[1] * c2
        c0, c1, c2, c3 = (
            (product1 >> 32) ^ c1 ^ k0,
            product1 & MASK,
            (product0 >> 32) ^ c3 ^ k1,
            product0 & MASK,
        )
        k0, k1 = (k0 + WEYL[0]) & MASK, (k1 + WEYL[1]) & MASK
    return c0, c1, c2, c3


@lru_cache(maxsize=256)  # a step begun ahead asks for the same ones as the step itself, and as the choice after it
def uniform(seed: int, position: int) -> float:
    """A number in [0, 1) that belongs to this seed and position, with 53 random bits."""
    high, low, _, _ = philox((position & MASK, position >> 32 & MASK, 0, 0), (seed & MASK, seed >> 32 & MASK))
    return ((high << 32 | low) >> 11) / (1 << 53)


def uniforms(seeds: Sequence[int], positions: Sequence[int]) -> list[float]:
    """`uniform` of every pair."""
    if len(seeds) < MANY:
        return [uniform(seed, position) for seed, position in zip(seeds, positions, strict=True)]
    key, at = np.array(seeds, np.uint64), np.array(positions, np.uint64)
    mask, half = np.uint64(MASK), np.uint64(32)
    multipliers, weyl = (np.array(pair, np.uint64)[:, None] for pair in (MULTIPLIERS, WEYL))
    rounds = np.arange(ROUNDS, dtype=np.uint64)[:, None, None]
    even, odd = np.stack((at & mask, 0 * at)), np.stack((at >> half, 0 * at))  # c0 and c2, c1 and c3 [2, n]
    for keys in np.stack((key & mask, key >> half)) + rounds * weyl & mask:
        products = even * multipliers
        even, odd = (products >> half)[::-1] ^ odd ^ keys, (products & mask)[::-1]
    draws: list[float] = (((even[0] << half | odd[0]) >> np.uint64(11)) / float(1 << 53)).tolist()
    return draws
