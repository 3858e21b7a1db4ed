"""Recorded programs: what the decoder asks for, which slots results take, and when values are let go."""

from dataclasses import replace

import pytest
import torch
from localrun_testing.kv_cases import KVCase, reference_for
from localrun_testing.small_model import FULL, WINDOWED, small_model

from localrun.model.decoder import Model
from localrun.ops.program import Instruction, present, record_instructions

NOPE = replace(FULL, rope=None)


def recorded(model: Model, op: str) -> list[Instruction]:
    return [i for i in record_instructions(model.forward) if i.op == op]


def test_without_a_window_of_the_user_one_query_is_turned() -> None:
    model = small_model((FULL, WINDOWED))
    assert [len(i.results) for i in recorded(model, "rope_append")] == [1, 1]
    assert [i.arguments[4] for i in recorded(model, "attention")] == [None, 20]
    assert [i.arguments[6:] for i in recorded(model, "attention")] == [(None, None)] * 2


def test_a_users_window_is_asked_of_the_layers_that_see_further() -> None:
    """A second query where keys are turned; a layer whose own window is as narrow stays as it is."""
    model = small_model((FULL, WINDOWED, NOPE, replace(WINDOWED, window=65)))
    model = Model(model.config.for_window(64), model.weights)
    appends, attentions = recorded(model, "rope_append"), recorded(model, "attention")
    assert [len(i.results) for i in appends] == [2, 1, 1, 2]
    assert [i.arguments[4] for i in attentions] == [None, 20, None, None]
    assert [i.arguments[7] for i in attentions] == [64, None, 64, 64]
    for append, attention in zip(appends, attentions, strict=True):
        sink_query = attention.arguments[6]
        assert (sink_query is None) == (len(append.results) == 1)
        assert sink_query is None or sink_query.index == append.results[1]
    assert model.config.for_window(64) == model.config
    assert model.config.window == 20


@pytest.mark.parametrize("sink_window", [None, 100])
def test_a_program_keeps_no_value_longer_than_it_is_read(sink_window: int | None) -> None:
    program = reference_for(KVCase("q8", 16, n_tokens=10, sink_window=sink_window)).program
    freed = [index for instruction in program.segments[0].instructions for index in instruction.dead]
    assert len(freed) == len(set(freed))
    assert set(freed) == set(range(program.n_slots)) - {program.result.index}


def test_absent_results_take_no_slot() -> None:
    x = torch.zeros(2)
    assert present((x, None)) == [x]
    assert len(present((x, x))) == 2
    assert present([x]) == [x]
    assert present(x) == [x]


def test_two_kinds_of_window_do_not_meet_in_a_layer() -> None:
    executor = reference_for(KVCase("f32", 16, n_tokens=3))
    backend = executor.program.segments[0].backend
    with pytest.raises(AssertionError):
        backend.attention(torch.zeros(3, 4, 16), 0, 1.0, window=5, sink_window=5)  # type: ignore[attr-defined]
