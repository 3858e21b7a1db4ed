"""The executor: what it refuses, how a step is cut short, what it reports."""

import ctypes
import functools
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import torch
from localrun_testing.native import (
    BAD_ARGUMENT,
    CANCELLED,
    OK,
    UNSUPPORTED,
    NativeLayer,
    Rows,
    Shape,
    int32s,
    native_library,
)

from localrun.backends.cpu import abi, abi_step


@pytest.fixture
def layer() -> Iterator[NativeLayer]:
    made = NativeLayer(native_library(), Shape(), 8, n_threads=2, max_rows=64)
    yield made
    made.close()


def rows(n: int, first: int = 0, table: tuple[int, ...] = (5, 1)) -> Rows:
    g = torch.Generator().manual_seed(first)
    q, k, v = (torch.randn(n, heads * 64, generator=g) for heads in (4, 2, 2))
    return Rows(first, q, k, v, table)


def create(layer: NativeLayer, max_rows: int = 64) -> int:
    executor = ctypes.c_void_p()
    arguments = (ctypes.byref(layer.program), layer.threads, max_rows, ctypes.byref(executor))
    status = int(layer.library.lr_program_create(*arguments))
    assert (status == OK) == bool(executor)
    layer.library.lr_program_destroy(executor)
    return status


BAD_LAYERS = [
    ("n_heads", 3, BAD_ARGUMENT),  # not a multiple of the KV heads
    ("n_heads", 0, BAD_ARGUMENT),
    ("n_kv_heads", 0, BAD_ARGUMENT),
    ("n_heads", 1 << 20, BAD_ARGUMENT),
    ("head_dim", 12, UNSUPPORTED),
    ("head_dim", 520, UNSUPPORTED),
    ("head_dim", 0, UNSUPPORTED),
    ("head_dim", 128, BAD_ARGUMENT),  # more than the block holds
    ("codec", 9, UNSUPPORTED),
    ("codec", -1, UNSUPPORTED),
    ("blocks.pool", None, BAD_ARGUMENT),
    ("blocks.layer_offset", 64, BAD_ARGUMENT),
    ("blocks.layer_offset", -64, BAD_ARGUMENT),
    ("codec", 2, BAD_ARGUMENT),  # codes want 16-bit blocks beside them
    ("group", -1, BAD_ARGUMENT),
]


@pytest.mark.parametrize(("name", "value", "status"), BAD_LAYERS)
def test_an_invalid_cache_layer_is_refused(layer: NativeLayer, name: str, value: object, status: int) -> None:
    assert create(layer) == OK
    *inner, name = name.split(".")
    setattr(functools.reduce(getattr, inner, layer.layers[0]), name, value)
    assert create(layer) == status


def test_an_invalid_program_is_refused(layer: NativeLayer) -> None:
    append, attend = layer.instructions[0], layer.instructions[1]

    def refused(structure: object, name: str, value: object, status: int = BAD_ARGUMENT) -> None:
        before = getattr(structure, name)
        setattr(structure, name, value)
        assert create(layer) == status, name
        setattr(structure, name, before)
        assert create(layer) == OK

    for instruction in (append.rope_append, attend.attention):
        refused(instruction, "layer", 1)
        refused(instruction, "layer", -1)
    refused(append.rope_append, "qk_norm", 1)  # without weights
    refused(append, "op", 99)
    refused(append, "op", -1)
    refused(attend.attention, "window", -1)
    refused(attend.attention, "softcap", -1.0)
    refused(attend.attention, "scale", float("nan"))
    refused(layer.program, "n_instructions", 0)
    refused(layer.program, "n_layers", -1)
    assert create(layer, max_rows=0) == BAD_ARGUMENT
    for missing in range(3):
        arguments = [ctypes.byref(layer.program), layer.threads, 4, ctypes.byref(ctypes.c_void_p())]
        arguments[(0, 1, 3)[missing]] = None
        assert layer.library.lr_program_create(*arguments) == BAD_ARGUMENT


OTHER = (
    "embed",
    "norm",
    "embed_mapped",
    "gelu_mul",
    "scale",
    "linear",
    "logits",
    "will_need",
    "xielu",
    "add_image_rows",
    "clamp",
)


def other_ops(layer: NativeLayer) -> tuple["ctypes.Array[abi.Instruction]", abi.Matrix, dict[int, abi.Value]]:
    """Those of OTHER over a matrix [64, 32], linear with gate and up; never run."""
    memory = layer.pool.data_ptr()
    matrix = abi.Matrix(n_rows=64, n_cols=32, data=memory, n_bytes=4096)
    values = {width: abi.Value(f32=memory, width=width, stride=256) for width in (32, 64)}
    narrow, wide, weight = ctypes.pointer(values[32]), ctypes.pointer(values[64]), ctypes.pointer(matrix)
    linear = abi.Linear(a=narrow, n_weights=2, act=1, out_scale=1.0, residual=wide)
    linear.weight[0] = linear.weight[1] = weight
    linear.out[0] = wide
    ops: dict[str, ctypes.Structure] = {
        "embed": abi.Embed(weight, narrow, 1.0),
        "norm": abi.Norm(narrow, narrow, narrow, memory, 1e-5, 32),
        "embed_mapped": abi.EmbedMapped(memory, narrow, 1.0, 0, 64, 32),
        "gelu_mul": abi.GeluMul(narrow, wide, narrow, 32),
        "scale": abi.Scale(narrow, narrow, 0.5),
        "linear": linear,
        "logits": abi.LogitsOp(narrow, weight, memory, narrow, 1.0, 0.0),
        "will_need": abi.WillNeed((weight, None, None), None),
        "xielu": abi.Xielu(narrow, narrow, 1.0, 1.0, 0.5, -1e-6),
        "add_image_rows": abi.AddImageRows(narrow, narrow, 0),
        "clamp": abi.Clamp(narrow, narrow, -1.0, 1.0),
    }
    instructions = (abi.Instruction * len(ops))()
    for instruction, (name, op) in zip(instructions, ops.items(), strict=True):
        instruction.op = abi.OPS.index(name)
        setattr(instruction, name, op)
    return instructions, matrix, values


def test_invalid_operands_are_refused(layer: NativeLayer) -> None:
    instructions, matrix, values = other_ops(layer)
    memory = layer.pool.data_ptr()
    layer.program.instruction, layer.program.n_instructions = instructions, len(OTHER)
    embed, norm, mapped, gelu_mul, scale, linear, logits, will_need, xielu, add, clamp = (
        getattr(i, n) for i, n in zip(instructions, OTHER, strict=True)
    )
    wrong: list[tuple[ctypes.Structure, str, object]] = [
        (matrix, "n_rows", 0),
        (matrix, "n_rows", 65),  # more than the outputs hold
        (matrix, "n_cols", 31),  # not what the activations have
        (matrix, "data", None),
        (values[32], "f32", None),
        (values[32], "stride", 31),
        (values[64], "width", 63),
        (linear, "n_weights", 0),
        (linear, "n_weights", 1),  # an activation takes two
        (linear, "n_weights", 5),
        (linear, "act", 4),
        (embed, "out", None),
        (norm, "weight", None),
        (norm, "x", None),
        (norm, "size", 0),
        (norm, "size", 31),
        (mapped, "rows", None),
        (mapped, "n_rows", 0),
        (mapped, "gguf_type", 99),
        (mapped, "n_cols", 64),  # more than the output holds
        (gelu_mul, "first", -1),
        (gelu_mul, "first", 33),
        (gelu_mul, "gate", None),
        (scale, "factor", float("inf")),
        (scale, "x", None),
        (logits, "rows", None),
        (logits, "gathered", None),
        (logits, "softcap", -1.0),
        (xielu, "x", None),
        (xielu, "negative", float("nan")),
        (clamp, "x", None),
        (clamp, "low", 2.0),
        (clamp, "high", float("nan")),
        (linear, "order", memory),  # of weights in floats, which do not know it
        (will_need, "routes", ctypes.pointer(abi.Routes())),
        (embed, "image_token", 64),
        (mapped, "image_token", 64),
        (add, "place", -1),
        (add, "out", None),
    ]
    for structure, name, value in wrong:
        assert create(layer) == OK
        before = bytes(structure)
        setattr(structure, name, value)
        assert create(layer) == BAD_ARGUMENT, name
        ctypes.memmove(ctypes.byref(structure), before, len(before))


def test_more_ids_than_candidates_are_found_among_are_refused(layer: NativeLayer) -> None:
    instructions, matrix, _values = other_ops(layer)
    logits = OTHER.index("logits")
    layer.program.instruction, layer.program.n_instructions = ctypes.pointer(instructions[logits]), 1
    for n_rows, status in ((1 << 24, OK), ((1 << 24) + 1, BAD_ARGUMENT), (2**31 - 1, BAD_ARGUMENT)):
        matrix.n_rows = n_rows
        assert create(layer) == status, n_rows


@pytest.mark.parametrize(("row", "n_buffer", "n_added"), [(2, 2, 1), (-2, 2, 1), (0, 0, 1), (0, 2, 0)])
def test_a_row_of_an_image_outside_the_buffer_is_refused(
    layer: NativeLayer, row: int, n_buffer: int, n_added: int
) -> None:
    instructions, _matrix, _values = other_ops(layer)
    add = ctypes.pointer(instructions[OTHER.index("add_image_rows")])
    layer.program.instruction, layer.program.n_instructions = add, 1
    step, _keep = layer.step(rows(3))
    wanted, buffer = int32s([-1, -1, row]), (ctypes.c_float * 64)()
    added = (ctypes.c_void_p * 1)(ctypes.addressof(buffer))
    step.buffer_row, step.buffer, step.added = (ctypes.addressof(one) for one in (wanted, buffer, added))
    step.n_buffer, step.n_added = n_buffer, n_added
    executor = ctypes.c_void_p()
    arguments = (ctypes.byref(layer.program), layer.threads, 64, ctypes.byref(executor))
    assert layer.library.lr_program_create(*arguments) == OK
    assert layer.library.lr_program_run(executor, ctypes.byref(step)) == BAD_ARGUMENT
    layer.library.lr_program_destroy(executor)


@pytest.mark.parametrize("name", ["embed", "embed_mapped"])
@pytest.mark.parametrize("token", [-1, 64, 2**31 - 1])
def test_a_token_outside_the_embedding_is_refused(layer: NativeLayer, token: int, name: str) -> None:
    instructions, _matrix, _values = other_ops(layer)
    embed = ctypes.pointer(instructions[OTHER.index(name)])
    layer.program.instruction, layer.program.n_instructions = embed, 1
    step, _keep = layer.step(rows(3))
    tokens = int32s([0, 63, token])
    step.token = ctypes.addressof(tokens)
    executor = ctypes.c_void_p()
    arguments = (ctypes.byref(layer.program), layer.threads, 64, ctypes.byref(executor))
    assert layer.library.lr_program_create(*arguments) == OK
    assert layer.library.lr_program_run(executor, ctypes.byref(step)) == BAD_ARGUMENT
    layer.library.lr_program_destroy(executor)


def run(layer: NativeLayer, *sequences: Rows, change: Callable[[abi_step.Step], None] = lambda _step: None) -> int:
    step, _keep = layer.step(*sequences)
    change(step)
    return int(layer.library.lr_program_run(layer.executor, ctypes.byref(step)))


def array(address: int, n: int) -> "ctypes.Array[ctypes.c_int32]":
    return (ctypes.c_int32 * n).from_address(address)


BAD_STEPS: dict[str, Callable[[abi_step.Step], None]] = {
    "no rows": lambda step: setattr(step, "n_rows", 0),
    "more rows than planned": lambda step: setattr(step, "n_rows", 65),
    "no sequences": lambda step: setattr(step, "n_sequences", 0),
    "no positions": lambda step: setattr(step, "position", None),
    "a row of no sequence": lambda step: array(step.row_sequence, 5).__setitem__(2, 7),
    "a row of a negative sequence": lambda step: array(step.row_sequence, 5).__setitem__(2, -1),
    "rows apart": lambda step: array(step.row_sequence, 5).__setitem__(1, 1),
    "positions that fall": lambda step: array(step.position, 5).__setitem__(2, 0),
    "a position twice": lambda step: array(step.position, 5).__setitem__(1, 0),
    "a position past the end": lambda step: array(step.position, 5).__setitem__(2, 1000),
    "a negative position": lambda step: array(step.position, 5).__setitem__(0, -1),
    "no table": lambda step: setattr(step.sequence[1], "table", None),
    "logits of a row that is not there": lambda step: set_logits(step, 5),
    "logits of a negative row": lambda step: set_logits(step, -1),
}
KEEP: list[object] = []


def set_logits(step: abi_step.Step, row: int) -> None:
    rows = int32s([row])
    KEEP.append(rows)
    step.logits_row, step.n_logits = ctypes.addressof(rows), 1


@pytest.mark.parametrize("name", BAD_STEPS)
def test_an_invalid_step_is_refused(layer: NativeLayer, name: str) -> None:
    two = (rows(3), rows(2, table=(2, 3)))
    assert run(layer, *two) == OK
    layer.pool.zero_()
    assert run(layer, *two, change=BAD_STEPS[name]) == BAD_ARGUMENT
    assert not bool(layer.pool.any())  # nothing ran
    assert run(layer, *two) == OK
    assert layer.library.lr_program_run(layer.executor, None) == BAD_ARGUMENT
    assert layer.library.lr_program_run(None, None) == BAD_ARGUMENT


def test_cancelled_before_it_began(layer: NativeLayer) -> None:
    layer.cancel.value = 1
    assert run(layer, rows(5)) == CANCELLED
    assert not bool(layer.pool.any())
    layer.cancel.value = 0
    assert run(layer, rows(5)) == OK
    assert bool(layer.pool.any())


def test_cancelled_between_two_ops() -> None:
    """A long program, cancelled from another thread, ends soon after; then the executor runs as before."""
    layer = NativeLayer(native_library(), Shape(), 8, n_threads=2, max_rows=512)
    repeats = 30_000  # of half a millisecond or more
    many = (abi.Instruction * (1 + repeats))(layer.instructions[0], *[layer.instructions[1]] * repeats)
    program = abi_step.ProgramC(many, layer.layers, len(many), 1)
    executor = ctypes.c_void_p()
    arguments = (ctypes.byref(program), layer.threads, 512, ctypes.byref(executor))
    assert layer.library.lr_program_create(*arguments) == OK
    step, _keep = layer.step(rows(512, table=tuple(range(8))))
    layer.library.lr_program_set_timing(executor, 1)
    timer = threading.Timer(0.1, lambda: setattr(layer.cancel, "value", 1))
    begun = time.monotonic()
    timer.start()
    assert layer.library.lr_program_run(executor, ctypes.byref(step)) == CANCELLED
    seconds = (ctypes.c_double * len(many))()
    assert layer.library.lr_program_timings(executor, seconds, len(many)) == OK
    done = sum(second > 0 for second in seconds)
    assert 0 < done < repeats / 2
    assert sum(seconds) < time.monotonic() - begun
    layer.cancel.value = 0
    layer.library.lr_program_destroy(executor)
    assert run(layer, rows(5)) == OK
    layer.close()


def test_timings_are_kept_only_when_asked_for(layer: NativeLayer) -> None:
    run(layer, rows(40))
    assert layer.timings() == [0.0, 0.0]
    layer.library.lr_program_set_timing(layer.executor, 1)
    for _ in range(3):
        run(layer, rows(40))
    after = layer.timings()
    assert all(0 < seconds < 10 for seconds in after)
    run(layer, rows(40))
    assert all(later > before for later, before in zip(layer.timings(), after, strict=True))
    layer.library.lr_program_set_timing(layer.executor, 1)
    assert layer.timings() == [0.0, 0.0]
    assert layer.library.lr_program_timings(layer.executor, (ctypes.c_double * 3)(), 3) == BAD_ARGUMENT


def test_two_programs_share_threads_and_blocks(layer: NativeLayer) -> None:
    """From two Python threads at once; each gets what it gets alone."""
    other = NativeLayer(layer.library, replace(layer.shape, softcap=3.0), 8, n_threads=1, max_rows=64)
    executor = ctypes.c_void_p()
    arguments = (ctypes.byref(other.program), layer.threads, 64, ctypes.byref(executor))
    assert layer.library.lr_program_create(*arguments) == OK
    other.library.lr_program_destroy(other.executor)
    other.executor = executor
    wanted = [each.run(rows(60)) for each in (layer, other)]
    wrong: list[int] = []

    def repeat(index: int, each: NativeLayer) -> None:
        for _ in range(100):
            if not torch.equal(each.run(rows(60)), wanted[index]):
                wrong.append(index)

    threads = [threading.Thread(target=repeat, args=pair) for pair in enumerate((layer, other))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong
    assert not torch.equal(*wanted)
    other.close()
