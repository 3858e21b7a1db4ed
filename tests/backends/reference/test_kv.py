"""The cache on the reference: nothing about how a sequence is computed shows in the result; windows are what they say.

Row mode is compared bit for bit, the fast mode in test_kv_cases.
"""

import math
from dataclasses import replace
from functools import cache, reduce
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from localrun_testing.kv_cases import Blocks, KVCase, nmse, pack, reference_for, run, sizes, step, turn
from torch import Tensor
from torch.overrides import TorchFunctionMode

from localrun.backends.executor import CachePlan, ExecutorRequest
from localrun.backends.reference.attention import attend
from localrun.backends.reference.executor import ReferenceExecutor
from localrun.backends.reference.norm import rms_norm
from localrun.backends.reference.ops import ReferenceOps
from localrun.backends.reference.rows import KeyBlock, Query, RowReferenceOps, merge
from localrun.ops.instructions import Attention, Embed, Linear, LinearWeight, LogitsOf, RopeAppend
from localrun.ops.interface import SequenceInput, StepInput
from localrun.ops.kv import KV_CODECS, KVPlan
from localrun.ops.layouts import F32
from localrun.ops.recording import Ops
from localrun.ops.types import Value

CPU = torch.device("cpu")
SMALL = KVCase(head_dim=12, n_heads=2, n_kv_heads=1, n_tokens=210)
OPTIONS: tuple[dict[str, object], ...] = ({}, {"window": 70}, {"sink_window": 70}, {"window": 64, "sinks": True})


@cache
def in_one_step(case: KVCase) -> Tensor:
    return run(case, reference_for(case, RowReferenceOps))


@st.composite
def cuts(draw: st.DrawFn, n_tokens: int = SMALL.n_tokens) -> list[int]:
    """Chunk sizes that add up to n_tokens, many of them at the edges of blocks."""
    edges = st.sampled_from([1, 63, 64, 65, 127, 128, 129, 191, 192, n_tokens - 1])
    ends = sorted({*draw(st.lists(edges | st.integers(1, n_tokens - 1), max_size=8)), n_tokens})
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


@given(st.sampled_from(list(KV_CODECS)), st.sampled_from(OPTIONS), cuts(), st.integers(0, 99))
@settings(max_examples=14)
def test_chunks_blocks_and_foreign_bytes_do_not_show(
    codec: str, options: dict[str, object], chunks: list[int], seed: int
) -> None:
    """Any chunking, any blocks, everything unused or left behind poisoned with NaN: the same bits."""
    case = replace(SMALL, codec=codec, **options)  # type: ignore[arg-type]
    assert torch.equal(run(case, reference_for(case, RowReferenceOps), chunks, seed, poison=True), in_one_step(case))


def test_units_of_512_do_not_show() -> None:
    case = KVCase("q8", 8, 1, 1, n_tokens=530)
    whole = in_one_step(case)
    assert torch.equal(run(case, reference_for(case, RowReferenceOps), [511, 2, 16, 1]), whole)
    assert nmse(whole, case.expected(list(range(530)))) < 1e-11


@pytest.mark.parametrize("case", [replace(SMALL, codec="q4", window=70), replace(SMALL, codec="k8v4", sink_window=80)])
def test_the_row_mode_is_a_loop_over_queries_too(case: KVCase) -> None:
    assert nmse(in_one_step(case)[case.telling_rows], case.expected(case.telling_rows)) < 1e-11


@pytest.mark.parametrize("codec", ["f16", "q8"])
def test_what_else_is_in_the_step_does_not_show(codec: str) -> None:
    """Two sequences of the same tokens at different depths, their rows in one step."""
    case = replace(SMALL, codec=codec)
    n_blocks, n_ring = sizes(case)
    executor = reference_for(case, RowReferenceOps, spare=n_blocks)
    one, two = (Blocks.of(case, executor, n_blocks, n_ring, seed=0, poison=False) for _ in range(2))
    two.free, two.free_ring = [n + n_blocks for n in one.free], [n + n_ring for n in one.free_ring]
    step(case, executor, one.view(0, 150), 0, 150)
    rows = [(p, 0) for p in range(150, 160)] + [(p, 1) for p in range(120)]
    positions = [p for p, _ in rows]
    mixed = StepInput(
        token_ids=positions,
        positions=positions,
        row_sequence=[sequence for _, sequence in rows],
        sequences=[one.view(150, 160), two.view(0, 120)],
        logits_rows=range(len(rows)),
        cos_sin=[case.cos_sin(positions)],
    )
    assert torch.equal(torch.as_tensor(executor.run(mixed).result().rows), in_one_step(case)[positions])


@pytest.mark.parametrize("codec", ["q8", "k8v4", "q4"])
def test_replay_of_stored_positions_gives_the_same_bits(codec: str) -> None:
    """Codes shared, the ring lost but for block 0: from the edge of a block on, everything is as it was."""
    case = replace(SMALL, codec=codec)
    executor = reference_for(case, RowReferenceOps)
    blocks = Blocks.of(case, executor, *sizes(case), seed=3, poison=True)
    first = step(case, executor, blocks.view(0, 200), 0, 200)
    assert torch.equal(first, in_one_step(case)[:200])
    stored = [executor.read_block(0, b) for b in blocks.coded.values()]
    for number in [n for n in blocks.ring if n > 0]:
        executor.write_ring(0, blocks.ring[number], b"\xff" * executor.ring_bytes(0))
        blocks.free_ring.insert(0, blocks.ring.pop(number))
    again = step(case, executor, blocks.view(128, 210, write_from=200), 128, 82)
    assert torch.equal(again, in_one_step(case)[128:])
    assert [executor.read_block(0, b) for b in list(blocks.coded.values())[:3]] == stored[:3]


@pytest.mark.parametrize("codec", ["f32", "q8"])
def test_a_rolling_window_changes_nothing_before_it_rolls(codec: str) -> None:
    case = replace(SMALL, codec=codec)
    rolling = replace(case, sink_window=100)
    assert torch.equal(in_one_step(rolling)[:164], in_one_step(case)[:164])
    assert not torch.equal(in_one_step(rolling)[164:], in_one_step(case)[164:])


def test_a_window_with_sinks_is_attention_over_cache_positions() -> None:
    """Streaming attention as published: the kept keys stand side by side, turned for the places they hold there."""
    case = replace(SMALL, codec="f32", sink_window=70, n_tokens=300)
    q, k, v = case.qkv()
    out = reference_for(case)
    got = run(case, out, [100, 100, 100])
    for p in (134, 160, 299):
        kept = [*range(64), *range(p - 69, p + 1)]  # places 0 … 133
        keys = turn(k[kept], case.cos_sin(range(134)))[:, 0]
        query = turn(q[p : p + 1], case.cos_sin([133]))[0]
        weights = torch.softmax(query @ keys.T * case.scale, dim=-1)  # [n_heads, 134]
        assert torch.allclose(got[p], (weights @ v[kept, 0]).flatten(), atol=1e-5)


def test_rotation_alone_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    case = replace(SMALL, codec="f32", sink_window=100)
    plain = run(case, reference_for(case))
    monkeypatch.setitem(KV_CODECS, "f32", replace(KV_CODECS["f32"], rotates=True))
    turned = reference_for(case)
    assert torch.allclose(run(case, turned), plain, atol=1e-5)
    assert not torch.equal(
        turned.pool.store(0, ring=False).keys.codes, reference_for(case).pool.store(0, ring=False).keys.codes
    )


@pytest.mark.parametrize("ops", [ReferenceOps, RowReferenceOps])
@pytest.mark.parametrize("window", [None, 70])
def test_nan_is_seen_by_those_who_see_it(ops: type[ReferenceOps], window: int | None) -> None:
    """A value that is not a number spoils the queries that see it, and no other, though they share a step."""
    case = replace(SMALL, codec="f32", window=window)
    q, k, v = case.qkv()
    v[100] = math.nan
    request = case.request(case.forward(F32, (q, k, v)), sizes(case)[0], 0)
    executor = ReferenceExecutor(request, CPU, ops)
    out = run(case, executor)
    seen_until = case.n_tokens if window is None else 100 + window
    assert out[100:seen_until].isnan().any(-1).all()
    assert torch.isfinite(out[:100]).all()
    assert torch.isfinite(out[seen_until:]).all()


def test_a_value_alone_that_is_not_a_number_is_seen_too() -> None:
    q, keys, values = torch.randn(3, 4, 2, 8, generator=torch.Generator().manual_seed(0))
    values[2, 1] = math.inf
    out = attend(q, keys, values, torch.ones(4, 4).tril().bool(), 1.0)
    assert out.isnan().all(-1).tolist() == [[False, False], [False, False], [False, True], [False, True]]
    assert torch.isfinite(out[:, 0]).all()


@pytest.mark.parametrize("ops", [ReferenceOps, RowReferenceOps])
def test_a_missing_sink_block_is_refused(ops: type[ReferenceOps]) -> None:
    case = replace(SMALL, codec="q8")
    executor = reference_for(case, ops)
    blocks = Blocks.of(case, executor, *sizes(case), seed=0, poison=False)
    step(case, executor, blocks.view(0, 100), 0, 100)
    with pytest.raises(AssertionError, match="block 0"):
        step(case, executor, replace(blocks.view(100, 101), ring_sink=(-1,)), 100, 1)


def test_blocks_fold_within_units_of_512() -> None:
    """Bit for bit the order that every backend keeps: blocks within a unit, then units, then the sink."""
    g = torch.Generator().manual_seed(0)
    keys, values = torch.randn(2, 20, 2, 64, 16, generator=g)  # of two heads with three queries each
    everything = torch.ones(64, dtype=torch.bool)
    blocks = [KeyBlock(number, k, v, everything) for number, (k, v) in enumerate(zip(keys, values, strict=True))]
    sinks = torch.full((2, 3), 0.5)
    query = Query(torch.randn(2, 3, 16, generator=g), None, 1.0, None, sinks)
    sink = sinks, torch.ones(2, 3), torch.zeros(2, 3, 16)
    whole = [query.state(block) for block in blocks]
    units = [reduce(merge, whole[i : i + 8]) for i in range(0, 20, 8)]
    total = merge(reduce(merge, units), sink)
    folded = query.flash_attend(blocks)
    assert torch.equal(folded, total[2] / total[1][..., None])
    flat = merge(reduce(merge, whole), sink)
    assert not torch.equal(folded, flat[2] / flat[1][..., None])


def test_the_row_mode_norms_one_row_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = []

    def counted(x: Tensor, weight: Tensor, eps: float) -> Tensor:
        lengths.append(len(x))
        return rms_norm(x, weight, eps)

    monkeypatch.setattr("localrun.backends.reference.rows.rms_norm", counted)
    ops = RowReferenceOps(reference_for(SMALL).pool, CPU)
    x = torch.randn(5, 3, 8)
    assert torch.equal(ops.rms_norm(x, torch.ones(8), 1e-5), rms_norm(x, torch.ones(8), 1e-5))
    assert lengths == [1] * 5


class NoDoubles(TorchFunctionMode):
    """Fails when an operation makes a tensor that MPS cannot hold."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, tuple | list) else [out]:
            if isinstance(tensor, Tensor):
                assert tensor.dtype != torch.float64, func
                assert not tensor.is_complex(), func
        return out


@pytest.mark.parametrize("ops", [ReferenceOps, RowReferenceOps])
@pytest.mark.parametrize("codec", list(KV_CODECS))
def test_no_double_and_no_complex_numbers(codec: str, ops: type[ReferenceOps]) -> None:
    case = KVCase(codec, 24, 2, 1, n_tokens=70, sink_window=66, softcap=3.0, sinks=True)
    executor = reference_for(case, ops)
    with NoDoubles():
        run(case, executor, [66, 4])
        with pytest.raises(AssertionError):
            torch.zeros(2, dtype=torch.float64)


def test_groups_of_different_codecs_and_windows_do_not_mix() -> None:
    """A full layer kept as q8 and a windowed one as f16, in one program: each as if it were alone."""
    full, windowed = replace(SMALL, codec="q8"), replace(SMALL, codec="f16", window=70)
    layers = [full.layer, replace(windowed.layer, group=1)]
    cache = CachePlan(layers, KVPlan((full.kv_codec, windowed.kv_codec)), [7, 7], [7, 0])

    q, k, v = (x.flatten(1) for x in full.qkv())
    table = pack(torch.cat((q, k, v), dim=1), F32)
    parts = torch.eye(table.n_cols).split([x.shape[1] for x in (q, k, v)])
    picks = tuple(LinearWeight(pack(part, F32)) for part in parts)

    def both(keep: int) -> ReferenceExecutor:
        def forward(ops: Ops) -> Value:
            outs: list[Value] = []
            for layer, case in enumerate((full, windowed)):
                (x,) = ops(Embed(table))
                queries, keys, values = ops(Linear(x, picks))
                (turned,) = ops(RopeAppend(queries, keys, values, layer, 0))
                outs += ops(Attention(turned, layer, case.scale, window=case.window))
            return ops(LogitsOf(outs[keep], pack(torch.eye(q.shape[1]), F32)))[0]

        return ReferenceExecutor(ExecutorRequest.of(forward, cache), CPU, RowReferenceOps)

    for keep, case in enumerate((full, windowed)):
        executor = both(keep)
        a = Blocks.of(full, executor, 7, 7, 0, poison=False)
        b = Blocks.of(windowed, executor, 7, 0, 1, poison=False)
        out, start = [], 0
        for n in (60, 70, 79, 1):
            one, two = a.view(start, start + n), b.view(start, start + n)
            view = SequenceInput(
                start + n, one.table + two.table, one.first + two.first, (-1, -1), (*one.ring, ()), one.ring_first,
                (*one.ring_sink, -1), (0, 0),
            )  # fmt: skip
            out.append(step(case, executor, view, start, n))
            start += n
            a.free_old_ring_blocks(start)
        assert torch.equal(torch.cat(out), in_one_step(case))
