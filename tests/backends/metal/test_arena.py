"""What is counted of memory before a load is what a load takes."""

import random

import pytest
import torch
from localrun_testing.emulated_metal import MetalStepper
from localrun_testing.small_model import rolling

from benchmarks.gpu_models import SHAPES, Shape, random_model
from localrun.backends.gpu import scratch
from localrun.backends.gpu.buffers import GpuBuffers, place
from localrun.backends.gpu.forms import slot_forms
from localrun.backends.metal.backend import MetalBackend
from localrun.backends.metal.translator import MetalTranslator
from localrun.base.resources import resource
from localrun.engine.runner import cache_layers
from localrun.fit.blocks import CacheShape
from localrun.formats.gguf import open_gguf
from localrun.model.headers import read_config, read_weight_refs
from localrun.model.recording import record_shapes
from localrun.model.weight_sizes import allocated_bytes, held_bytes
from localrun.ops.kv import KV_CODECS
from localrun.ops.largest_step import MAX_ROWS
from localrun.ops.recording import record_instructions

BUILTIN = resource("localrun/builtin/localrun-tiny.gguf")


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_buffers_of_real_shapes(shape: Shape) -> None:
    """Models whose tensors have sizes and no memory; nothing is kept quantised."""
    model = rolling(random_model(shape, 8192, torch.device("meta")))
    recorded, buffers = record_instructions(model.forward), GpuBuffers(MAX_ROWS, torch.device("meta"))
    place(recorded, slot_forms(recorded, cache_layers(model.config), MetalTranslator.reads_codes), buffers)
    assert scratch.buffer_bytes(record_shapes(model.config), coded=False) == buffers.nbytes


def test_a_step_and_the_weights_of_the_model_that_is_inside() -> None:
    one, n = MetalStepper(BUILTIN, ctx=512, rolls=True), 8
    one.step(random.Random(0).choices(range(200), k=n), 0)  # logits of all rows, as of so many sequences
    program = one.executor.program
    head = program.head.buffers
    assert head is not None
    found = [head.rows, head.gathered.plain, head.found.on_device, program.translator.partial]
    taken = program.buffers.nbytes + sum(tensor.nbytes for tensor in found if tensor is not None)
    shape = CacheShape(one.config, MetalBackend())
    counted = shape.scratch_bytes(512, KV_CODECS["f16"], 1, n) - scratch.WORKSPACE_BYTES
    assert 1 <= counted / taken < 1.1
    source = open_gguf(BUILTIN)
    refs = read_weight_refs(source, read_config(source))
    assert held_bytes(source, refs, MetalBackend().matrix_bytes) == allocated_bytes(one.model.weights)


def test_a_quantised_cache_needs_nothing_of_torch() -> None:
    shape = CacheShape(MetalStepper(BUILTIN, ctx=512).config, MetalBackend())
    counted = {shape.scratch_bytes(512, KV_CODECS[name], 1, 1) for name in ("f16", "q8", "q4")}
    assert len(counted) == 1
