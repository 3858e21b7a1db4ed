"""The KV codecs: codes against the formula in numpy, bounds of what is lost, and the rotation against its matrix."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from localrun_testing.kv_cases import KVCase, nmse

from localrun.backends.reference.kv_codes import decode, encode, rotate_hadamard
from localrun.ops.interface import PlainKV
from localrun.ops.kv import KV_CODECS, MAX_F16, KVCodec

HEAD_DIMS = (8, 24, 40, 64, 80, 96, 128, 192, 256)
FP16_STEP = 2.0**-11  # relative error of a rounded fp16 number
TINY = 2.0**-25  # and the absolute one of a subnormal


def by_formula(group: np.ndarray, bits: int) -> tuple[list[int], np.float16, np.float16 | None]:
    """Codes, scale and offset of one scale group in float32, element by element."""
    one = np.float32
    x = np.clip(group.astype(one), one(-MAX_F16), one(MAX_F16))
    if bits == 8:
        scale, offset, low, high = np.float16(np.abs(x).max() / one(127)), None, -127, 127
    else:
        cell = (x.max() - x.min()) / one(16)
        scale, offset, low, high = np.float16(cell), np.float16(x.min() + one(8.5) * cell), -8, 7
    inverse = one(1) / one(scale) if scale > 0 else one(0)
    codes = [int(np.clip(np.rint((v - one(offset or 0)) * inverse), low, high)) for v in x]
    return codes, scale, offset


@st.composite
def vectors(draw: st.DrawFn) -> torch.Tensor:
    """Keys of two heads: ordinary, tiny, huge, equal, or mostly zero."""
    head_dim = draw(st.sampled_from(HEAD_DIMS))
    g = torch.Generator().manual_seed(draw(st.integers(0, 999)))
    size = draw(st.sampled_from([0.0, 1e-9, 1e-6, 1e-3, 1.0, 300.0, 6e4, 1e9]))
    x = torch.randn(2, head_dim, generator=g) * size + draw(st.sampled_from([0.0, 0.0, -2.0, 50.0]))
    if draw(st.booleans()):
        x[0, 1:] = 0.0
    return x


@given(vectors(), st.sampled_from([8, 4]))
@settings(max_examples=60)
def test_codes_follow_the_formula_and_lose_at_most_half_a_step(x: torch.Tensor, bits: int) -> None:
    stored = encode(x, bits)
    assert stored.codes.dtype == torch.int8
    assert stored.scale is not None
    back = decode(stored)
    for head in range(2):
        for index, start in enumerate(range(0, x.shape[1], 128)):
            group = x[head, start : start + 128].numpy()
            codes, scale, offset = by_formula(group, bits)
            assert stored.codes[head, start : start + 128].tolist() == codes
            assert stored.scale[head, index].item() == scale
            assert (None if stored.offset is None else stored.offset[head, index].item()) == offset
            step, middle = float(scale), abs(float(offset or 0))
            slack = FP16_STEP * (np.abs(group.clip(-MAX_F16, MAX_F16)).max() + middle) + 128 * TINY
            lost = np.abs(group.clip(-MAX_F16, MAX_F16) - back[head, start : start + 128].numpy()).max()
            assert lost <= step / 2 + slack


@given(vectors())
@settings(max_examples=30)
def test_coding_what_was_decoded_changes_nothing(x: torch.Tensor) -> None:
    once = encode(x, 8)
    assert once.scale is not None
    normal = once.scale >= 2.0**-14  # a subnormal scale has too few bits of its own
    again = encode(decode(once), 8)
    assert torch.equal(again.codes[normal[:, 0]], once.codes[normal[:, 0]])


@pytest.mark.parametrize("bits", [16, 8, 4])
def test_large_values_stay_finite_and_nan_stays_visible(bits: int) -> None:
    x = torch.zeros(3, 256)
    x[0, 5], x[1, 7], x[2, 200] = 1e30, -math.inf, math.nan
    back = decode(encode(x, bits))
    assert torch.isfinite(back[:2]).all()
    assert back.nan_to_num(0.0).abs().max() == pytest.approx(MAX_F16, rel=0.04)
    assert back[2, 200].isnan()
    assert torch.isfinite(back[2, :128]).all()  # the other scale group does not know


@pytest.mark.parametrize("bits", [8, 4])
def test_zeros_and_equal_values_are_exact(bits: int) -> None:
    assert decode(encode(torch.zeros(1, 64), bits)).abs().max() == 0
    assert torch.equal(decode(encode(torch.full((1, 64), -3.5), 4)), torch.full((1, 64), -3.5))


def test_a_token_is_coded_alone() -> None:
    """Bit for bit whatever stands beside it: rows, heads and scale groups do not know each other."""
    x = torch.randn(9, 3, 192, generator=torch.Generator().manual_seed(0))
    for bits in (16, 8, 4):
        whole = decode(encode(x, bits))
        for row in range(9):
            assert torch.equal(decode(encode(x[row : row + 1, 1:2], bits))[0, 0], whole[row, 1])
            assert torch.equal(decode(encode(x[row, 2, :128], bits)), whole[row, 2, :128])


def sylvester(size: int) -> torch.Tensor:
    h = torch.ones(1, 1)
    while len(h) < size:
        h = torch.cat((torch.cat((h, h), 1), torch.cat((h, -h), 1)))
    return h


@pytest.mark.parametrize(
    ("head_dim", "block"), [(64, 64), (80, 16), (96, 32), (128, 128), (192, 64), (256, 256), (7, 1)]
)
def test_rotation_is_an_orthonormal_matrix(head_dim: int, block: int) -> None:
    matrix = torch.block_diag(*[sylvester(block) / math.sqrt(block)] * (head_dim // block))
    x = torch.randn(5, 2, head_dim, generator=torch.Generator().manual_seed(1))
    assert torch.allclose(rotate_hadamard(x), x @ matrix, atol=1e-5)
    assert torch.allclose(rotate_hadamard(rotate_hadamard(x)), x, atol=1e-5)
    assert torch.equal(rotate_hadamard(x)[3:4, 1:], rotate_hadamard(x[3:4, 1:]))


def test_rotated_keys_give_the_same_scores() -> None:
    q, k = torch.randn(2, 30, 96, generator=torch.Generator().manual_seed(2))
    assert torch.allclose(rotate_hadamard(q) @ rotate_hadamard(k).T, q @ k.T, atol=1e-4)


@pytest.mark.parametrize(
    ("codec", "limit", "saved"),
    [("q8", 3e-4, 2.0), ("k8v4", 8e-3, 1.0), ("q4", 4e-2, 2.0)],  # V has no large channels, and costs most with k8v4
)
def test_what_a_codec_costs_and_the_rotation_saves(
    codec: str, limit: float, saved: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys with a few large channels: against exact attention, and against the same codes unrotated."""
    case = KVCase(codec, head_dim=128, n_tokens=330)
    rows = [p for p in case.telling_rows if p >= 200]
    exact = KVCase("f32", head_dim=128, n_tokens=330).expected(rows)
    rotated = nmse(case.expected(rows), exact)
    assert rotated < limit
    row = KV_CODECS[codec]
    plain = KVCodec(codec, row.k_bits, row.v_bits, native=False, rotates=False)
    monkeypatch.setitem(KV_CODECS, codec, plain)
    assert nmse(case.expected(rows), exact) > saved * rotated


def test_bytes_of_a_token() -> None:
    sizes = {name: codec.bytes_per_token(128) for name, codec in KV_CODECS.items()}
    assert sizes == {"f32": 1024, "f16": 512, "q8": 260, "k8v4": 198, "q4": 136}
    assert KV_CODECS["q8"].bytes_per_token(192) == 2 * (192 + 2 * 2)
    for codec in KV_CODECS.values():
        assert codec.bytes_per_token(256) == 2 * codec.bytes_per_token(128)


def test_numbers_are_stored_as_they_are() -> None:
    x = torch.tensor([1.5, -2.25, 1e9])
    assert torch.equal(decode(encode(x, 32)), x)
    assert torch.equal(decode(PlainKV(x.half())), x.half().float())
