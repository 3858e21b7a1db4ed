"""NaN and infinity in weights are found wherever a type can hold them, against what its decoder makes of the bits."""

import numpy as np
import pytest
import torch

from localrun.formats.finite import first_not_finite
from localrun.formats.quant import QUANT_TYPES

WHOLE = ("I8", "U8", "U16", "U32", "BOOL", "I16", "I32", "I64")


@pytest.mark.parametrize("qtype", [name for name in QUANT_TYPES if name not in WHOLE])
def test_every_block_is_judged_as_its_decoder_does(qtype: str) -> None:
    """Random bytes, and zeros with a few bits set: a block is not finite just where its decoded numbers are not."""
    quant, rng = QUANT_TYPES[qtype], np.random.default_rng(3)
    noise = rng.integers(0, 256, (2000, quant.block_bytes), np.uint8)
    picked = rng.choice([0x7C, 0x7F, 0x80, 0xFF], noise.shape)
    sparse = np.where(rng.random(noise.shape) < 2 / quant.block_bytes, picked, 0)
    blocks = np.concatenate([noise, sparse.astype(np.uint8), np.full((1, quant.block_bytes), 255, np.uint8)])
    values = quant.decode(torch.from_numpy(blocks.copy()), (len(blocks), quant.block_size))
    bad = ~torch.isfinite(values).all(-1).numpy()
    for index in (*range(0, 4000, 40), *np.flatnonzero(bad)[:40], len(blocks) - 1):
        found = first_not_finite(qtype, blocks[index].copy())
        if bad[index]:
            assert found == 0, (qtype, blocks[index])
        elif found is not None:  # a scale that is none, of numbers that are all 0 or cancel out
            assert qtype not in ("F16", "BF16", "F32", "F64", "F8_E4M3", "F8_E5M2", "F8_E8M0")
    good = blocks[[first_not_finite(qtype, block.copy()) is None for block in blocks]]
    assert first_not_finite(qtype, good.ravel().copy()) is None
    if bad.any():
        broken = blocks[np.flatnonzero(bad)[0]]
        for at in (0, len(good) // 2, len(good)):
            assert first_not_finite(qtype, np.insert(good, at, broken, axis=0).ravel().copy()) == at


@pytest.mark.parametrize("qtype", list(QUANT_TYPES))
def test_nothing_is_found_in_nothing(qtype: str) -> None:
    assert first_not_finite(qtype, np.empty(0, np.uint8)) is None
    assert first_not_finite(qtype, np.zeros(QUANT_TYPES[qtype].block_bytes * 300_000, np.uint8)) is None
