"""The reference operations against formulas written out by hand, and its row mode bit for bit against itself."""

import math
import random

import pytest
import torch
from localrun_testing.sequence_inputs import sequence_input
from localrun_testing.small_model import FULL, VOCAB_SIZE, WINDOWED, reference_executor, small_model, small_runner
from torch.nn.functional import pad

from localrun.backends.reference.attention import attend, visible
from localrun.backends.reference.kv_codes import decode, encode
from localrun.backends.reference.norm import rms_norm
from localrun.backends.reference.ops import ReferenceOps, rotate
from localrun.backends.reference.rows import KeyBlock, Query, RowReferenceOps
from localrun.engine.runner import Runner
from localrun.ops.instructions import Experts, LinearWeight, Moe, Router
from localrun.ops.interface import CancelFlag, LogitAdjust, SequenceInput, StepCancelled, StepInput
from localrun.ops.layouts import F32, FILE, Packed, RowReader
from localrun.ops.types import Routing


def by_hand(
    q: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    position: int,
    scale: float,
    softcap: float | None,
    window: int | None,
    sink: float | None,
) -> list[float]:
    """Attention of one query of one head with Python floats."""
    scores = []
    for t in range(position + 1):
        if window is not None and position - t >= window:
            continue
        score = scale * sum(a * b for a, b in zip(q.tolist(), keys[t].tolist(), strict=True))
        scores.append((t, softcap * math.tanh(score / softcap) if softcap else score))
    total = sum(math.exp(s) for _, s in scores) + (math.exp(sink) if sink is not None else 0.0)
    weights = [(t, math.exp(s) / total) for t, s in scores]
    return [sum(w * values[t, d].item() for t, w in weights) for d in range(values.shape[1])]


CASES = [
    pytest.param(None, None, None, id="plain"),
    pytest.param(2.0, None, None, id="softcap"),
    pytest.param(None, 5, None, id="window"),
    pytest.param(None, None, 0.7, id="sink"),
    pytest.param(3.0, 70, -0.4, id="all"),
]


@pytest.mark.parametrize(("softcap", "window", "sink"), CASES)
@pytest.mark.parametrize("position", [0, 1, 63, 64, 130, 600])
def test_attention_by_hand(position: int, softcap: float | None, window: int | None, sink: float | None) -> None:
    g = torch.Generator().manual_seed(position)
    q = torch.randn(1, 4, 8, generator=g)
    keys, values = torch.randn(2, position + 1, 2, 8, generator=g)
    sinks = None if sink is None else torch.full((4,), sink)
    mask = visible(torch.tensor([position]), torch.arange(position + 1), window)
    batch = attend(q, keys, values, mask, 0.3, softcap, sinks)
    grouped = None if sinks is None else sinks.unflatten(0, (2, 2))
    query = Query(q[0].unflatten(0, (2, 2)), None, 0.3, softcap, grouped)
    held = (pad(x.transpose(0, 1), (0, 0, 0, -len(x) % 64), value=math.nan).split(64, 1) for x in (keys, values))
    masks = pad(mask[0], (0, -len(keys) % 64)).split(64)
    blocks = (KeyBlock(number, *block) for number, block in enumerate(zip(*held, masks, strict=True)))
    single = query.flash_attend(block for block in blocks if block.mask.any()).flatten(0, 1)
    for head in range(4):
        expected = by_hand(q[0, head], keys[:, head // 2], values[:, head // 2], position, 0.3, softcap, window, sink)
        assert batch[0, head].tolist() == pytest.approx(expected, abs=2e-5)
        assert single[head].tolist() == pytest.approx(expected, abs=2e-5)


def test_norm_and_rotation_by_hand() -> None:
    x = torch.tensor([[3.0, 4.0]])
    assert rms_norm(x, torch.tensor([1.0, 2.0]), 0.0).tolist()[0] == pytest.approx([3 / 12.5**0.5, 8 / 12.5**0.5])
    heads = torch.tensor([[[1.0, 2.0, 3.0, 4.0, 9.0]]])  # two pairs (1,3) and (2,4), one dim left alone
    angle = torch.tensor([[0.5, 1.25]])
    expected = [
        math.cos(0.5) - 3 * math.sin(0.5),
        2 * math.cos(1.25) - 4 * math.sin(1.25),
        3 * math.cos(0.5) + math.sin(0.5),
        4 * math.cos(1.25) + 2 * math.sin(1.25),
        9.0,
    ]
    assert rotate(heads, angle.cos(), angle.sin()).flatten().tolist() == pytest.approx(expected)


def matrix(n_rows: int, n_cols: int, seed: int) -> Packed:
    weights = torch.randn(n_rows, n_cols, generator=torch.Generator().manual_seed(seed))
    return Packed(F32, "F32", n_rows, n_cols, (weights,))


@pytest.mark.parametrize("normalize", [True, False])
def test_moe_is_a_loop_over_the_chosen_experts(normalize: bool) -> None:
    ops = ReferenceOps(reference_executor(small_model(), 1).pool, torch.device("cpu"))
    x = torch.randn(5, 6, generator=torch.Generator().manual_seed(1))
    router = matrix(4, 6, 2)
    gate, up, down = matrix(4 * 7, 6, 10), matrix(4 * 7, 6, 20), matrix(4 * 6, 7, 30)
    experts = Experts(LinearWeight(gate), LinearWeight(up), LinearWeight(down))
    (got,) = ops.moe(Moe(x, Router(router, Routing(2, normalize=normalize)), experts, out_scale=0.5, residual=x))
    for row in range(5):
        share = torch.softmax(router.planes[0] @ x[row], -1)
        best = share.argsort(descending=True)[:2]
        weights = share[best] / share[best].sum() if normalize else share[best]
        expected = x[row].clone()
        for weight, e in zip(weights, best.tolist(), strict=True):
            g, u, d = (m.planes[0].view(4, -1, m.n_cols)[e] for m in (gate, up, down))
            expected += 0.5 * weight * (d @ (torch.nn.functional.silu(g @ x[row]) * (u @ x[row])))
        assert torch.allclose(got[row], expected, atol=1e-5)


def test_matrices_decoded_in_use_give_the_same_product(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localrun.backends.reference.ops.TILE_BYTES", 4 * 64 * 5)  # five rows at a time
    monkeypatch.setattr("localrun.ops.layouts.SLAB_BYTES", 68 * 7)
    from localrun.formats.quant import QUANT_TYPES

    weights = torch.randn(33, 64, generator=torch.Generator().manual_seed(0))
    raw = QUANT_TYPES["Q8_0"].encode(weights).view(33, -1).numpy()
    rows = RowReader("Q8_0", 33, 64, lambda first, n: raw[first : first + n])
    ops = ReferenceOps(reference_executor(small_model(), 1).pool, torch.device("cpu"))
    x, bias = torch.randn(3, 64), torch.randn(33)
    kept, dense = (ops.matmul(x, layout.pack(rows), bias) for layout in (FILE, F32))
    assert torch.allclose(kept, dense, atol=1e-6)
    assert FILE.pack(rows).nbytes == FILE.nbytes("Q8_0", 33, 64) == 33 * 68
    assert F32.pack(rows).nbytes == F32.nbytes("Q8_0", 33, 64) == 33 * 256


def rows_of(runner: Runner, ids: list[int], chunks: list[int], blocks: list[int]) -> torch.Tensor:
    """Logits of every token of one sequence, computed in steps of `chunks`."""
    rows, start = [], 0
    for n in chunks:
        held = [(block,) * len(runner.groups) for block in blocks[: -(-(start + n) // 64)]]
        view = sequence_input(held, start + n, len(runner.groups))
        logits = runner.compute([(ids[start : start + n], start)], [view], range(n))
        rows.append(torch.as_tensor(logits.rows).clone())
        start += n
    return torch.cat(rows)


@pytest.mark.parametrize("codec", ["f32", "f16"])
def test_row_mode_is_bit_equal_for_any_chunking_and_any_place_in_the_pool(codec: str) -> None:
    ids = random.Random(0).choices(range(VOCAB_SIZE), k=530)
    runner = small_runner(n_blocks=24, codec=codec, ops=RowReferenceOps)
    whole = rows_of(runner, ids, [530], list(range(10)))
    scattered = [20, 3, 9, 1, 0, 22, 13, 4, 5, 6]
    assert torch.equal(rows_of(runner, ids, [1, 63, 64, 65, 336, 1], scattered), whole)


def test_the_fast_reference_stays_close_to_the_row_mode() -> None:
    ids = random.Random(1).choices(range(VOCAB_SIZE), k=200)
    fast = rows_of(small_runner(), ids, [200], list(range(4)))
    exact = rows_of(small_runner(ops=RowReferenceOps), ids, [200], list(range(4)))
    assert torch.allclose(fast, exact, atol=2e-4)


def test_hidden_and_unused_slots_of_the_pool_do_not_matter() -> None:
    """Poisoned blocks: whatever lies behind the end of a sequence or in foreign blocks must not be read."""
    ids = random.Random(2).choices(range(VOCAB_SIZE), k=100)
    for ops in (ReferenceOps, RowReferenceOps):
        clean = rows_of(small_runner(ops=ops), ids, [40, 60], [0, 1])
        model = small_model()
        executor = reference_executor(model, 12, ops=ops)
        for store in executor.pool.coded:
            for plane in store.planes:
                plane.fill_(math.nan)
        assert torch.equal(rows_of(Runner(model.config, executor), ids, [40, 60], [0, 1]), clean)


def test_f16_clamps_instead_of_overflowing() -> None:
    assert decode(encode(torch.tensor([1e9, -1e9, 1.5]), 16)).tolist() == [65504.0, -65504.0, 1.5]


def test_a_cancelled_step_stops_between_operations() -> None:
    runner = small_runner()
    cancel = CancelFlag()
    cancel.set()
    with pytest.raises(StepCancelled):
        runner.compute([([1, 2], 0)], [SequenceInput(2, ((0,), (0,)), (0, 0))], [1], cancel=cancel)


def test_a_program_keeps_no_value_longer_than_it_is_read() -> None:
    program = reference_executor(small_model(), 1).program
    instructions = program.segments[0].instructions
    freed = [index for instruction in instructions for index in instruction.dead]
    assert len(freed) == len(set(freed))
    assert set(freed) == {slot for i in instructions for slot in i.results} - {program.result}


def test_window_equals_full_attention_while_it_reaches_back_to_the_start() -> None:
    ids = random.Random(3).choices(range(VOCAB_SIZE), k=20)
    windowed = small_model((WINDOWED, FULL))
    full = small_model((FULL, FULL))
    a = rows_of(small_runner(model=windowed), ids, [20], [0])
    b = rows_of(small_runner(model=full), ids, [20], [0])
    assert torch.allclose(a, b, atol=1e-5)


def test_adjustments_reach_the_row_they_belong_to() -> None:
    runner = small_runner()
    views = [SequenceInput(1, ((0,), (0,)), (0, 0)), SequenceInput(1, ((1,), (1,)), (0, 0))]
    banned = LogitAdjust(bias={5: -float("inf")})
    logits = runner.compute([([7], 0), ([7], 0)], views, [0, 1], [None, banned])
    assert math.isfinite(logits.rows[0, 5].item())
    assert logits.rows[1, 5].item() == -math.inf
    assert logits.finite.all()
    assert StepInput((), (), (), (), ()).n_rows == 0
