"""The reference's blocks: bytes as planned, private and plain forms that come back whole, and what a step may write."""

from dataclasses import replace

import pytest
import torch
from localrun_testing.kv_cases import Blocks, KVCase, reference_for, run, sizes, step

from localrun.backends.reference.executor import ReferenceExecutor
from localrun.backends.reference.kv_codes import decode, rotate_hadamard
from localrun.backends.reference.pool import KVPool
from localrun.ops.interface import PlainKV, SequenceInput
from localrun.ops.kv import BLOCK_TOKENS, KV_CODECS, MAX_F16, KVPlan
from localrun.ops.layouts import F32

CPU = torch.device("cpu")
QUANTISED = ["q8", "k8v4", "q4"]


@pytest.mark.parametrize("head_dim", [8, 64, 80, 96, 128, 192, 256])
@pytest.mark.parametrize("codec", list(KV_CODECS))
def test_allocated_bytes_are_the_codecs(codec: str, head_dim: int) -> None:
    case = KVCase(codec, head_dim)
    pool = KVPool([case.layer, replace(case.layer, index=1)], KVPlan.uniform(case.kv_codec, 2), [5], [2], CPU)
    tokens = 2 * case.n_kv_heads * BLOCK_TOKENS  # of two layers
    coded = tokens * case.kv_codec.bytes_per_token(head_dim)
    ring = 0 if case.kv_codec.native else tokens * KV_CODECS["f16"].bytes_per_token(head_dim)
    assert pool.coded[0].block_bytes == coded == len(pool.coded[0].to_bytes(0))
    assert pool.nbytes == 5 * coded + 2 * ring


def test_groups_hold_their_own_shapes_and_codecs() -> None:
    full, windowed = KVCase("q8", 64).layer, replace(KVCase("f16", 80).layer, group=1)
    plan = KVPlan((KV_CODECS["q8"], KV_CODECS["f16"]))
    pool = KVPool([full, windowed], plan, [3, 4], [2, 0], CPU)
    assert pool.store(1, ring=False).keys.codes.shape == (4, 1, 64, 2, 80)
    assert pool.ring[1] is None
    with pytest.raises(AssertionError, match="no 16-bit blocks"):
        pool.store(1, ring=True)
    with pytest.raises(ValueError, match="too many values"):  # one codec a group
        KVPool([full, replace(windowed, group=0)], plan, [3], [2], CPU)


@pytest.mark.parametrize("codec", list(KV_CODECS))
def test_a_block_moves_as_bytes_as_plain_codes_and_by_copy(codec: str) -> None:
    case = KVCase(codec, 24, 2, 1, n_tokens=70)
    source, target = reference_for(case), reference_for(case)
    run(case, source)
    n_blocks, n_ring = sizes(case)
    for block in range(n_blocks):
        target.write_block(0, block, source.read_block(0, block))
        assert target.read_block(0, block) == source.read_block(0, block)
    written = max(range(n_blocks), key=lambda b: source.read_block(0, b).count(0) * -1)
    free = (written + 1) % n_blocks
    target.copy_block(0, written, free)
    assert target.read_block(0, free) == source.read_block(0, written)
    keys, values = source.kv_export(0, written)
    other = reference_for(case)
    other.kv_import(0, free, keys, values)
    assert other.read_block(0, free) == source.read_block(0, written)
    if n_ring:
        held = next(b for b in range(n_ring) if any(source.read_ring(0, b)))
        target.write_ring(0, 0, source.read_ring(0, held))
        target.copy_ring(0, 0, 1)
        assert target.read_ring(0, 1) == source.read_ring(0, held)
        assert len(source.read_ring(0, held)) == source.ring_bytes(0)
        other.kv_import(0, 1, *source.kv_export(0, held, ring=True), ring=True)
        assert other.read_ring(0, 1) == source.read_ring(0, held)
    else:
        assert source.ring_bytes(0) == 0
    with pytest.raises(AssertionError):
        target.write_block(0, 0, source.read_block(0, 0)[:-1])


@pytest.mark.parametrize("codec", QUANTISED)
def test_exported_codes_are_plain(codec: str) -> None:
    case = KVCase(codec, 192, 2, 1, n_tokens=64, rope=False)
    executor = reference_for(case)
    view = Blocks.of(case, executor, *sizes(case), seed=1, poison=False).view(0, 64)
    step(case, executor, view, 0, 64)
    bits = (case.kv_codec.k_bits, case.kv_codec.v_bits)
    coded = executor.kv_export(0, view.table[0][0])
    numbers = executor.kv_export(0, view.ring[0][0], ring=True)
    for plain, exact, n in zip(coded, numbers, bits, strict=True):
        assert plain.codes.shape == (64, 1, 192)
        assert plain.scale is not None
        assert plain.scale.shape == (64, 1, 2)
        assert (plain.offset is None) == (n == 8)
        low, high = {8: (-127, 127), 4: (-8, 7)}[n]
        assert (int(plain.codes.min()), int(plain.codes.max())) == (low, high)
        assert exact.codes.dtype == torch.float16
        assert float((decode(plain) - decode(exact)).abs().max()) <= float(plain.scale.max()) * 0.52


@pytest.mark.parametrize("codec", ["f16", *QUANTISED])
def test_rows_below_write_from_leave_the_codes_alone(codec: str) -> None:
    """A replay with other tokens: codes stay as they were, the 16-bit values do not."""
    case = KVCase(codec, 24, 2, 1, n_tokens=100)
    executor = reference_for(case)
    blocks = Blocks.of(case, executor, *sizes(case), seed=0, poison=False)
    view = blocks.view(0, 100)
    step(case, executor, view, 0, 100)

    def stored() -> list[PlainKV]:
        return [plain for block in view.table[0] for plain in executor.kv_export(0, block)]

    def exact() -> list[bytes]:
        return [executor.read_ring(0, block) for rings in view.ring for block in rings]

    coded, numbers = stored(), exact()
    step(case, executor, replace(view, write_from=(100,)), 0, 100, shift=1)
    assert all(torch.equal(new.codes, old.codes) for new, old in zip(stored(), coded, strict=True))
    assert all(new != old for new, old in zip(exact(), numbers, strict=True))
    step(case, executor, replace(view, write_from=(99,)), 97, 3, shift=2)
    changed = [(new.codes != old.codes).flatten(1).any(1).tolist() for new, old in zip(stored(), coded, strict=True)]
    only_99 = [False] * 35 + [True] + [False] * 28
    assert changed == [[False] * 64] * 2 + [only_99] * 2


def test_huge_keys_are_clamped_before_they_are_rotated() -> None:
    """Sums of numbers near the largest of fp32 would overflow in the rotation, and NaN would reach every dim."""
    case = KVCase("q8", 16, 2, 1, n_tokens=3, rope=False)
    q, k, v = case.qkv()
    k[1, 0, 2:5], v[1, 0, 7:9] = 3e38, -3e38
    executor = ReferenceExecutor(case.request(case.forward(F32, (q, k, v)), 4, 4), CPU)
    assert torch.isfinite(run(case, executor)).all()
    exported = [executor.kv_export(0, block, ring=True) for block in range(4)]
    keys, values = next((a, b) for a, b in exported if decode(a).abs().max() > 0)
    for stored, given in ((keys, k), (values, v)):
        turned_back = rotate_hadamard(decode(stored))[:3]
        assert torch.allclose(turned_back, given.clamp(-MAX_F16, MAX_F16), atol=0.001 * MAX_F16)


def test_blocks_that_are_gone_are_not_found() -> None:
    view = SequenceInput(200, ((7, 8),), (2,), ring=((3,),), ring_first=3)
    assert view.block(0, 2) == 7
    assert view.ring_block(0, 3) == 3
    with pytest.raises(AssertionError, match="left the window"):
        view.block(0, 1)
    with pytest.raises(AssertionError, match="ring begins after"):
        view.ring_block(0, 2)


def test_plain_numbers_have_no_scales() -> None:
    x = torch.zeros(64, 1, 8, dtype=torch.float16)
    assert PlainKV(x).scale is None
    assert PlainKV(x).offset is None
