"""Norms and biases read without torch have the bits that their type's own decoder gives."""

import numpy as np
import pytest
import torch

from localrun.base.errors import ModelFileError
from localrun.formats.floats import FLOATS, read_floats
from localrun.formats.quant import QUANT_TYPES

N = 512


@pytest.mark.parametrize("qtype", [*FLOATS, "F64", "Q8_0"])
def test_every_pattern_of_bits(qtype: str) -> None:
    """Subnormals, infinities and NaN among them."""
    raw = np.random.default_rng(0).integers(0, 256, QUANT_TYPES[qtype].nbytes((N,)), dtype=np.uint8)
    expected = QUANT_TYPES[qtype].decode(torch.from_numpy(raw), (N,)).numpy()
    found = read_floats(qtype, raw, (N,))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("qtype", FLOATS)
def test_too_few_bytes(qtype: str) -> None:
    with pytest.raises(ModelFileError):
        read_floats(qtype, np.zeros(6, np.uint8), (N,))
