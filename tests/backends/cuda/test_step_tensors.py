"""What the device is told of a step is what the step says."""

import numpy as np
import pytest
from localrun_testing.emulator.cuda import EmulatedDevice

from localrun.backends.gpu.step_tensors import PADDING, StepBuffer, StepShape, StepTensors
from localrun.ops.interface import SequenceInput, StepInput

SHAPE = StepShape(n_groups=2, rope_halves=(4, 2), sinks=True, states=True)


def random_step(rng: np.random.Generator, n_rows: int) -> StepInput:
    """Some sequences, each with rows at its end; the first blocks of the second group may have left a window."""
    n_sequences = min(3, n_rows)
    row_sequence = np.sort(rng.integers(0, n_sequences, n_rows)).tolist()
    lengths = [int(rng.integers(1, 400)) + row_sequence.count(s) for s in range(n_sequences)]
    sequences: list[SequenceInput] = []
    positions: list[int] = []
    for s, length in enumerate(lengths):
        n_blocks = -(-length // 64)
        first = int(rng.integers(0, max(1, (length - row_sequence.count(s)) // 64)))
        tables = tuple(rng.permutation(100)[: n_blocks - gone].tolist() for gone in (0, first))
        write_from = (0, length - 1) if s == 1 else ()
        sink = (-1, 7) if first else ()
        state = (int(rng.integers(-1, 100)), 5)
        sequences.append(SequenceInput(length, tables, (0, first), sink, state=state, write_from=write_from))
        positions += range(length - row_sequence.count(s), length)
    angles = [tuple(rng.standard_normal((2, n_rows, half)).astype(np.float32)) for half in SHAPE.rope_halves]
    return StepInput(
        token_ids=rng.integers(0, 1000, n_rows).tolist(),
        positions=positions,
        row_sequence=row_sequence,
        sequences=sequences,
        logits_rows=[n_rows - 1],
        cos_sin=[(cos, sin) for cos, sin in angles],
        sink_cos_sin=[(sin, cos) for cos, sin in angles],
        query_scale=rng.standard_normal(n_rows).astype(np.float32),
    )


@pytest.mark.parametrize(("n_rows", "bucket"), [(1, 1), (3, 4), (8, 8), (70, 128), (65, 128)])
def test_a_step_arrives(n_rows: int, bucket: int) -> None:
    rng = np.random.default_rng(n_rows)
    buffer = StepBuffer(SHAPE, 128, 1000, EmulatedDevice())
    tensors = buffer.tensors(bucket)
    for _ in range(3):  # nothing of the step before stays
        step = random_step(rng, n_rows)
        buffer.fill(step, bucket)
        assert tensors.token_ids.tolist() == [*step.token_ids, *[0] * (bucket - n_rows)]
        assert tensors.positions.tolist() == [*step.positions, *[PADDING] * (bucket - n_rows)]
        assert tensors.row_sequence[:n_rows].tolist() == step.row_sequence
        assert tensors.logits_rows.tolist() == [n_rows - 1] + [0] * (2 * bucket - 1)
        for kind, (cos, sin) in enumerate(step.cos_sin):
            assert np.array_equal(tensors.cos[kind][:n_rows], cos)
            assert np.array_equal(tensors.sin[kind][:n_rows], sin)
            assert np.array_equal(tensors.sink_cos[kind][:n_rows], sin)
        assert step.query_scale is not None
        assert np.array_equal(tensors.query_scale[:n_rows], step.query_scale)
        for group in range(2):
            check_blocks(step, group, tensors)
            check_states(step, group, tensors)
            for index, sequence in enumerate(step.sequences):
                first = sequence.first[group]
                assert tensors.first[group][index] == first
                assert tensors.sink[group][index] == (sequence.table[group][0] if first == 0 else 7)


def check_blocks(step: StepInput, group: int, tensors: StepTensors) -> None:
    """Tables and slots of a group."""
    slots, at, table = tensors.slots[group], tensors.table_at[group], tensors.table
    for index, sequence in enumerate(step.sequences):
        for number in range(sequence.first[group], -(-sequence.length // 64)):
            assert table[at[index] + number] == sequence.block(group, number)
    for row in range(len(slots)):
        slot = PADDING
        if row < step.n_rows:
            position, sequence = step.positions[row], step.sequences[step.row_sequence[row]]
            if not sequence.write_from or position >= sequence.write_from[group]:
                slot = sequence.block(group, position // 64) * 64 + position % 64
        assert slots[row] == slot


def check_states(step: StepInput, group: int, tensors: StepTensors) -> None:
    """Rows of every sequence, the state before them, and those that they leave in a group."""
    after = tensors.state_after[group].tolist()
    for index in range(len(tensors.n_rows)):
        mine = [row for row, sequence in enumerate(step.row_sequence) if sequence == index]
        assert tensors.n_rows[index] == len(mine)
        assert tensors.state_before[group][index] == (
            step.sequences[index].state[group] if index < len(step.sequences) else PADDING
        )
        if mine:
            assert tensors.first_row[index] == mine[0]
        for row in mine:
            end, sequence = step.positions[row] + 1, step.sequences[index]
            is_wanted = end % 64 == 0 or end == sequence.length
            assert after[row] == (sequence.block(group, (end - 1) // 64) if is_wanted else PADDING)
    assert after[step.n_rows :] == [PADDING] * (len(after) - step.n_rows)


def test_queries_are_not_scaled_where_nothing_says_so() -> None:
    buffer = StepBuffer(StepShape(1, (), sinks=False), 4, 10, EmulatedDevice())
    tensors = buffer.tensors(2)
    tensors.query_scale.fill_(5)
    buffer.fill(StepInput([3], [0], [0], [SequenceInput(1, ((2,),), (0,))], [0]), 2)
    assert tensors.query_scale[0] == 1
    assert tensors.slots[0].tolist() == [128, PADDING]
