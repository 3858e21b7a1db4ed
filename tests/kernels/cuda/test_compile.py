"""Every kernel is compiled for every GPU it may meet, and its needs are read from the machine code."""

import inspect
from itertools import product
from pathlib import Path

import pytest
from localrun_testing.cubin import Kernel, disassembled
from localrun_testing.kept import kept

from localrun.backends.cuda import compiler
from localrun.backends.cuda.compiler import compile_kernels, nvrtc_version, why_no_compiler
from localrun.backends.cuda.kernels import ARCHITECTURES, Unit, units
from localrun.backends.cuda.source import folder, source
from localrun.base.errors import LocalrunError

pytestmark = pytest.mark.skipif(bool(why_no_compiler()), reason=f"CUDA: {why_no_compiler()}")

SHORT_ARCHITECTURES = (75, 90)  # the oldest instructions and newer ones, for `make test`
STATIC_SHARED = 48 << 10  # bytes a kernel may declare
REGISTERS = 64 << 10  # of a multiprocessor

# What a kernel is there for, in its machine code. Turing copies to shared memory by way of registers.
MEANT = {
    ("linear.cu", "linear"): ("IMMA", "LDG.E.128"),
    ("linear_many.cu", "linear_many"): ("IMMA", "LDGSTS"),
    ("linear_dp4a.cu", "linear_dp4a"): ("IDP.4A",),
    ("linear_float.cu", "linear_float"): ("LDG.E.128",),
    ("experts.cu", "experts"): ("IMMA", "LDG.E.128"),
    ("experts_many.cu", "experts_many"): ("IMMA", "LDGSTS"),
    ("experts_float.cu", "experts_float"): ("LDG.E.128",),
    ("attention.cu", "attend_units"): ("HMMA", "LDG.E.128"),
    ("attention_tiles.cu", "attend_tiles"): ("HMMA", "LDSM", "LDGSTS"),
}


def compiled(unit: Unit, arch: int) -> dict[str, Kernel]:
    text = source(unit.file)

    def compile_unit(path: Path) -> None:
        path.write_bytes(bytes(compile_kernels(text, unit.file, arch, unit.defines, keep=False).code))

    code = kept(compile_unit, text, unit, arch, nvrtc_version(), compiler_text()).read_bytes()
    return disassembled(code)


def compiler_text() -> str:
    """The options that every unit is compiled with are in it."""
    return inspect.getsource(compiler)


def check(unit: Unit, arch: int) -> None:
    for name, kernel in compiled(unit, arch).items():
        where = f"{name} of {unit} for sm_{arch}"
        assert kernel.stack == 0, f"{where} keeps {kernel.stack} bytes of a thread in memory"
        assert kernel.count("LDL", "STL") == 0, f"{where} spills registers"
        assert kernel.shared <= STATIC_SHARED, where
        assert kernel.threads, f"{where} has no __launch_bounds__"
        warps = -(-kernel.threads // 32)
        assert -(-kernel.registers // 8) * 8 * 32 * warps <= REGISTERS, f"{where}: {kernel.registers} registers"
        for instruction in MEANT.get((unit.file, name), ()):
            assert kernel.count(instruction) or (instruction == "LDGSTS" and arch < 80), f"{where} has no {instruction}"


def shortest() -> list[Unit]:
    """One row of each file."""
    return list({unit.file: unit for unit in reversed(units())}.values())


@pytest.mark.parametrize(("unit", "arch"), [*product(shortest(), SHORT_ARCHITECTURES)], ids=str)
def test_a_row_of_every_file_compiles_and_spills_nothing(unit: Unit, arch: int) -> None:
    check(unit, arch)


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("unit", units(), ids=str)
def test_everything_compiles_for_every_architecture(unit: Unit, arch: int) -> None:
    check(unit, arch)


def test_every_file_of_kernels_is_in_the_table() -> None:
    assert {path.name for path in folder().glob("*.cu")} == {unit.file for unit in units()}


@pytest.mark.parametrize(("arch", "instruction"), [(75, "IMMA.8816.S8.S8"), (80, "IMMA.16832.S8.S8"), (90, "IMMA")])
def test_products_of_bytes_are_made_by_tensor_cores(arch: int, instruction: str) -> None:
    found = compiled(Unit("intrinsics.cu"), arch)
    assert found["check_mma_s8"].count(instruction)
    assert found["check_mma_f16"].count("HMMA")
    assert found["check_dp4a"].count("IDP.4A.S8.S8")
    assert found["check_ldmatrix"].count("LDSM") == 2
    assert bool(found["check_copy_async"].count("LDGSTS")) == (arch >= 80)


def test_a_text_that_does_not_compile_says_where() -> None:
    text = '#line 7 "broken.cu"\nextern "C" __global__ void broken() { int x = missing; }'
    with pytest.raises(LocalrunError, match=r"broken\.cu\(7\): error.*missing"):
        compile_kernels(text, "broken.cu", 80, {}, keep=False)


def test_gpus_newer_than_the_compiler_get_ptx_of_the_newest_it_knows() -> None:
    newest = compiler.known_arch(999)
    assert newest >= 121
    assert [compiler.known_arch(arch) for arch in (75, 89, newest)] == [75, 89, newest]
    assert compiler.known_arch(101) == 100  # refused by this compiler


def test_what_was_compiled_is_kept(home: Path) -> None:
    def compile_once(**defines: int) -> bytes:
        return bytes(compile_kernels(source("intrinsics.cu"), "intrinsics.cu", 80, defines).code)

    def kept() -> dict[bytes, int]:
        files = [path for path in (home / "cache" / "cuda").rglob("*") if path.is_file()]
        return {path.read_bytes(): path.stat().st_mtime_ns for path in files}

    compiler._kept.cache_clear()
    try:
        first = compile_once(A=1)
        after_one = kept()
        assert first in after_one
        assert compile_once(A=1) == first
        assert kept() == after_one
    finally:
        compiler._kept.cache_clear()
