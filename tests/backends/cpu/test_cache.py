"""rope_append and the block store of the native library: what is stored, where, and how it is rounded."""

import ctypes
import math
from dataclasses import replace

import pytest
import torch
from localrun_testing.instruction_sets import codes_16_bits, pairwise
from localrun_testing.native import BAD_ARGUMENT, BLOCK, OK, NativeLayer, Rows, Shape, native_library
from torch import Tensor

from localrun.backends.cpu import abi
from localrun.backends.reference.norm import rms_norm
from localrun.backends.reference.ops import rotate


@pytest.fixture
def library(isa: str) -> ctypes.CDLL:
    return native_library()


def assert_holds(library: ctypes.CDLL, codec: str, held: Tensor, x: Tensor, keys: bool) -> None:
    """`held` is what the codec makes of x [..., head_dim]: the nearest number it has, or at most half a step away."""
    expected = x if codec == "f32" else x.clamp(-65504, 65504)
    if codec == "f32":
        assert torch.equal(held, expected)
    elif codes_16_bits(isa := library.lr_isa().decode()):
        wide = expected.double()
        size = wide.norm(dim=-1, keepdim=True) if keys else wide.abs().amax(-1, keepdim=True)
        codes = held.double() / (size / 32700)
        assert ((held - wide).abs() <= 0.51 * size / 32700).all()
        assert torch.allclose(codes, codes.round(), rtol=0, atol=0.02)
    else:
        expected = expected.bfloat16() if isa in ("avx512", "amx") else expected.half()
        assert torch.equal(held, expected.float())


def make(shape: Shape, n: int, table: list[int], first: int = 0) -> Rows:
    g = torch.Generator().manual_seed(n)
    q, k, v = (
        torch.randn(n, h * shape.head_dim, generator=g) for h in (shape.n_heads, shape.n_kv_heads, shape.n_kv_heads)
    )
    return Rows(first, q, k, v, table)


@pairwise(
    codec=("f16", "f32"),
    head=((64, 32), (24, 12), (40, 7), (80, 0), (128, 32), (256, 128), (512, 256)),  # head_dim, turned pairs
    qk_norm=("none", "head", "row"),
)
def test_q_and_k_are_normed_and_turned(library: ctypes.CDLL, codec: str, head: tuple[int, int], qk_norm: str) -> None:
    head_dim, half = head
    g = torch.Generator().manual_seed(head_dim)
    weights = [torch.randn(head_dim * (n if qk_norm == "row" else 1), generator=g) for n in (6, 3)]
    shape = Shape(6, 3, head_dim, codec, qk_norm=qk_norm, q_weight=weights[0], k_weight=weights[1], rope=half > 0)
    layer = NativeLayer(library, shape, 3, n_threads=2)
    rows = make(shape, 70, [2, 0])
    angles = torch.rand(70, half, generator=g) * 6
    cos_sin = (angles.cos(), angles.sin())
    layer.run(rows, cos_sin=cos_sin)

    def prepared(x: Tensor, weight: Tensor) -> Tensor:
        x = rms_norm(x, weight, shape.eps) if qk_norm == "row" else x
        x = x.view(70, -1, head_dim)
        x = rms_norm(x, weight, shape.eps) if qk_norm == "head" else x
        return rotate(x, *cos_sin) if half else x

    turned = layer.buffers["turned"][:70, : 6 * head_dim].view(70, 6, head_dim)
    assert torch.allclose(turned, prepared(rows.q, weights[0]), rtol=1e-5, atol=1e-6)
    keys, values = (torch.cat(pair) for pair in zip(layer.export(2, 0, 64), layer.export(0, 0, 6), strict=True))
    coded = codec == "f16" and codes_16_bits(library.lr_isa().decode())
    rtol, atol = (1e-5, 1e-6) if codec == "f32" else (0.01, 5e-4 if coded else 1e-4)
    assert torch.allclose(keys, prepared(rows.k, weights[1]), rtol=rtol, atol=atol)
    assert_holds(library, codec, values, rows.v.view(70, 3, head_dim), keys=False)
    layer.close()


@pytest.mark.parametrize("head_dim", [24, 256, 512])
def test_heads_of_values_are_normed(library: ctypes.CDLL, head_dim: int) -> None:
    layer = NativeLayer(library, Shape(4, 2, head_dim, "f32"), 2, n_threads=2)
    layer.instructions[0].rope_append.v_norm = 1
    layer.instructions[0].rope_append.eps = 1e-3
    rows = make(layer.shape, 20, [1])
    layer.run(rows)
    keys, values = layer.export(1, 0, 20)
    one = torch.ones(head_dim)
    expected = rms_norm(rows.v.view(20, 2, head_dim), one, 1e-3)
    torch.testing.assert_close(values, expected, rtol=2e-6, atol=1e-6)
    assert torch.equal(keys, rows.k.view(20, 2, head_dim))
    layer.close()


@pytest.mark.parametrize("codec", ["f32", "f16", "q8"])
def test_a_layer_without_keys_reads_those_of_another(library: ctypes.CDLL, codec: str) -> None:
    shape = Shape(4, 2, 40, codec)
    layer = NativeLayer(library, shape, 2, n_threads=2, n_ring=2)
    rows = replace(make(shape, 20, [1]), ring=[0])
    expected, before = layer.run(rows), layer.pool.clone()
    append = layer.instructions[0].rope_append
    append.k = append.v = None
    assert torch.equal(layer.run(replace(rows, k=rows.k + 1, v=rows.v + 1)), expected)
    assert torch.equal(layer.pool, before)
    append.k = ctypes.pointer(layer.values["k"])
    executor = ctypes.c_void_p()
    arguments = (ctypes.byref(layer.program), layer.threads, 64, ctypes.byref(executor))
    assert library.lr_program_create(*arguments) == BAD_ARGUMENT, "keys without values"
    layer.close()


def test_append_writes_its_slots_and_nothing_else(library: ctypes.CDLL) -> None:
    shape = Shape(2, 2, 24, "f16")
    layer = NativeLayer(library, shape, 3, n_threads=2)
    layer.pool.fill_(0xFF)
    layer.run(make(shape, 5, [1], first=7))
    keys, values = layer.export(1, 0, BLOCK)
    for x in (keys, values):
        written = torch.isfinite(x).all(-1).all(-1)
        assert written.nonzero().flatten().tolist() == list(range(7, 12))
        assert torch.isnan(x[~written]).all()
    blocks = layer.pool.view(3, -1)
    assert bool((blocks[0] == 0xFF).all())
    assert bool((blocks[2] == 0xFF).all())
    layer.close()


NUMBERS = [
    0.0, -0.0, 1.0, -1.0, 65504.0, 65519.0, 65520.0, 1e6, -1e6, 1e30, math.inf, -math.inf, 6e-8, 5.9e-8, 2.9e-8, 3e-8,
    6.1e-5, 6.09e-5, 6.103515625e-5, 1.0009765625, 1.00048828125, 1.000488281, 1.00146484375, 0.1, 1 / 3, 2049.0,
]  # fmt: skip


@pytest.mark.parametrize("codec", ["f16", "f32"])
def test_rounding_is_to_the_nearest_and_clamps(library: ctypes.CDLL, codec: str) -> None:
    g = torch.Generator().manual_seed(0)
    special = torch.tensor(NUMBERS)
    many = torch.randn(64 * 40 - len(special), generator=g) * torch.logspace(-8, 8, 64 * 40 - len(special))
    x = torch.cat((special, many)).view(64, 1, 40)
    if library.lr_isa() in (b"avx512", b"amx"):
        x = torch.where(x.abs() < 1e-37, 0, x)
    if codec == "f32":
        x = x.clamp(-1e38, 1e38)
    code = abi.KV_CODES[codec]
    block = torch.zeros(library.lr_kv_block_bytes(code, 1, 40), dtype=torch.uint8)
    flipped = x.flip(0).contiguous()
    arguments = (code, 1, 40, block.data_ptr(), 0, 64)
    assert library.lr_kv_import(*arguments, x.data_ptr(), flipped.data_ptr()) == OK
    k, v = torch.zeros(2, 64, 1, 40)
    assert library.lr_kv_export(*arguments, k.data_ptr(), v.data_ptr()) == OK
    assert_holds(library, codec, k, x, keys=True)
    assert_holds(library, codec, v, flipped, keys=False)
    broken = torch.full((64, 1, 40), math.nan)
    assert library.lr_kv_import(*arguments, broken.data_ptr(), broken.data_ptr()) == OK
    assert library.lr_kv_export(*arguments, k.data_ptr(), v.data_ptr()) == OK
    assert torch.isnan(k).all()
    assert torch.isnan(v).all()


def test_a_copied_block_is_the_same_and_apart(library: ctypes.CDLL) -> None:
    shape = Shape(2, 1, 16, "f16")
    layer = NativeLayer(library, shape, 3, n_threads=1)
    layer.run(make(shape, 64, [2]))
    before = layer.export(2, 0, BLOCK)
    assert library.lr_kv_copy_block(layer.pool.data_ptr(), layer.block_bytes, 2, 0) == OK
    assert library.lr_kv_copy_block(layer.pool.data_ptr(), layer.block_bytes, 2, 2) == OK
    layer.run(make(shape, 30, [0], first=20))
    assert all(torch.equal(*pair) for pair in zip(layer.export(2, 0, BLOCK), before, strict=True))
    kept = [slot for slot in range(BLOCK) if not 20 <= slot < 50]
    for after, was in zip(layer.export(0, 0, BLOCK), before, strict=True):
        assert torch.equal(after[kept], was[kept])
        assert not torch.equal(after, was)
    layer.close()


def test_what_no_block_holds_is_refused(library: ctypes.CDLL) -> None:
    for codec, heads, head_dim in (
        (7, 1, 64),
        (-1, 1, 64),
        (1, 0, 64),
        (1, 1, 12),
        (1, 1, 0),
        (1, 1, 520),
        (1, -2, 64),
    ):
        assert library.lr_kv_block_bytes(codec, heads, head_dim) == -1
    memory = torch.zeros(1 << 16)
    where = memory.data_ptr()
    for slot, n in ((-1, 2), (63, 2), (0, 65), (0, -1), (64, 1), (2**31 - 1, 2)):
        for call in (library.lr_kv_import, library.lr_kv_export):
            assert call(1, 1, 64, where, slot, n, where, where) == BAD_ARGUMENT
    assert library.lr_kv_import(1, 1, 64, None, 0, 1, where, where) == BAD_ARGUMENT
    assert library.lr_kv_export(1, 1, 64, where, 0, 1, None, where) == BAD_ARGUMENT
    assert library.lr_kv_copy_block(where, 0, 1, 0) == BAD_ARGUMENT
    assert library.lr_kv_copy_block(where, 64, -1, 0) == BAD_ARGUMENT
