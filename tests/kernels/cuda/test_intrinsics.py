"""Every name of device.cuh by itself, on the emulator, beside the layouts that CUTLASS publishes and numpy."""

import numpy as np
import pytest
import torch
from localrun_testing import fragments
from localrun_testing.emulator.cuda import EmulatedDevice
from localrun_testing.fragments import split

from localrun.backends.gpu.device import Argument

WARP = (32, 1, 1)
ONE = (1, 1, 1)


def run(name: str, *arguments: Argument, block: int = 32, shared: int = 0, arch: int = 80) -> None:
    EmulatedDevice(arch).kernel("intrinsics.cu", name).bind(ONE, (block, 1, 1), *arguments, shared=shared)()


def words(numbers: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(numbers).view(np.int32))


@pytest.mark.parametrize("arch", [75, 80])
@pytest.mark.parametrize(
    ("name", "k", "held_a", "held_b", "b_type"),
    [
        ("mma_s8", 32, fragments.S8_A, fragments.S8_B, np.int8),
        ("mma_s8u8", 32, fragments.S8_A, fragments.S8_B, np.uint8),
        ("mma_s8_k16", 16, fragments.S8_K16_A, fragments.S8_K16_B, np.int8),
    ],
)
def test_products_of_bytes_are_exact(
    name: str, k: int, held_a: np.ndarray, held_b: np.ndarray, b_type: type, arch: int
) -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(-128, 128, (16, k)).astype(np.int8)
    b: np.ndarray = rng.integers(-128, 128, (8, k)).astype(np.int8).view(b_type)
    start = rng.integers(-999, 999, (16, 8)).astype(np.int32)
    c = torch.from_numpy(split(start, fragments.SUMS))
    run(f"check_{name}", words(split(a, held_a)), words(split(b, held_b)), c, arch=arch)
    want = start + a.astype(np.int32) @ b.astype(np.int32).T
    assert np.array_equal(c.numpy(), split(want, fragments.SUMS))


@pytest.mark.parametrize("arch", [75, 80])
@pytest.mark.parametrize(("name", "dtype"), [("mma_f16", torch.float16), ("mma_bf16", torch.bfloat16)])
def test_products_of_half_numbers(name: str, dtype: torch.dtype, arch: int) -> None:
    rng = np.random.default_rng(0)
    a, b = (torch.from_numpy(rng.standard_normal((n, 16))).to(dtype) for n in (16, 8))
    start = rng.standard_normal((16, 8)).astype(np.float32)
    c = torch.from_numpy(split(start, fragments.SUMS))
    bits = [part.view(torch.int16).numpy() for part in (a, b)]
    run(f"check_{name}", words(split(bits[0], fragments.F16_A)), words(split(bits[1], fragments.F16_B)), c, arch=arch)
    want = start + a.double().numpy() @ b.double().numpy().T
    assert np.abs(c.numpy() - split(want, fragments.SUMS)).max() < 4e-6


def test_ldmatrix_gives_the_fragments_of_a() -> None:
    a = np.arange(256, dtype=np.int16).reshape(16, 16)
    plain, turned = torch.zeros(2, 32, 4, dtype=torch.int32)
    quarters = [a[:8, :8], a[8:, :8], a[:8, 8:], a[8:, 8:]]
    run("check_ldmatrix", words(np.concatenate(quarters)), plain, turned)
    assert np.array_equal(plain.numpy().view(np.int16), split(a, fragments.F16_A))
    run("check_ldmatrix", words(np.concatenate([np.ascontiguousarray(q.T) for q in quarters])), plain, turned)
    assert np.array_equal(turned.numpy().view(np.int16), split(a, fragments.F16_A))


@pytest.mark.parametrize("arch", [75, 80])
def test_copies_arrive_group_by_group(arch: int) -> None:
    given = torch.arange(64 * 4, dtype=torch.int32)
    found = torch.zeros(2, 64, 4, dtype=torch.int32)
    run("check_copy_async", given, found, 40, block=64, shared=2 * 64 * 16, arch=arch)
    rows = given.view(64, 4)
    assert torch.equal(found[0], rows.roll(-1, 0))
    rows[40:] = 0
    assert torch.equal(found[1], rows.roll(-1, 0))


def test_dp4a() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(-128, 128, (2, 50, 4)).astype(np.int8)
    c = torch.arange(50, dtype=torch.int32)
    want = c.numpy() + (a.astype(np.int32) * b).sum(-1)
    run("check_dp4a", words(a), words(b), c, 50, block=64)
    assert np.array_equal(c.numpy(), want)


def test_pairs_of_halves_are_rounded_once() -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(-1152, 1153, (500, 2)).astype(np.float16)
    b, c = (rng.standard_normal((2, 500, 2)) * 10.0 ** rng.integers(-7, 2, (2, 500, 2))).astype(np.float16)
    found = words(c.view(np.int16).copy())
    run("check_fma_half2", words(a), words(b), found, 500, block=500)
    want = (a.astype(np.float64) * b + c.astype(np.float64)).astype(np.float16)
    assert np.array_equal(found.numpy().view(np.float16).reshape(500, 2), want)


def test_numbers_of_sixteen_bits_are_torchs() -> None:
    special = torch.tensor([0.0, -0.0, 1.0, 65504.0, 65520.0, 1e-7, 6e-8, 2e-8, torch.inf, -torch.inf, torch.nan, 3e38])
    x = torch.cat([special, torch.randn(1000) * 10 ** (8 * torch.rand(1000) - 4)])
    half, bf16, of_half, of_bf16, _, _ = numbers(x)
    assert torch.equal(half[~x.isnan()], x.half().view(torch.int16)[~x.isnan()])
    assert torch.equal(of_half.nan_to_num(9), x.half().float().nan_to_num(9))
    assert torch.equal(of_bf16.nan_to_num(9), x.bfloat16().float().nan_to_num(9))
    assert torch.equal(bf16[~x.isnan()], x.bfloat16().view(torch.int16)[~x.isnan()])


def numbers(x: torch.Tensor) -> list[torch.Tensor]:
    found = [torch.zeros(len(x), dtype=torch.int16) for _ in range(2)] + [torch.zeros(len(x)) for _ in range(4)]
    blocks = (-(-len(x) // 64), 1, 1)
    EmulatedDevice().kernel("intrinsics.cu", "check_numbers").bind(blocks, (64, 1, 1), x, *found, len(x))()
    return found


def test_exponentials_are_right_to_the_last_place_and_keep_what_is_special() -> None:
    x = torch.cat([torch.linspace(-126, 127.4, 5001), torch.randn(2000), torch.arange(-126.0, 127.0)])
    _, _, _, _, power, _ = numbers(x)
    assert ((power / x.double().exp2() - 1).abs() < 1.2e-7).all()
    whole = x == x.round()
    assert torch.equal(power[whole], x[whole].exp2())
    x = torch.cat([torch.linspace(-87, 88, 5001), torch.randn(2000)])
    e = numbers(x)[5]
    assert ((e / x.double().exp() - 1).abs() < 1.5e-7).all()
    for found in numbers(torch.tensor([0.0, -torch.inf, -1e9, torch.inf, 1e9, torch.nan]))[4:]:
        assert found.tolist()[:5] == [1, 0, 0, torch.inf, torch.inf]
        assert found[5].isnan()


@pytest.mark.parametrize("by", [1, 3, 16])
def test_shuffles(by: int) -> None:
    x = torch.randperm(32, dtype=torch.int32)
    to, odd = torch.zeros(4, 32, dtype=torch.int32), torch.zeros(32, dtype=torch.int32)
    run("check_shuffles", x, by, to, odd)
    lane = torch.arange(32)
    sources = [
        lane * 0 + by,
        lane ^ by,
        torch.where(lane < by, lane, lane - by),
        torch.where(lane + by > 31, lane, lane + by),
    ]
    assert torch.equal(to, torch.stack([x[source] for source in sources]))
    assert {int(v) & 0xFFFFFFFF for v in odd} == {sum(1 << i for i in range(32) if x[i] % 2)}
