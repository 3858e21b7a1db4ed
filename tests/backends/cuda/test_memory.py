"""What is counted of a GPU's memory before a load is what a load takes there."""

import random

import pytest
import torch
from localrun_testing.emulated_cuda import CudaStepper

from benchmarks.gpu_models import SHAPES, Shape, random_model
from localrun.backends.cuda.backend import CudaBackend
from localrun.backends.cuda.translator import CudaTranslator
from localrun.backends.gpu import scratch
from localrun.backends.gpu.buffers import Buffers, place
from localrun.backends.gpu.scratch import bucket_units
from localrun.base.resources import resource
from localrun.engine.runner import cache_layers
from localrun.formats.gguf import open_gguf
from localrun.model.load import allocated_bytes, held_bytes, read_config, read_weight_refs
from localrun.ops.kv import KV_CODECS
from localrun.ops.largest_step import MAX_ROWS
from localrun.ops.program import record_instructions

BUILTIN = resource("localrun/builtin/localrun-tiny.gguf")


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_buffers_of_real_shapes(shape: Shape) -> None:
    """Models whose tensors have sizes and no memory."""
    model = random_model(shape, 8192, torch.device("meta"))
    layers, buffers = cache_layers(model.config), Buffers(MAX_ROWS, torch.device("meta"))
    place(record_instructions(model.forward), layers, buffers, CudaTranslator.reads_codes)
    assert 0.97 < scratch.buffer_bytes(model.config, coded=True) / buffers.nbytes < 1.03


def test_logits_and_what_is_found_of_them() -> None:
    one, n = CudaStepper(BUILTIN, ctx=512), 16
    one.step(random.Random(0).choices(range(200), k=n), 0)  # logits of all rows, as of so many sequences
    program = one.executor.program
    head = program.head.buffers
    assert head is not None
    found = [head.rows, head.gathered.plain, head.gathered.coded, head.found.numbers, program.translator.partial]
    taken = program.buffers.nbytes + sum(tensor.nbytes for tensor in found if tensor is not None)
    arena = scratch.arena_bytes(one.config, 512, KV_CODECS["f16"], n, coded=True, all_codecs=False)
    counted = arena - scratch.WORKSPACE_BYTES
    assert 1 < counted / taken < 1.1


def test_what_attention_leaves_between_its_parts_is_counted() -> None:
    one = CudaStepper(BUILTIN, ctx=2048)
    spec = one.config.layers[0]
    for ctx in (64, 513, 2048, 40_000):
        heads = (spec.n_heads, spec.head_dim)
        most = max(scratch.partial_numbers(rows, bucket_units(ctx), *heads) for rows in range(1, MAX_ROWS + 1))
        assert scratch.partial_bytes(spec, ctx) == 4 * most


def test_weights_take_what_their_layouts_say() -> None:
    source = open_gguf(BUILTIN)
    refs = read_weight_refs(source, read_config(source))
    counted = held_bytes(source, refs, CudaBackend().matrix_bytes)
    assert counted == allocated_bytes(CudaStepper(BUILTIN).model.weights)
