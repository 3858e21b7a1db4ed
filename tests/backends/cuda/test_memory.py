"""What is counted of a GPU's memory before a load is what a load takes there."""

import random

import pytest
import torch
from localrun_testing.emulated_cuda import CudaStepper, emulated_device
from localrun_testing.small_model import rolling

from benchmarks.gpu_models import SHAPES, Shape, random_model
from localrun.backends.cuda import bulk
from localrun.backends.cuda.availability import EMULATE
from localrun.backends.cuda.backend import CudaBackend
from localrun.backends.cuda.bulk_linears import BulkMemory
from localrun.backends.cuda.translator import CudaTranslator
from localrun.backends.gpu import scratch
from localrun.backends.gpu.buffers import GpuBuffers, place
from localrun.backends.gpu.forms import slot_forms
from localrun.backends.gpu.scratch import bucket_units
from localrun.base.resources import resource
from localrun.engine.runner import cache_layers
from localrun.fit.blocks import CacheShape
from localrun.formats.gguf import open_gguf
from localrun.model.headers import read_config, read_weight_refs
from localrun.model.recording import record_shapes
from localrun.model.weight_sizes import allocated_bytes, held_bytes
from localrun.ops.instructions import Linear
from localrun.ops.kv import KV_CODECS
from localrun.ops.largest_step import MAX_ROWS, max_rows
from localrun.ops.recording import record_instructions

BUILTIN = resource("localrun/builtin/localrun-tiny.gguf")
META = torch.device("meta")


@pytest.mark.parametrize("span", [0, 512])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_buffers_of_real_shapes(shape: Shape, span: int) -> None:
    """Models whose tensors have sizes and no memory. `span`: tokens of prompts that are read in bulk."""
    model, rows = rolling(random_model(shape, 8192, META)), max_rows(span)
    layers, buffers, recorded = cache_layers(model.config), GpuBuffers(rows, META), record_instructions(model.forward)
    place(recorded, slot_forms(recorded, layers, CudaTranslator.reads_codes, in_bulk=bool(span)), buffers)
    counted = record_shapes(model.config)
    assert scratch.buffer_bytes(counted, coded=True, span=span) == buffers.nbytes
    if span:
        linears = [each.instruction for each in recorded if isinstance(each.instruction, Linear)]
        taken = BulkMemory.of(linears, rows, span, META).nbytes
        assert bulk.memory_bytes(counted, rows, span) == taken + bulk.LIBRARY_BYTES


def test_all_that_is_taken_where_prompts_are_read_in_bulk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(EMULATE, "1")
    monkeypatch.setattr(bulk, "SPAN", 64)
    one, counted = CudaStepper(BUILTIN, ctx=512, span=64), list[int]()
    program, backend = one.executor.program, CudaBackend()
    assert isinstance(program.translator, CudaTranslator)
    assert program.translator.bulk is not None
    for arch in (80, 90):
        monkeypatch.setitem(vars(backend), "kernel_device", emulated_device(arch))
        counted.append(CacheShape(one.config, backend).scratch_bytes(512, KV_CODECS["f16"], 1, 16))
    more = program.buffers.nbytes + program.translator.bulk.nbytes + bulk.LIBRARY_BYTES
    assert counted[1] - counted[0] == pytest.approx(
        more - scratch.buffer_bytes(record_shapes(one.config), coded=True), rel=0.02
    )


def test_logits_and_what_is_found_of_them() -> None:
    one, n = CudaStepper(BUILTIN, ctx=512, rolls=True), 16
    one.step(random.Random(0).choices(range(200), k=n), 0)  # logits of all rows, as of so many sequences
    program = one.executor.program
    head = program.head.buffers
    assert head is not None
    found = [head.rows, head.gathered.plain, head.gathered.coded, head.found.on_device, program.translator.partial]
    taken = program.buffers.nbytes + sum(tensor.nbytes for tensor in found if tensor is not None)
    model, codecs = record_shapes(one.config), (KV_CODECS["f16"],) * one.config.n_layers
    arena = scratch.arena_bytes(model, 512, codecs, n, backend="cuda", coded=True)
    counted = arena - scratch.WORKSPACE_BYTES
    assert 1 <= counted / taken < 1.1


def test_a_first_step_with_logits_of_four_rows() -> None:
    """As of four chats: quantised rows come in eights."""
    assert CudaStepper(BUILTIN).step([1, 2, 3, 4], 0).isfinite().all()


def test_what_attention_leaves_between_its_parts_is_counted() -> None:
    one = CudaStepper(BUILTIN, ctx=2048)
    place = cache_layers(one.config)[0]
    for ctx in (64, 513, 2048, 40_000):
        heads = (place.n_heads, place.head_dim)
        most = max(scratch.partial_numbers(rows, bucket_units(ctx), *heads) for rows in range(1, MAX_ROWS + 1))
        assert scratch.partial_bytes(place, ctx) == 4 * most


def test_weights_take_what_their_layouts_say() -> None:
    source = open_gguf(BUILTIN)
    refs = read_weight_refs(source, read_config(source))
    counted = held_bytes(source, refs, CudaBackend().matrix_bytes)
    assert counted == allocated_bytes(CudaStepper(BUILTIN).model.weights)
