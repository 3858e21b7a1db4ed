"""Recorded programs: what the decoder asks for, which slots results take, and when values are let go."""

import ast
import inspect
from dataclasses import fields, replace
from textwrap import dedent

import pytest
import torch
from localrun_testing.kv_cases import KVCase, reference_for
from localrun_testing.pretend_gpu import pretended_gpu
from localrun_testing.sequence_inputs import sequence_input
from localrun_testing.small_model import FULL, WINDOWED, moved, reference_executor, small_model, text

from localrun.backends.cpu import abi
from localrun.backends.cpu.program import ProgramBuilder
from localrun.backends.reference.executor import ReferenceExecutor
from localrun.backends.reference.ops import ReferenceOps
from localrun.engine.runner import Runner
from localrun.model.decoder import Model
from localrun.model.layer_weights import ModelWeights
from localrun.ops.instructions import INSTRUCTIONS, Attention
from localrun.ops.program import Program, Segment
from localrun.ops.recording import Recorded, record_instructions

NOPE = replace(FULL, rope=None)


def recorded(model: Model, name: str) -> list[Recorded]:
    return [r for r in record_instructions(model.forward) if r.instruction.name == name]


def attentions(model: Model) -> list[Attention]:
    return [r.instruction for r in recorded(model, "attention") if isinstance(r.instruction, Attention)]


def test_without_a_window_of_the_user_one_query_is_turned() -> None:
    model = small_model((FULL, WINDOWED))
    assert [len(r.results) for r in recorded(model, "rope_append")] == [1, 1]
    assert [op.window for op in attentions(model)] == [None, 20]
    assert [(op.sink_query, op.sink_window) for op in attentions(model)] == [(None, None)] * 2


def test_a_users_window_is_asked_of_the_layers_that_see_further() -> None:
    """A second query where keys are turned; a layer whose own window is as narrow stays as it is."""
    model = small_model((FULL, WINDOWED, NOPE, replace(WINDOWED, window=65)))
    model = Model(model.config.for_window(64), model.weights)
    appends = recorded(model, "rope_append")
    assert [len(r.results) for r in appends] == [2, 1, 1, 2]
    assert [op.window for op in attentions(model)] == [None, 20, None, None]
    assert [op.sink_window for op in attentions(model)] == [64, None, 64, 64]
    for append, attention in zip(appends, attentions(model), strict=True):
        assert (attention.sink_query is None) == (len(append.results) == 1)
        assert attention.sink_query is None or attention.sink_query.index == append.results[1]
    assert model.config.for_window(64) == model.config
    assert model.config.window == 20


@pytest.mark.parametrize("sink_window", [None, 100])
def test_a_program_keeps_no_value_longer_than_it_is_read(sink_window: int | None) -> None:
    program = reference_for(KVCase("q8", 16, n_tokens=10, sink_window=sink_window)).program
    instructions = program.segments[0].instructions
    freed = [slot for recorded in instructions for slot in recorded.dead]
    assert len(freed) == len(set(freed))
    assert set(freed) == {slot for recorded in instructions for slot in recorded.results} - {program.result}


def test_a_model_in_two_segments_copies_what_passes_between_their_devices() -> None:
    """Layer 0 computes in main memory, the rest on a device that refuses tensors of main memory."""
    model, ids, one_layer = small_model((FULL, FULL)), text(80), 8  # instructions

    def logits(executor: ReferenceExecutor) -> torch.Tensor:
        found = Runner(model.config, executor).compute([(ids, 0)], [sequence_input([(0,), (1,)], 80, 1)], range(80))
        return torch.as_tensor(found.rows).cpu()

    expected = logits(reference_executor(model, 4))
    with pretended_gpu() as gpu:
        (first, *others), weights = model.weights.layers, model.weights
        there = [moved(part, gpu) for part in (*others, weights.output_norm, weights.output)]
        split = Model(model.config, ModelWeights(weights.embed, (first, there[0]), *there[1:]))
        recorded = record_instructions(split.forward)
        executor, device = reference_executor(split, 4), reference_executor(split, 4, device=gpu)
        near, far = (one.program.segments[0].interpreter for one in (executor, device))
        executor.program = Program(
            [Segment.of(near, recorded[: 1 + one_layer]), Segment.of(far, recorded[1 + one_layer :])]
        )
        assert [len(segment.received) for segment in executor.program.segments] == [0, 1], "the residual stream"
        assert torch.equal(logits(executor), expected)
        uncopied = [replace(segment, received=()) for segment in executor.program.segments]
        executor.program = Program(uncopied)
        with pytest.raises(RuntimeError, match="expected all tensors on one device"):
            logits(executor)


def test_two_kinds_of_window_do_not_meet_in_a_layer() -> None:
    interpreter = reference_for(KVCase("f32", 16, n_tokens=3)).program.segments[0].interpreter
    assert isinstance(interpreter, ReferenceOps)
    with pytest.raises(AssertionError):
        interpreter.attention(Attention(torch.zeros(3, 4, 16), 0, 1.0, window=5, sink_window=5))


def test_every_backend_takes_every_instruction_by_its_name() -> None:
    """The reference executes each; the library's builder translates each into operations that its ABI has."""
    for instruction in INSTRUCTIONS:
        assert callable(getattr(ReferenceOps, instruction.name))
        assert callable(getattr(ProgramBuilder, instruction.name))
    native = {instruction.name for instruction in INSTRUCTIONS} - {"moe"}
    native |= {"route", "experts", "combine", "embed_mapped", "will_need"}
    assert set(abi.OPS) == native, "what an operation of the ABI is made from"


@pytest.mark.parametrize("instruction", INSTRUCTIONS)
def test_the_library_is_told_every_operand(instruction: type) -> None:
    """A field that is added to an instruction is translated, or the kernels would leave it out in silence."""
    name = instruction.name  # type: ignore[attr-defined]
    methods = [getattr(ProgramBuilder, one) for one in (name, f"{name}_of") if hasattr(ProgramBuilder, one)]
    reads = {
        node.attr
        for method in methods
        for node in ast.walk(ast.parse(dedent(inspect.getsource(method))))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "op"
    }
    assert {field.name for field in fields(instruction)} <= reads
