"""Other builds of the native library: sanitized, for ARM under qemu, and with flags that would break row-exactness."""

import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from localrun_testing import REPOSITORY
from localrun_testing.instruction_sets import MODEL_FLAGS, all_here, is_modelled, native, tool
from torch import Tensor

from localrun.backends.reference.attention import attend, visible

pytestmark = pytest.mark.slow

DRIVER = REPOSITORY / "tests" / "support" / "attention_driver.cpp"
HEADS, KV_HEADS = 4, 2
CODECS = {"f32": 0, "f16": 1, "q8": 2, "k8v4": 3, "q4": 4}
NMSE = {"f32": 1e-11, "f16": 5e-5, "q8": 2e-4, "k8v4": 0.01, "q4": 0.03}  # against exact keys and values


@dataclass(frozen=True)
class Case:
    """Random queries, keys and values, and how they are cut into steps: threads, and rows of each."""

    n_rows: int
    head_dim: int
    runs: tuple[tuple[int, list[int]], ...]
    value_dim: int = 0  # of latents

    @property
    def n_kv_heads(self) -> int:
        return 1 if self.value_dim else KV_HEADS

    def numbers(self) -> list[Tensor]:
        g, n_values = torch.Generator().manual_seed(1), 0 if self.value_dim else KV_HEADS
        q, k, v = (torch.randn(self.n_rows, n * self.head_dim, generator=g) for n in (HEADS, self.n_kv_heads, n_values))
        return [q * (40 / self.head_dim) ** 0.5, k, v]  # scores spread as with heads of 40


NARROW = Case(650, 40, ((1, [650]), (3, [1, 13, 64, 100, 257, 16, 15, 3, 181]), (2, [1] * 650)))
WIDE = Case(140, 512, ((1, [140]), (3, [1, 13, 64, 62]), (2, [1] * 140)))  # as Gemma 4
LATENTS = Case(140, 576, WIDE.runs, value_dim=512)  # as DeepSeek-V3
LIGHTLY = ("-DCMAKE_CXX_FLAGS_RELEASE=-O1",)  # sanitized, the optimizer takes minutes


def build(
    folder: Path,
    isa: str,
    flags: str = "",
    edit: Callable[[Path], None] = lambda _sources: None,
    compiler: str = "c++",
    cmake_options: tuple[str, ...] = (),
) -> Path:
    """The driver, linked to a build of the library with one unit and extra flags; `edit` may change the sources."""
    sources = folder / "cpu"
    shutil.copytree(REPOSITORY / "kernels" / "cpu", sources)
    edit(sources)
    cmake = tool("cmake")
    options = [f"-DLOCALRUN_ISA_UNITS={isa}", f"-DCMAKE_CXX_FLAGS={flags}", *cmake_options]
    subprocess.run([cmake, "-S", sources, "-B", folder / "build", *options], check=True, capture_output=True)
    subprocess.run([cmake, "--build", folder / "build", "-j2"], check=True, capture_output=True)
    driver = folder / "driver"
    link = ["-L", str(folder / "build"), "-llocalrun_cpu", f"-Wl,-rpath,{folder / 'build'}"]
    command = [compiler, "-std=c++17", *flags.split(), "-I", str(sources), str(DRIVER), "-o", str(driver), *link]
    subprocess.run(command, check=True, capture_output=True)
    return driver


def run(command: list[str | Path], isa: str, codec: str, window: int = 0, case: Case = NARROW) -> list[Tensor]:
    """What the driver makes of a case, cut and threaded in its ways: each f32 [n_rows, HEADS * head_dim]."""
    header = [HEADS, case.n_kv_heads, case.head_dim, case.value_dim, CODECS[codec], window, case.n_rows, len(case.runs)]
    for n_threads, chunks in case.runs:
        header += [n_threads, len(chunks), *chunks]
    numbers = b"".join(x.numpy().tobytes() for x in case.numbers())
    data = struct.pack(f"<{len(header)}i", *header) + numbers
    done = subprocess.run([*command, isa], input=data, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr.decode()
    out = torch.frombuffer(bytearray(done.stdout), dtype=torch.float32)
    return list(out.view(len(case.runs), case.n_rows, -1))


def check(results: list[Tensor], codec: str, window: int, case: Case = NARROW) -> None:
    q, k, v = (x.view(case.n_rows, -1, case.head_dim) for x in case.numbers())
    v = k[..., : case.value_dim] if case.value_dim else v
    positions = torch.arange(case.n_rows)
    wanted = attend(q, k, v, visible(positions, positions, window or None), 0.2).flatten(1)
    assert float((results[0] - wanted).square().sum() / wanted.square().sum()) < NMSE[codec]
    assert all(torch.equal(result, results[0]) for result in results)


def best_isa() -> str:
    return native()[-1]


@pytest.mark.parametrize("isa", dict.fromkeys(all_here()[-1:] + native()[-1:]))
def test_sanitizers_find_nothing(isa: str, tmp_path: Path) -> None:
    flags = "-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g1"
    driver = build(tmp_path, isa, f"{flags} {MODEL_FLAGS}" if is_modelled(isa) else flags, cmake_options=LIGHTLY)
    for codec in CODECS:
        for window in (0, 100):
            check(run([driver], isa, codec, window), codec, window)
        check(run([driver], isa, codec, 0, WIDE), codec, 0, WIDE)
    for codec in ("f32", "f16"):
        check(run([driver], isa, codec, 0, LATENTS), codec, 0, LATENTS)


def test_threads_race_for_nothing(tmp_path: Path) -> None:
    isa = best_isa()
    driver = build(tmp_path, isa, "-fsanitize=thread -g1", cmake_options=LIGHTLY)
    for codec in ("f16", "q8", "q4"):
        check(run(["setarch", "-R", driver] if shutil.which("setarch") else [driver], isa, codec), codec, 0)


@pytest.mark.parametrize("isa", ["neon", "i8mm"])
def test_neon_under_qemu(isa: str, tmp_path: Path) -> None:
    compiler, qemu = tool("aarch64-linux-gnu-g++"), tool("qemu-aarch64", "qemu-aarch64-static")
    target = ("-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64", f"-DCMAKE_CXX_COMPILER={compiler}")
    driver = build(tmp_path, isa, compiler=compiler, cmake_options=target)
    command: list[str | Path] = [qemu, "-L", "/usr/aarch64-linux-gnu", driver]
    for codec in CODECS:
        check(run(command, isa, codec, 100), codec, 100)
        check(run(command, isa, codec, 0, WIDE), codec, 0, WIDE)
    for codec in ("f32", "f16"):
        check(run(command, isa, codec, 0, LATENTS), codec, 0, LATENTS)


def test_clang_builds_every_unit(tmp_path: Path) -> None:
    """And what it builds computes: tests of the operations on all instruction sets of this machine."""
    names = ("clang++-16", "clang++-17", "clang++-18", "clang++")
    compiler = next((name for name in names if shutil.which(name)), None)
    if compiler is None:
        pytest.skip("clang is not installed: it is another compiler")
    cmake = tool("cmake")
    options = [f"-DCMAKE_CXX_COMPILER={compiler}"]
    sources = REPOSITORY / "kernels" / "cpu"
    subprocess.run([cmake, "-S", sources, "-B", tmp_path / "build", *options], check=True, capture_output=True)
    built = subprocess.run([cmake, "--build", tmp_path / "build", "-j2"], capture_output=True, text=True)
    assert built.returncode == 0, built.stdout[-4000:]
    (tmp_path / "other_library.py").write_text(
        f"import localrun.backends.cpu\nlocalrun.backends.cpu.__path__.insert(0, {str(tmp_path / 'build')!r})\n"
    )
    tests = [str(Path(__file__).with_name(name)) for name in ("test_library.py", "test_rows.py")]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "other_library", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, env=environment, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, (done.stdout + done.stderr)[-8000:]


def replaced(sources: Path, name: str, before: str, after: str) -> None:
    text = (sources / name).read_text()
    assert before in text
    (sources / name).write_text(text.replace(before, after))


EXACT = "-ffp-contract=off -fno-fast-math"


def fused_isa() -> str:
    """A unit whose exponential is written out, with fused multiply-add at the compiler's disposal."""
    return "avx2" if "avx2" in native() else best_isa()


@pytest.fixture(scope="module")
def as_it_is(tmp_path_factory: pytest.TempPathFactory) -> Tensor:
    isa = fused_isa()
    results = run([build(tmp_path_factory.mktemp("exact") / "build", isa)], isa, "f32")
    check(results, "f32", 0)
    return results[0]


def test_fast_math_breaks_it(tmp_path: Path) -> None:
    """The flags of the build are a guard: the same source without them is wrong, or no longer exact."""
    isa = fused_isa()
    driver = build(tmp_path, isa, edit=lambda sources: replaced(sources, "CMakeLists.txt", EXACT, "-ffast-math"))
    with pytest.raises(AssertionError):
        check(run([driver], isa, "f32"), "f32", 0)


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        pytest.param("CMakeLists.txt", EXACT, "-ffp-contract=fast", id="contraction"),
        pytest.param("values.h", "#define LR_SPLIT_BLOCKS 8", "#define LR_SPLIT_BLOCKS 3", id="splits"),
    ],
)
def test_other_rounding_gives_other_bits(tmp_path: Path, as_it_is: Tensor, name: str, before: str, after: str) -> None:
    """So neither may follow the compiler's taste, the number of threads, or anything that changes from run to run."""
    isa = fused_isa()
    driver = build(tmp_path, isa, edit=lambda sources: replaced(sources, name, before, after))
    results = run([driver], isa, "f32")
    check(results, "f32", 0)
    assert not torch.equal(results[0], as_it_is)
