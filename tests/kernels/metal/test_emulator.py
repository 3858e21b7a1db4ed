"""Metal on the emulator: what kernels are given, what they meet in, and what is said of those that are at fault."""

from typing import TypedDict

import pytest
import torch
from localrun_testing.emulator.build import EmulatedFault
from localrun_testing.emulator.metal import EmulatedCompiler, emulated_device
from localrun_testing.metal_lint import clang, lint

from localrun.backends.gpu.device import Argument

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
TEXT = (
    HEAD
    + """
constant uint primes[4] = {2, 3, 5, 7};
struct Pair { float2 a; half2 b; };
kernel void places(device uint* to [[buffer(0)]], uint3 group [[threadgroup_position_in_grid]],
                   uint3 groups [[threadgroups_per_grid]], uint3 at [[thread_position_in_threadgroup]],
                   uint3 size [[threads_per_threadgroup]], uint index [[thread_index_in_threadgroup]],
                   ushort lane [[thread_index_in_simdgroup]], ushort sg [[simdgroup_index_in_threadgroup]],
                   uint3 everywhere [[thread_position_in_grid]]) {
  const uint block = (group.z * groups.y + group.y) * groups.x + group.x;
  const bool good = index == (at.z * size.y + at.y) * size.x + at.x && index == sg * 32u + lane &&
                    all(everywhere == group * size + at);
  to[block * size.x * size.y * size.z + index] = good ? 1000 * block + index : 0;
}
kernel void numbers(device float* y [[buffer(0)]], constant int& i [[buffer(1)]], constant float& f [[buffer(2)]],
                    device const float* none [[buffer(3)]], constant uint& given [[buffer(4)]],
                    uint at [[thread_position_in_grid]]) {
  if (at == 0) y[0] = i, y[1] = f, y[2] = given, y[3] = primes[3], y[4] = given & 8 ? none[0] : -1.f;
}
kernel void turn_around(device int* x [[buffer(0)]], uint group [[threadgroup_position_in_grid]],
                        uint i [[thread_position_in_threadgroup]], uint n [[threads_per_threadgroup]]) {
  threadgroup int shared[1024];
  shared[i] = x[group * n + i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  x[group * n + i] = shared[n - 1 - i];
}
kernel void lanes(device float2* y [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) {
  const float2 own = float2(lane, half(0.5h) * half(lane));
  y[lane] = simd_shuffle_xor(own, 5);
  y[32 + lane] = simd_broadcast(own, 7);
  y[64 + lane] = quad_shuffle(own, 2);
  y[96 + lane] = float2(simd_max(int(lane) ^ 21), simd_shuffle(ushort(lane * 3), ushort(31 - lane)));
}
kernel void vectors(device float4* y [[buffer(0)]], device const uchar4* x [[buffer(1)]]) {
  const uchar4 v = x[0];
  float4 f = float4(v) * 2.0f + float4(v.zw, half2(1.h, 3.h));
  f.xy = f.zw - 1;
  y[0] = select(f, float4(0), f > float4(40));
  y[1] = fma(f, float4(2), clamp(f, float4(1), float4(3)));
  y[2] = float4(as_type<half2>(as_type<uint>(half2(1.5h, -2.h))), as_type<float>(0x40490fdbu), float(as_type<uint>(v)));
  const uint4 bits = uint4(v) << 4u & 0xf0u;
  y[3] = float4(bits);
}
kernel void product(device float* c [[buffer(0)]], device const float* a [[buffer(1)]],
                    device const half* b [[buffer(2)]]) {
  threadgroup half staged[8 * 12];
  for (uint i = 0; i < 8; i++) staged[i * 12 + i] = b[0];
  simdgroup_float8x8 sum(0.5f), x;
  simdgroup_half8x8 h;
  simdgroup_load(x, a, 16, ulong2(8, 0));
  simdgroup_load(h, b, 8, 0, true);
  simdgroup_multiply_accumulate(sum, x, h, sum);
  simdgroup_store(sum, c);
}
#line 100
kernel void unwritten(device uint* x [[buffer(0)]]) {
  threadgroup Pair pair[4];
  x[0] = as_type<uint>(pair[3].a.y);
}
#line 200
kernel void some_leave(uint i [[thread_position_in_threadgroup]], device int* x [[buffer(0)]]) {
  if (i >= 40) return;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  x[i] = 1;
}
#line 300
kernel void shuffle_in_a_branch(device float* x [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) {
  if (lane < 8) x[lane] = simd_shuffle_xor(1.f, 1);
}
#line 400
kernel void too_much(device float* x [[buffer(0)]]) {
  threadgroup float a[4096];
  threadgroup float b[4097];
  x[0] = a[0] + b[0];
}
"""
)


def run(name: str, *arguments: Argument, grid: int = 1, block: int = 32, seed: int = 0, poison: int = 0xFF) -> None:
    device = emulated_device(seed=seed, poison=poison, replace={"sample.metal": TEXT})
    device.kernel("sample.metal", name).bind((grid, 1, 1), (block, 1, 1), *arguments)()


def test_every_thread_knows_its_place() -> None:
    found = torch.zeros(12 * 64, dtype=torch.int32)
    kernel = emulated_device(replace={"sample.metal": TEXT}).kernel("sample.metal", "places")
    kernel.bind((2, 3, 2), (16, 2, 2), found)()
    assert found.tolist() == [1000 * block + thread for block in range(12) for thread in range(64)]


def test_numbers_and_absent_tensors_arrive() -> None:
    y = torch.zeros(5)
    run("numbers", y, -3, 0.25, None)
    assert y.tolist() == [-3, 0.25, 0b0111, 7, -1]
    run("numbers", y, 1 << 20, 0.5, torch.tensor([9.0]))
    assert y.tolist() == [1 << 20, 0.5, 0b1111, 7, 9]


@pytest.mark.parametrize("seed", [0, 1, 2, 9])
def test_what_was_written_before_a_barrier_is_read_after_it(seed: int) -> None:
    x = torch.arange(3 * 192, dtype=torch.int32)
    run("turn_around", x, grid=3, block=192, seed=seed)
    assert torch.equal(x.view(3, 192).flip(1), torch.arange(576, dtype=torch.int32).view(3, 192))


def test_lanes_exchange_values_of_any_size() -> None:
    y = torch.zeros(128, 2)
    run("lanes", y)
    lane = torch.arange(32)
    own = torch.stack([lane.float(), lane * 0.5], 1)
    assert torch.equal(y[:32], own[lane ^ 5])
    assert torch.equal(y[32:64], own[7].expand(32, 2))
    assert torch.equal(y[64:96], own[lane // 4 * 4 + 2])
    assert torch.equal(y[96:], torch.stack([torch.full((32,), 31.0), (31 - lane) * 3.0], 1))


def test_vectors_compute_by_components() -> None:
    y, x = torch.zeros(4, 4), torch.tensor([3, 5, 19, 23], dtype=torch.uint8)
    run("vectors", y, x)
    assert y[0].tolist() == [38, 0, 39, 0]
    assert y[1].tolist() == [38 * 2 + 3, 48 * 2 + 3, 39 * 2 + 3, 49 * 2 + 3]
    assert y[2].tolist() == pytest.approx([1.5, -2.0, 3.14159274, 3 + (5 << 8) + (19 << 16) + (23 << 24)])
    assert y[3].tolist() == [v * 16 % 256 for v in x.tolist()]


def test_a_product_of_matrices_is_a_chain_of_fma() -> None:
    torch.manual_seed(0)
    a, b, c = torch.randn(8, 16), torch.randn(8, 8).half(), torch.zeros(8, 8)
    run("product", c, a, b)
    want = torch.full((8, 8), 0.5)
    for k in range(8):  # a product of 24 and 11 bits, added: exact in float64
        want = (a[:, 8 + k, None].double() * b[None, :, k].double() + want.double()).float()
    assert torch.equal(c, want)


def test_threadgroup_memory_holds_poison_at_first() -> None:
    x = torch.zeros(1, dtype=torch.int32)
    run("unwritten", x, poison=0x3C)
    assert x.item() == 0x3C3C3C3C


@pytest.mark.parametrize(
    ("name", "block", "says"),
    [
        ("some_leave", 64, r"deadlock: thread 0 waits at sample\.metal:202; thread 40 has returned"),
        ("shuffle_in_a_branch", 32, r"deadlock: thread 0 waits at sample\.metal:301; thread 8 has returned"),
        ("too_much", 32, r"more than 32 KB of threadgroup memory at sample\.metal:402"),
    ],
)
def test_a_fault_is_named(name: str, block: int, says: str) -> None:
    with pytest.raises(EmulatedFault, match=says):
        run(name, torch.zeros(64), block=block)


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ("device float* x", "no attribute"),
        ("device float* x [[buffer(1)]]", r"buffers \[1\]"),
        ("device float* x [[buffer(0)]], device float* y [[buffer(0)]]", "buffers"),
    ],
)
def test_a_kernel_that_cannot_be_bound_is_not_compiled(parameters: str, says: str) -> None:
    with pytest.raises(SyntaxError, match=says):
        EmulatedCompiler().compile_shader(f"{HEAD}kernel void k({parameters}) {{}}")


def test_what_torch_refuses_is_refused() -> None:
    library = EmulatedCompiler().compile_shader(TEXT)
    x = torch.zeros(2048, dtype=torch.int32)
    with pytest.raises(ValueError, match="exceeds 1024"):
        library.turn_around(x, threads=2048, group_size=2048)
    with pytest.raises(RuntimeError, match="same number of dimensions"):
        library.turn_around(x, threads=(64, 1), group_size=64)
    with pytest.raises(RuntimeError, match="undefined"):
        library.turn_around(threads=None)
    with pytest.raises(RuntimeError, match="nothing"):
        _ = library.nothing
    with pytest.raises(RuntimeError, match="NoneType"):
        library.numbers(x.float(), 1, 1.0, None, 7, threads=32, group_size=32, arg_casts={1: "int32", 4: "int32"})
    with pytest.raises(SyntaxError, match=r"sample\.metal:7:.*y"):
        EmulatedCompiler().compile_shader(TEXT + '#line 7 "sample.metal"\nconstant int x = y;\n')
    with pytest.raises(SyntaxError, match="ASCII"):
        EmulatedCompiler().compile_shader(TEXT + "// \u2026")


def test_what_a_gpu_would_take_and_get_wrong_is_a_fault() -> None:
    library = EmulatedCompiler().compile_shader(TEXT)
    y, size = torch.zeros(8), SimdGroup(threads=32, group_size=32)
    with pytest.raises(EmulatedFault, match="set as 'q'"):
        library.numbers(y, 1, 1.0, y, 7, **size)
    with pytest.raises(EmulatedFault, match="reads 'f'"):
        library.numbers(y, 1, 1, y, 7, arg_casts="int32", **size)
    with pytest.raises(EmulatedFault, match="reads 5 buffers, but 3"):
        library.numbers(y, 1, 1.0, **size)
    with pytest.raises(EmulatedFault, match="a tensor, but"):
        library.numbers(y, y, 1.0, y, 7, arg_casts={4: "int32"}, **size)
    with pytest.raises(EmulatedFault, match="not whole threadgroups"):
        library.turn_around(y, threads=48, group_size=32)


class SimdGroup(TypedDict):
    """One threadgroup of 32 threads."""

    threads: int
    group_size: int


needs_clang = pytest.mark.skipif(clang() is None, reason="no clang++ 16 or later")


@needs_clang
def test_the_lint_is_content_with_what_the_emulator_runs() -> None:
    assert lint(TEXT) == ""


@needs_clang
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("constant int& i", "const int& i"),
        ("device int* x", "int* x"),
        ("half staged[8 * 12];", "half staged[8 * 12]; device half* p = staged;"),
        ("simdgroup_load(x, a", "simdgroup_load(h, a"),
        ("v.zw", "v.zq"),
        ("float4(bits)", "bits"),
        ("const float2 own", "thread float* p = x; const float2 own"),
    ],
)
def test_the_lint_notices(right: str, wrong: str) -> None:
    assert right in TEXT
    assert "error" in lint(TEXT.replace(right, wrong, 1))
