"""Latent attention of the CPU library: matrices of heads, what is stored, and whole layers beside expanded heads."""

import ctypes
import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from localrun_testing.instruction_sets import codes_16_bits, pairwise
from localrun_testing.kv_cases import NMSE, Blocks, nmse, reference_for, run, sizes, step
from localrun_testing.latent_cases import CASES, LatentCase
from localrun_testing.native import BAD_ARGUMENT, BLOCK, OK, UNSUPPORTED, NativeLayer, Rows, Shape, native_library
from localrun_testing.native_ops import Guarded, NativeMatrix, NativeValue, instruction, linear, sample
from localrun_testing.native_ops import run as run_instructions
from torch import Tensor

from localrun.backends.cpu import abi
from localrun.backends.cpu.executor import CpuExecutor
from localrun.base.errors import EngineError
from localrun.cache.kinds.latent import Latent
from localrun.ops.kv import BLOCK_TOKENS, KV_CODECS

MakeExecutor = Callable[..., CpuExecutor]
SMALL = LatentCase(n_tokens=600, n_heads=5)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_absorbed_is_attention_over_expanded_heads(case: LatentCase, isa: str, executor: MakeExecutor) -> None:
    chunks = [1, 62, 2, case.n_tokens - 66, 1]
    out = run(case, executor(case), chunks, seed=len(str(case)), poison=True)
    assert nmse(out[case.telling_rows], case.expected(case.telling_rows)) < NMSE[case.codec]


@pairwise(codec=("f16", "f32"))
def test_chunks_threads_and_tables_do_not_show(codec: str, isa: str, executor: MakeExecutor) -> None:
    """Of whole layers: matrices of heads, too, compute a row whoever is beside it."""
    case = replace(SMALL, codec=codec)
    whole = run(case, executor(case))
    ragged = [1, 13, 64, 100, 57, 16, 15, 3, 1, 1, 200, 121, 8]
    for seed, (chunks, threads) in enumerate((([450] + [1] * 150, 1), (ragged, 3), ([64] * 9 + [24], 2)), 1):
        assert torch.equal(run(case, executor(case, threads), chunks, seed, poison=True), whole)


@pytest.mark.parametrize("codec", ["f16", "f32"])
def test_a_branch_and_a_replay_compute_what_a_fresh_run_does(codec: str, executor: MakeExecutor) -> None:
    """Two sequences share blocks 0 and 1, the second takes a copy of block 2; then rows are computed again."""
    case = replace(SMALL, codec=codec, n_tokens=230)
    model = executor(case)
    whole = run(case, model)
    blocks = Blocks.of(case, model, *sizes(case), seed=3, poison=True)
    step(case, model, blocks.view(0, 170), 0, 170)
    copy = blocks.free.pop()
    model.copy_block(0, blocks.coded[2], copy)
    step(case, model, blocks.view(170, 200), 170, 30)
    blocks.coded[2] = copy
    blocks.coded.pop(3)
    assert torch.equal(step(case, model, blocks.view(170, 230), 170, 60), whole[170:])
    stored = [model.read_block(0, block) for block in blocks.coded.values()]
    view = replace(blocks.view(128, 230), write_from=(230,))
    step(case, model, view, 128, 102, shift=1)
    assert [model.read_block(0, block) for block in blocks.coded.values()] == stored, "rows below write nothing"


@pytest.mark.parametrize("codec", ["f16", "f32"])
def test_latents_are_stored_once_and_another_backend_takes_over(codec: str, isa: str, executor: MakeExecutor) -> None:
    case = replace(SMALL, codec=codec, n_tokens=150)
    reference, native = reference_for(case), executor(case)
    scales = 2 * 4 * BLOCK_TOKENS if codec == "f16" and codes_16_bits(isa) else 0
    assert native.block_bytes(0) == Latent(case.rank, case.dims).block_bytes(KV_CODECS[codec], BLOCK_TOKENS) + scales
    there, here = (Blocks.of(case, one, *sizes(case), seed=7, poison=False) for one in (reference, native))
    step(case, reference, there.view(0, 130), 0, 130)
    view = here.view(0, 130)
    for block in view.table[0]:
        native.kv_import(0, block, *reference.kv_export(0, block))
        for got, given in zip(native.kv_export(0, block), reference.kv_export(0, block), strict=True):
            assert (got.codes.shape, got.codes.dtype) == (given.codes.shape, given.codes.dtype)
            assert torch.allclose(got.codes, given.codes, rtol=0.01, atol=0.02)
    wanted = step(case, reference, there.view(130, 150), 130, 20)
    assert nmse(step(case, native, here.view(130, 150), 130, 20), wanted) < NMSE[codec]


def head_linear(x: Tensor, matrix: NativeMatrix, n_heads: int, **vectors: Tensor) -> Tensor:
    """The instruction over x [R, n_heads · n_in]. `vectors`: bias, scale, order."""
    n_rows, n_in, forms = len(x), matrix.c.n_cols, matrix.activation_format
    a = NativeValue(n_rows * max(1, n_heads), n_in, forms)
    read, out = NativeValue(n_rows, x.shape[1], data=x), NativeValue(n_rows, matrix.c.n_rows)
    kept = {name: Guarded(4 * len(values)) for name, values in vectors.items()}
    for name, values in vectors.items():
        kept[name].tensor(values.dtype, len(values))[:] = values
    point, addresses = ctypes.pointer, {name: memory.address for name, memory in kept.items()}
    op = abi.HeadLinear(
        point(read.c), a=point(a.c), weight=point(matrix.c), out=point(out.c), n_heads=n_heads, **addresses
    )
    run_instructions([instruction(op)], n_rows, threads=2)
    return out.data


@pairwise(qtype=("Q8_0", "Q4_K", "F16", "BF16", "F32", "Q5_1", "F8_E4M3"), n_heads=(3, 20))
def test_every_head_is_a_linear_of_its_own(isa: str, qtype: str, n_heads: int) -> None:
    n_in, n_out = 256, 48
    raw = sample(qtype, n_heads * n_out, n_in)
    whole, each = NativeMatrix(raw, qtype, n_in), [NativeMatrix(part, qtype, n_in) for part in raw.split(n_out)]
    for n_rows in (1, 2, 7, 40, 130):
        x = torch.randn(n_rows, n_heads * n_in, generator=torch.Generator().manual_seed(n_rows))
        parts = x.split(n_in, dim=1)
        wanted = [linear(part.contiguous(), [matrix])[0] for part, matrix in zip(parts, each, strict=True)]
        assert torch.equal(head_linear(x, whole, n_heads), torch.cat(wanted, dim=1))


@pytest.mark.parametrize("qtype", ["Q8_0", "F32"])
def test_heads_have_scales_biases_and_an_order_of_columns(isa: str, qtype: str) -> None:
    n_heads, n_in, n_out = 4, 96, 32
    draw = torch.Generator().manual_seed(0)
    raw = sample(qtype, n_heads * n_out, n_in)
    x, bias = torch.randn(5, n_heads * n_in, generator=draw), torch.randn(n_heads * n_out, generator=draw)
    order, scale = torch.randperm(n_in, generator=draw).int(), torch.tensor([0.5, 2.0, 1.0, -3.0])
    got = head_linear(x, NativeMatrix(raw, qtype, n_in), n_heads, bias=bias, scale=scale, order=order)
    wanted = [
        linear(part[:, order].contiguous(), [NativeMatrix(rows, qtype, n_in)], [b], scale=[s.expand(1)])[0]
        for part, rows, b, s in zip(x.split(n_in, 1), raw.split(n_out), bias.split(n_out), scale, strict=True)
    ]
    assert torch.equal(got, torch.cat(wanted, dim=1))


def test_matrices_of_heads_that_are_none_are_refused() -> None:
    matrix, x = NativeMatrix(sample("F32", 96, 32), "F32", 32), torch.randn(2, 128)
    order = torch.arange(32, dtype=torch.int32)
    assert head_linear(x, matrix, 3, order=order).shape == (2, 96)
    for heads, read, given in ((4, x, {}), (3, x[:, :64], {}), (0, x, {}), (3, x, {"order": order + 1})):
        with pytest.raises(EngineError, match="lr_program_create"):
            head_linear(read, matrix, heads, **given)


LATENTS = Shape(4, 1, 48, "f16", value_dim=32)


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"codec": 2}, UNSUPPORTED),  # latents are never quantised
        ({"n_kv_heads": 2}, BAD_ARGUMENT),
        ({"value_dim": -16}, BAD_ARGUMENT),
        ({"value_dim": 24}, UNSUPPORTED),
        ({"value_dim": 48}, UNSUPPORTED),  # as many as a key has
        ({"head_dim": 584}, UNSUPPORTED),
        ({"head_dim": 576, "value_dim": 528}, UNSUPPORTED),
        ({"head_dim": 64}, BAD_ARGUMENT),  # more than the block holds
        ({"value_dim": 16}, BAD_ARGUMENT),  # whose turned parts are wider than their buffers
    ],
)
def test_an_invalid_layer_of_latents_is_refused(changes: dict[str, int], status: int) -> None:
    layer = NativeLayer(native_library(), LATENTS, 2, n_threads=1)
    for name, value in changes.items():
        setattr(layer.layers[0], name, value)
    arguments = (ctypes.byref(layer.program), layer.threads, 4, ctypes.byref(ctypes.c_void_p()))
    assert layer.library.lr_program_create(*arguments) == status
    layer.close()


@pytest.mark.parametrize(("value_dim", "other", "head_dim"), [(32, 0, 32), (0, 32, 48)])
def test_a_layer_has_keys_and_values_or_latents(value_dim: int, other: int, head_dim: int) -> None:
    """Neither of the two instructions stores what is the other's."""
    layer = NativeLayer(native_library(), replace(LATENTS, value_dim=value_dim), 4, n_threads=1)
    layer.layers[0].value_dim, layer.layers[0].head_dim = other, head_dim
    layer.layers[0].blocks.block_bytes = 4 * layer.block_bytes
    executor = ctypes.c_void_p()
    arguments = (ctypes.byref(layer.program), layer.threads, 4, ctypes.byref(executor))
    assert layer.library.lr_program_create(*arguments) == BAD_ARGUMENT
    layer.program.instruction = ctypes.pointer(layer.instructions[1])
    layer.program.n_instructions = 1
    assert layer.library.lr_program_create(*arguments) == OK, "without it the layer is good"
    layer.library.lr_program_destroy(executor)
    layer.close()


@pairwise(codec=("f16", "f32"), dims=((48, 32), (576, 512), (40, 32)))
def test_stored_latents_are_what_they_were(isa: str, codec: str, dims: tuple[int, int]) -> None:
    """Each part of a key by its own size, however large the other is."""
    key_dim, value_dim = dims
    shape = Shape(2, 1, key_dim, codec, value_dim=value_dim)
    layer = NativeLayer(native_library(), shape, 2, n_threads=2)
    k = torch.randn(70, key_dim, generator=torch.Generator().manual_seed(1))
    k[:, value_dim:] *= 1e4
    k[3, 0] = math.inf
    layer.run(Rows(0, torch.randn(70, 2 * key_dim), k, torch.empty(70, 0), [1, 0]))
    found = torch.zeros(BLOCK, key_dim)
    arguments = (layer.codec, key_dim, value_dim, layer.pool.data_ptr() + layer.block_bytes, 0, BLOCK, found.data_ptr())
    assert layer.library.lr_latent_export(*arguments) == OK
    wanted = k[:BLOCK] if codec == "f32" else k[:BLOCK].clamp(-65504, 65504)
    if codec == "f32":
        assert torch.equal(found, wanted)
    else:
        for part in (slice(0, value_dim), slice(value_dim, key_dim)):
            error = (found - wanted)[:, part].norm(dim=1)
            assert bool((error <= 0.003 * wanted[:, part].norm(dim=1)).all())
    again = torch.zeros(layer.block_bytes, dtype=torch.uint8)
    arguments = (layer.codec, key_dim, value_dim, again.data_ptr(), 0, BLOCK, found.data_ptr())
    assert layer.library.lr_latent_import(*arguments) == OK
    if not codes_16_bits(isa):
        assert torch.equal(again, layer.pool[layer.block_bytes :])
    for broken in ((2, key_dim, value_dim), (0, key_dim + 4, value_dim), (0, key_dim, 8)):
        assert layer.library.lr_latent_block_bytes(*broken) == -1
        assert layer.library.lr_latent_import(*broken, again.data_ptr(), 0, 1, found.data_ptr()) == BAD_ARGUMENT
    assert layer.library.lr_latent_export(*arguments[:4], 63, 2, found.data_ptr()) == BAD_ARGUMENT
    layer.close()
