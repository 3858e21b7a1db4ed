"""Attention over a quantised cache, and what is written to it, beside the reference."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from localrun_testing.gpu_platforms import CUDA, METAL, PLATFORMS, TURING, Platform
from localrun_testing.gpu_steps import on_device, reference

from localrun.backends.gpu.scratch import partial_numbers
from localrun.backends.reference import pool as pool_module
from localrun.backends.reference.kv_codes import decode
from localrun.backends.reference.pool import BlockStore, KVPool
from localrun.ops.cache_layer import CacheLayer
from localrun.ops.instructions import Attention, RopeAppend
from localrun.ops.interface import PlainKV, SequenceInput, StepInput
from localrun.ops.kv import KV_CODECS, KVPlan
from localrun.ops.rope import RopeKind

SLOW = pytest.mark.slow
CODECS = ("q8", "k8v4", "q4")
SHAPES = ((4, 2, 64), (3, 1, 80), (8, 1, 128), (2, 1, 256), (2, 2, 16), (2, 1, 512))  # heads, KV heads, head_dim
EVERY = [
    pytest.param(
        *(platform, shape, codec),
        id=f"{platform} {shape} {codec}",
        marks=() if j == i % 3 and (platform is CUDA or i == 1 or (platform is METAL and i % 2)) else SLOW,
    )
    for platform in (CUDA, TURING, METAL)
    for i, shape in enumerate(SHAPES)
    for j, codec in enumerate(CODECS)
]
NAN = float("nan")


class Texts:
    """Texts in a pool that the reference has filled, and the last rows of each as a step."""

    def __init__(self, shape: tuple[int, int, int], codec: str, texts: list[tuple[int, int]]) -> None:
        """texts: tokens of each, and how many of them are rows of the step."""
        self.heads, self.kv_heads, self.dim = shape
        self.generator = torch.Generator().manual_seed(7)
        self.kind = RopeKind.of(1e4, self.dim, None, 1.0)
        self.sequences, n_blocks = [], 0
        for length, _ in texts:
            n = -(-length // 64)
            blocks = list(range(n_blocks + n - 1, n_blocks - 1, -1))
            self.sequences.append(SequenceInput(length, (blocks,), (0,), ring=([block + 1 for block in blocks],)))
            n_blocks += n
        layers = [CacheLayer(0, index, *shape) for index in range(2)]
        plan = KVPlan.uniform(KV_CODECS[codec], 2)
        self.pools = [KVPool(layers, plan, [n_blocks], [n_blocks + 1], torch.device("cpu")) for _ in range(2)]
        self.k, self.v = (torch.randn(sum(n for n, _ in texts), self.kv_heads * self.dim) for _ in range(2))
        self.texts = texts

    def step(self, skip: bool) -> StepInput:
        """All rows of all texts, or with `skip` the last ones, whose ring has lost the blocks before."""
        positions: list[int] = []
        sequences = list(self.sequences)
        rows: list[int] = []
        for index, (length, n) in enumerate(self.texts):
            here = range(length - n if skip else 0, length)
            positions += here
            rows += [index] * len(here)
            ring, first = sequences[index].ring[0], here[0] // 64
            sequences[index] = replace(
                sequences[index], ring=(ring[first:],), ring_first=first, ring_sink=(ring[0],) if first else ()
            )
        cos_sin = [self.kind.compute(positions)]
        return StepInput([0] * len(rows), positions, rows, sequences, [0], cos_sin=cos_sin)

    def append(self, q: torch.Tensor) -> RopeAppend:
        return RopeAppend(q, self.k, self.v, 1, 0)


def decoded(pool: KVPool) -> list[torch.Tensor]:
    """Keys and values of both forms."""
    stores = [pool.store(0, ring) for ring in (False, True)]
    return [x for store in stores for x in store.read((torch.arange(len(store.keys.codes)), 1))]


@pytest.mark.parametrize(("platform", "shape", "codec"), EVERY)
def test_what_is_stored_is_what_the_reference_stores(
    platform: Platform, shape: tuple[int, int, int], codec: str
) -> None:
    of = Texts(shape, codec, [(70, 70), (3, 3)])
    step, rows = of.step(skip=False), 128
    step.sequences = [replace(step.sequences[0], write_from=(5,)), *step.sequences[1:]]
    of.k[8, 3], of.v[9, 2], of.k[10] = NAN, 1e9, 0.0
    op = of.append(torch.randn(73, shape[0] * shape[2]))
    (want,) = reference(of.pools[0], step).rope_append(op)
    q, k, v = (torch.nn.functional.pad(x, (0, 0, 0, rows - 73)) for x in (op.q, of.k, of.v))
    out = torch.full_like(q, NAN)
    platform.rope_append(on_device(step, rows, rings=True), op, of.pools[1], (q, k, v, out, None), rows)
    torch.testing.assert_close(out[:73].view_as(want), want, rtol=1e-5, atol=1e-5)
    for mine, theirs in zip(decoded(of.pools[1]), decoded(of.pools[0]), strict=True):
        assert torch.equal(mine.isnan().any(-1), theirs.isnan().any(-1))
        far = (mine - theirs).abs() > 1e-3 * theirs.abs().clamp(min=1)
        assert float(far.float().mean()) < 1e-3  # codes on the edge between two
    if platform is CUDA:  # the same operations in the same order
        assert_same_bytes(*(of.pools[i].store(0, ring) for ring in (False, True) for i in (0, 1)))


def assert_same_bytes(*stores: BlockStore) -> None:
    """Codes and scales of two stores, and of two more; what stands for NaN may be anything."""
    for want, got in zip(stores[::2], stores[1::2], strict=True):
        numbers = want.read((torch.arange(len(want.keys.codes)), 1))
        for side, x in zip((want.keys, want.values), numbers, strict=True):
            other = got.keys if side is want.keys else got.values
            fine = ~x.isnan().any(-1)
            assert torch.equal(other.codes[:, 1][fine], side.codes[:, 1][fine])
            assert torch.equal(other.scales[:, 1][fine], side.scales[:, 1][fine])


RULES: dict[str, dict[str, Any]] = {
    "plain": {},
    "window": {"window": 100},
    "block 0 beside a window": {"sink_window": 90},
    "softcap and sinks": {"softcap": 9.0, "sinks": True},
}
BY_RULE = [
    pytest.param(*case.values, rule, id=f"{case.id} {rule}", marks=case.marks if i == 0 or n % 3 == i - 1 else SLOW)
    for n, case in enumerate(EVERY)
    for i, rule in enumerate(RULES)
]


def halves(stored: PlainKV) -> torch.Tensor:
    """Numbers as the tensor cores read them."""
    return decode(stored).half().float()


@pytest.mark.parametrize(("platform", "shape", "codec", "rule"), BY_RULE)
def test_same_as_the_reference(platform: Platform, shape: tuple[int, int, int], codec: str, rule: str) -> None:
    """Rows alone and together give the same bits, and those are right: across blocks, so that both forms are read."""
    of = Texts(shape, codec, [(200, 75), (600, 2), (1, 1)])
    whole = of.step(skip=False)
    reference(of.pools[0], whole).rope_append(of.append(torch.randn(whole.n_rows, shape[0] * shape[2])))
    step = of.step(skip=True)
    q, towards_0 = torch.randn(2, step.n_rows, shape[0], shape[2], generator=of.generator)
    rules = dict(RULES[rule])
    rules["sinks"] = torch.randn(shape[0], generator=of.generator) if "sinks" in rules else None
    rules["sink_query"] = towards_0 if "sink_window" in rules else None
    op = Attention(q, 1, shape[2] ** -0.5, **rules)
    with pytest.MonkeyPatch.context() as patch:
        if platform is not METAL:
            patch.setattr(pool_module, "decode", halves)
        (want,) = reference(of.pools[0], step).attention(op)
    found = [attended(platform, of.pools[0], step, op, split=split) for split in (True, False)]
    assert torch.equal(*found)
    torch.testing.assert_close(found[0], want, rtol=2e-5, atol=2e-5 if platform is TURING else 3e-6)


def attended(platform: Platform, pool: KVPool, step: StepInput, op: Attention, *, split: bool) -> torch.Tensor:
    """Results for the rows of a step in a bucket of 128; `split`: each by itself."""
    n, heads, dim = op.q.shape
    rows = 128
    padded = [
        None if x is None else torch.nn.functional.pad(x.flatten(1), (0, 0, 0, rows - n)) for x in (op.q, op.sink_query)
    ]
    assert padded[0] is not None
    out = torch.full_like(padded[0], NAN)
    partial = torch.full((rows * partial_numbers(1, 2, heads, dim),), NAN)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(platform.attentions, "SPLIT_ROWS", rows if split else 1)
        given = ((padded[0], padded[1], out), rows, 2, partial)
        platform.attend(platform.usual, on_device(step, rows, rings=True), op, pool, *given)
    assert not bool(out[n:].any())
    return out[:n]


@pytest.mark.parametrize("platform", PLATFORMS, ids=str)
def test_the_largest_numbers_stay_finite(platform: Platform) -> None:
    """Codes of the largest scale there is stand for more than 16 bits hold."""
    of = Texts((2, 1, 64), "q8", [(130, 1)])
    of.v[:] = 0.0
    of.v[64:100, 0] = 1e9  # turned: all dims of a token alike
    whole = of.step(skip=False)
    reference(of.pools[0], whole).rope_append(of.append(torch.zeros(130, 128)))
    step = of.step(skip=True)
    out = attended(platform, of.pools[0], step, Attention(torch.zeros(1, 2, 64), 1, 0.125), split=True)
    assert bool(out.isfinite().all())
