"""Attention over a quantised cache, and what is written to it, beside the reference."""

from dataclasses import replace

import pytest
import torch
from localrun_testing.gpu_platforms import METAL
from localrun_testing.gpu_steps import on_device, reference

from localrun.backends.gpu.scratch import partial_numbers
from localrun.backends.metal import attentions
from localrun.backends.reference.pool import KVPool
from localrun.ops.cache_layer import CacheLayer
from localrun.ops.instructions import Attention, RopeAppend
from localrun.ops.interface import SequenceInput, StepInput
from localrun.ops.kv import KV_CODECS, KVPlan
from localrun.ops.rope import RopeKind

CODECS = ("q8", "k8v4", "q4")
SHAPES = ((4, 2, 64), (3, 1, 80), (8, 1, 128), (2, 1, 256), (2, 2, 16))  # heads, KV heads, head_dim
EVERY = [
    pytest.param(shape, codec, id=f"{shape} {codec}", marks=() if i < 2 or j == i - 2 else pytest.mark.slow)
    for i, shape in enumerate(SHAPES)
    for j, codec in enumerate(CODECS)
]
NAN = float("nan")


class Texts:
    """Texts in a pool that the reference has filled, and the last rows of each as a step."""

    def __init__(self, shape: tuple[int, int, int], codec: str, texts: list[tuple[int, int]], window: int = 0) -> None:
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
        self.window = window or None
        self.texts = texts

    def step(self, skip: bool) -> StepInput:
        """All rows of all texts, or with `skip` the last ones."""
        positions: list[int] = []
        rows: list[int] = []
        for index, (length, n) in enumerate(self.texts):
            here = range(length - n if skip else 0, length)
            positions += here
            rows += [index] * len(here)
        cos_sin = [self.kind.compute(positions)]
        return StepInput([0] * len(rows), positions, rows, self.sequences, [0], cos_sin=cos_sin)

    def append(self, q: torch.Tensor) -> RopeAppend:
        return RopeAppend(q, self.k, self.v, 1, 0)


def decoded(pool: KVPool) -> list[torch.Tensor]:
    """Keys and values of both forms."""
    stores = [pool.store(0, ring) for ring in (False, True)]
    return [x for store in stores for x in store.read((torch.arange(len(store.keys.codes)), 1))]


@pytest.mark.parametrize(("shape", "codec"), EVERY)
def test_what_is_stored_is_what_the_reference_stores(shape: tuple[int, int, int], codec: str) -> None:
    of = Texts(shape, codec, [(70, 70), (3, 3)])
    step, rows = of.step(skip=False), 128
    step.sequences = [replace(step.sequences[0], write_from=(5,)), *step.sequences[1:]]
    of.k[8, 3], of.v[9, 2], of.k[10] = NAN, 1e9, 0.0
    op = of.append(torch.randn(73, shape[0] * shape[2]))
    (want,) = reference(of.pools[0], step).rope_append(op)
    q, k, v = (torch.nn.functional.pad(x, (0, 0, 0, rows - 73)) for x in (op.q, of.k, of.v))
    out = torch.full_like(q, NAN)
    METAL.rope_append(on_device(step, rows, rings=True), op, of.pools[1], (q, k, v, out, None), rows)
    torch.testing.assert_close(out[:73].view_as(want), want, rtol=1e-5, atol=1e-5)
    for mine, theirs in zip(decoded(of.pools[1]), decoded(of.pools[0]), strict=True):
        assert torch.equal(mine.isnan().any(-1), theirs.isnan().any(-1))
        far = (mine - theirs).abs() > 1e-3 * theirs.abs().clamp(min=1)
        assert float(far.float().mean()) < 1e-3  # codes on the edge between two


@pytest.mark.parametrize("window", [0, 100])
@pytest.mark.parametrize(("shape", "codec"), EVERY)
def test_same_as_the_reference(shape: tuple[int, int, int], codec: str, window: int) -> None:
    """Rows alone and together give the same bits, and those are right: across blocks, so that both forms are read."""
    of = Texts(shape, codec, [(200, 75), (600, 2), (1, 1)], window)
    pool = of.pools[0]
    whole = of.step(skip=False)
    reference(pool, whole).rope_append(of.append(torch.randn(whole.n_rows, shape[0] * shape[2])))
    step = of.step(skip=True)
    q = torch.randn(step.n_rows, shape[0], shape[2], generator=of.generator)
    op = Attention(q, 1, shape[2] ** -0.5, window=of.window)
    (want,) = reference(pool, step).attention(op)
    rows = 128
    padded = torch.nn.functional.pad(q.flatten(1), (0, 0, 0, rows - step.n_rows))
    found = []
    for split in (True, False):
        out = torch.full_like(padded, NAN)
        partial = torch.full((rows * partial_numbers(1, 2, shape[0], shape[2]),), NAN)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(attentions, "SPLIT_ROWS", rows if split else 1)
            given = ((padded, None, out), rows, 2, partial)
            METAL.attend(METAL.usual, on_device(step, rows, rings=True), op, pool, *given)
        assert not bool(out[step.n_rows :].any())
        found.append(out[: step.n_rows])
    assert torch.equal(*found)
    torch.testing.assert_close(found[0], want, rtol=2e-5, atol=2e-6)
