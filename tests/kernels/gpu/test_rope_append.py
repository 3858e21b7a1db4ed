"""The kernels that append to the cache beside the reference."""

from dataclasses import replace

import pytest
import torch
from localrun_testing.gpu_platforms import PLATFORMS, Platform
from localrun_testing.gpu_steps import Heads, Text, on_device, reference, step_of

from localrun.backends.reference.pool import KVPool
from localrun.ops.instructions import RopeAppend
from localrun.ops.interface import StepInput
from localrun.ops.rope import RopeKind
from localrun.ops.types import QKNorm

TEXTS = (Text(130, 3), Text(1, 1), Text(70, 5, first=1, sink=True))
NAN = float("nan")


def rows_of(heads: Heads, n_rows: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """q, k and v, some of them beyond what 16 bits hold."""
    generator = torch.Generator().manual_seed(1)
    widths = (heads.n_heads, heads.n_kv_heads, heads.n_kv_heads)
    q, k, v = (torch.randn(n_rows, n * heads.head_dim, generator=generator) for n in widths)
    k[0, 0], v[0, 1], v[1, 2], v[-1, 0] = 1e6, -1e6, NAN, float("inf")
    return q, k, v


def run(platform: Platform, pool: KVPool, step: StepInput, op: RopeAppend, rows: int) -> list[torch.Tensor]:
    """The queries, without those of padding rows; keys and values go to the pool."""

    def padded(x: torch.Tensor) -> torch.Tensor:
        return torch.cat((x, torch.full((rows - len(x), x.shape[1]), NAN)))

    q, k, v = (None if x is None else padded(x) for x in (op.q, op.k, op.v))
    assert q is not None
    outs = [torch.full_like(q, NAN) for _ in range(op.n_results)]
    sink = outs[1] if op.sink_query else None
    platform.rope_append(on_device(step, rows), op, pool, (q, k, v, outs[0], sink), rows)
    return [out[: step.n_rows] for out in outs]


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Equal, with NaN like NaN."""
    return torch.equal(a.nan_to_num(777.0), b.nan_to_num(777.0)) and torch.equal(a.isnan(), b.isnan())


@pytest.mark.parametrize("codec", ["f16", "f32"])
@pytest.mark.parametrize(
    ("heads", "dims", "qk_norm", "v_norm"),
    [((4, 2, 64), 64, "none", False), ((3, 1, 80), 32, "head", True), ((6, 2, 96), 96, "row", False)],
)
@pytest.mark.parametrize("platform", PLATFORMS, ids=str)
def test_same_as_the_reference(
    platform: Platform, codec: str, heads: tuple[int, int, int], dims: int, qk_norm: QKNorm, v_norm: bool
) -> None:
    shape = Heads(*heads, codec)
    step, n_blocks = step_of(TEXTS, RopeKind.of(1e4, dims, None, 1.2), sink_window=100, query_scale=True)
    q, k, v = rows_of(shape, step.n_rows)
    sizes = {"none": (0, 0), "head": (heads[2],) * 2, "row": (q.shape[1], k.shape[1])}[qk_norm]
    of_q, of_k = (torch.rand(n) + 0.5 if n else None for n in sizes)
    op = RopeAppend(q, k, v, 1, 0, qk_norm, of_q, of_k, eps=1e-5, v_norm=v_norm, sink_query=True)
    pools = [shape.pool(n_blocks, poison=3.0) for _ in range(2)]
    want = reference(pools[0], step).rope_append(op)
    got = run(platform, pools[1], step, op, rows=16)
    exact = qk_norm == "none"
    for a, b in zip(got, want, strict=True):
        torch.testing.assert_close(a.view_as(b), b, rtol=0 if exact else 2e-6, atol=0 if exact else 2e-6)
    for a, b in zip(pools[1].store(0, False).planes, pools[0].store(0, False).planes, strict=True):
        if exact:
            assert same(a.float(), b.float())
        else:
            torch.testing.assert_close(a, b, equal_nan=True, rtol=1e-3 if codec == "f16" else 2e-6, atol=1e-6)


@pytest.mark.parametrize("platform", PLATFORMS, ids=str)
def test_rows_alone_are_the_same(platform: Platform) -> None:
    heads = Heads(4, 2, 128)
    step, n_blocks = step_of([Text(67, 5)], RopeKind.of(1e4, 128, None, 1.0))
    q, k, v = rows_of(heads, 5)
    op = RopeAppend(q, k, v, 1, 0, "row", torch.rand(512), torch.rand(256), eps=1e-5)
    together, apart = (heads.pool(n_blocks, 0.0) for _ in range(2))
    (queries,) = run(platform, together, step, op, rows=8)
    for row in range(5):
        one, _ = step_of([Text(63 + row, 1)], RopeKind.of(1e4, 128, None, 1.0))
        one.sequences = [replace(step.sequences[0], length=63 + row)]
        alone = replace(op, q=q[row : row + 1], k=k[row : row + 1], v=v[row : row + 1])
        (query,) = run(platform, apart, one, alone, rows=1)
        assert torch.equal(query[0], queries[row])
    for a, b in zip(together.store(0, False).planes, apart.store(0, False).planes, strict=True):
        assert same(a, b)


@pytest.mark.parametrize("platform", PLATFORMS, ids=str)
def test_without_keys_nothing_is_stored_and_positions_may_not_matter(platform: Platform) -> None:
    heads = Heads(2, 1, 32)
    step, n_blocks = step_of([Text(9, 9)], RopeKind.of(1e4, 32, None, 1.0))
    pool = heads.pool(n_blocks, poison=2.0)
    q = torch.randn(9, 64)
    (got,) = run(platform, pool, step, RopeAppend(q, None, None, 1, None), rows=16)
    assert torch.equal(got, q)
    assert all(bool((plane == 2.0).all()) for plane in pool.store(0, False).planes)
