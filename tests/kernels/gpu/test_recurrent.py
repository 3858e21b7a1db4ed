"""Kernels of recurrent layers beside the reference, and beside themselves in other steps."""

from collections.abc import Callable

import pytest
import torch
from localrun_testing.gpu_platforms import PLATFORMS, Platform

from localrun.backends.gpu import recurrent
from localrun.backends.gpu.self_test_recurrent import (
    LAYER,
    ROWS_OF,
    OnDevice,
    Recurrence,
    changed,
    compared,
    conv,
    pool_of,
    rule,
    scan,
    step_of,
)
from localrun.ops.interface import SequenceInput, StepInput

ON_BOTH = pytest.mark.parametrize("platform", PLATFORMS, ids=str)
SMALL: dict[str, Callable[[int], Recurrence]] = {
    "short_conv": lambda rows: conv(rows, 9, taps=3),
    "gated": lambda rows: conv(rows, 9, gated=True),
    "gated_delta_rule": lambda rows: rule(rows, (1, 2), (16, 8)),
    "selective_scan": lambda rows: scan(rows, 2, 8, 1, 16),
}
EVERY = pytest.mark.parametrize("make", SMALL.values(), ids=SMALL)


@pytest.mark.parametrize(
    "op",
    [
        conv(6, 257, taps=2),
        conv(6, 128, taps=4, gated=True),
        rule(6, (1, 3), (128, 128)),  # of Qwen3.5
        rule(6, (2, 4), (8, 33), tiled=True),
        scan(6, 2, 64, 1, 128),  # of Granite 4 H
        scan(6, 4, 16, 2, 8),
    ],
    ids=lambda op: f"{op.name} {op.z.shape[1] if hasattr(op, 'z') else op.x.shape[1]}",
)
@ON_BOTH
def test_same_as_the_reference(platform: Platform, op: Recurrence) -> None:
    assert compared(platform.usual, op, texts=((66, 4), (1, 1), (100, 1)), padding=2) == ""


@EVERY
@ON_BOTH
def test_a_prompt_of_several_tiles(platform: Platform, make: Callable[[int], Recurrence]) -> None:
    """Whose rows 63 and 127 leave states, of which the second is on the way through a tile of 64 rows."""
    assert compared(platform.usual, make(140), texts=((150, 140),), padding=0) == ""


@EVERY
@ON_BOTH
def test_steps_do_not_show(platform: Platform, make: Callable[[int], Recurrence]) -> None:
    """Whole, one by one, and cut at the ends of blocks and beside them: the same bits, of results and of the state."""
    op = make(80)
    want, state = read(platform, op, [80])
    for chunks in ([1] * 5 + [58, 1, 1, 15], [64, 16], [7, 60, 13]):
        found, last = read(platform, op, chunks)
        assert torch.equal(found, want)
        assert torch.equal(last, state)


def read(platform: Platform, op: Recurrence, chunks: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Results of a text read in these chunks, and the states that it leaves."""
    pool, parts, start = pool_of(op, 2), [], 0
    pool.states(LAYER).states[:] = 0
    for n in chunks:
        part = changed(op, lambda x, at=start, n=n: x[at : at + n], ROWS_OF[type(op)])  # type: ignore[misc]
        there = OnDevice.of(platform.usual, step_of([(start + n, n)]), pool, n + n % 2)
        parts.append(there.compute(part))
        pool.states(LAYER).states.copy_(there.states.numbers)
        start += n
    return torch.cat(parts), pool.states(LAYER).states


@pytest.mark.parametrize("most", [1, 2])
@EVERY
@ON_BOTH
def test_texts_do_not_see_each_other(
    platform: Platform, make: Callable[[int], Recurrence], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many are walked through side by side; each gets what it gets alone."""
    op, texts = make(9), [(70, 3), (4, 4), (65, 2)]
    pool = pool_of(op, 5)
    monkeypatch.setattr(recurrent, "SEQUENCES", most)
    together = OnDevice.of(platform.usual, step_of(texts), pool, 10)
    found = together.compute(op)
    at = taken = 0
    for length, n in texts:
        part = changed(op, lambda x, at=at, n=n: x[at : at + n], ROWS_OF[type(op)])  # type: ignore[misc]
        alone = OnDevice.of(platform.usual, step_of([(length, n)], taken), pool, n)
        assert torch.equal(alone.compute(part), found[at : at + n])
        blocks = slice(taken, taken + -(-length // 64))
        assert torch.equal(alone.states.numbers[blocks], together.states.numbers[blocks])
        at, taken = at + n, blocks.stop


@EVERY
@ON_BOTH
def test_states_are_written_where_they_are_wanted_and_nowhere_else(
    platform: Platform, make: Callable[[int], Recurrence]
) -> None:
    op = make(70)
    pool = pool_of(op, 4)
    sequence = SequenceInput(130, ((-1, -1, 2),), (0,), state=(3,))
    step = StepInput([0] * 70, list(range(60, 130)), [0] * 70, [sequence], [0])
    there = OnDevice.of(platform.usual, step, pool, 70)
    there.compute(op)
    before, after = pool.states(LAYER).states, there.states.numbers
    assert torch.equal(after[[0, 1, 3]], before[[0, 1, 3]])
    assert torch.equal(after[2, 1 - LAYER], before[2, 1 - LAYER])
    assert (after[2, LAYER] != before[2, LAYER]).sum() == before.shape[2] - 8  # beside what is another instruction's


@EVERY
@ON_BOTH
def test_the_last_state_may_take_the_place_of_the_one_before(
    platform: Platform, make: Callable[[int], Recurrence]
) -> None:
    """Of rows that several groups of threads walk through, in three orders."""
    op, found = make(140), list[tuple[torch.Tensor, torch.Tensor]]()
    pool = pool_of(op, 4)
    pool.states(LAYER).states[2] = pool.states(LAYER).states[3]
    for device, last in ((platform.usual, 2), *((platform.device(seed=seed), 3) for seed in (1, 2, 3))):
        sequence = SequenceInput(150, ((-1, -1, last),), (0,), state=(3,))
        step = StepInput([0] * 140, list(range(10, 150)), [0] * 140, [sequence], [0])
        there = OnDevice.of(device, step, pool, 140)
        found.append((there.compute(op), there.states.numbers[last]))
    assert all(torch.equal(result, found[0][0]) and torch.equal(state, found[0][1]) for result, state in found)


@ON_BOTH
def test_gates_at_their_ends(platform: Platform) -> None:
    """A softplus of what is far below or above 0, and a state that is forgotten at once, or never."""
    op = rule(5, (1, 1), (16, 8))
    op.alpha[:, 0] = torch.tensor([-60.0, -12.0, 0.0, 30.0, 1e4])
    assert compared(platform.usual, op, texts=((70, 5),), padding=0) == ""
    steps = scan(5, 1, 8, 1, 16)
    steps.dt[:, 0] = torch.tensor([-60.0, -12.0, 0.0, 30.0, 12.0])
    assert compared(platform.usual, steps, texts=((70, 5),), padding=0) == ""
