"""NEON by an emulator: layouts, and linears that have the very bits of AVX2, whose arithmetic is the same."""

import struct
import subprocess
from collections.abc import Iterator

import pytest
import torch
from localrun_testing import REPOSITORY
from localrun_testing.instruction_sets import native, tool, using
from localrun_testing.native_ops import NativeMatrix, decoded, gguf_id, linear, sample
from torch import Tensor

pytestmark = pytest.mark.slow

TYPES = [
    "F32",
    "F16",
    "BF16",
    "Q4_0",
    "Q4_1",
    "Q5_1",
    "Q8_0",
    "IQ4_NL",
    "MXFP4",
    "NVFP4",
    "Q2_K",
    "Q3_K",
    "Q4_K",
    "Q6_K",
]
N_ROWS, N_COLS, N_TOKENS = 53, 512, 11


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command that runs the driver."""
    compiler, qemu, cmake = tool("aarch64-linux-gnu-g++"), tool("qemu-aarch64"), tool("cmake")
    folder = tmp_path_factory.mktemp("neon")
    sources = REPOSITORY / "kernels" / "cpu"
    target = ["-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64", "-DLOCALRUN_ISA_UNITS=generic;neon;i8mm"]
    subprocess.run([cmake, "-S", sources, "-B", folder, f"-DCMAKE_CXX_COMPILER={compiler}", *target], check=True)
    subprocess.run([cmake, "--build", folder, "-j2"], check=True)
    command = [compiler, "-std=c++17", f"-I{sources}", str(REPOSITORY / "tests" / "support" / "linear_driver.cpp")]
    link = ["-o", str(folder / "driver"), f"-L{folder}", "-llocalrun_cpu", f"-Wl,-rpath,{folder}"]
    subprocess.run(command + link, check=True)
    return [qemu, "-L", "/usr/aarch64-linux-gnu", str(folder / "driver")]


@pytest.fixture
def avx2() -> Iterator[None]:
    if "avx2" not in native():
        pytest.skip("AVX2 is another instruction set")
    with using("avx2"):
        yield


@pytest.mark.parametrize("qtype", TYPES)
def test_neon_has_the_bits_of_avx2(driver: list[str], avx2: None, qtype: str) -> None:
    raw = sample(qtype, N_ROWS, N_COLS)
    x: Tensor = torch.randn(N_TOKENS, N_COLS, generator=torch.Generator().manual_seed(2))
    (expected,) = linear(x, [NativeMatrix(raw, qtype, N_COLS)])
    data = struct.pack("<4i", gguf_id(qtype), N_ROWS, N_COLS, N_TOKENS) + raw.numpy().tobytes() + x.numpy().tobytes()
    for isa in ("neon", "i8mm", "generic"):
        done = subprocess.run([*driver, isa], input=data, capture_output=True, timeout=100)
        assert done.returncode == 0, done.stderr.decode()
        found = torch.frombuffer(bytearray(done.stdout), dtype=torch.float32)
        weight, product = found[: N_ROWS * N_COLS].view(N_ROWS, -1), found[N_ROWS * N_COLS :].view(N_TOKENS, -1)
        assert torch.equal(weight, decoded(qtype, raw, N_COLS))
        if isa == "generic":  # it has no fused multiply-add
            torch.testing.assert_close(product, expected, rtol=1e-4, atol=1e-4)
        else:
            assert torch.equal(product, expected)
