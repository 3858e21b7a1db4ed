"""The native library: it is there, it is the strongest this machine runs, and what is said where it is not."""

import ctypes
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from localrun_testing import REPOSITORY
from localrun_testing.instruction_sets import SOURCES, SUPPORT, compiled, tool

from localrun.backends.cpu import library
from localrun.backends.cpu.library import NativeLibrary, load_library, why_no_library
from localrun.backends.registry import BACKENDS
from localrun.base.errors import UsageError
from localrun.cli.doctor import _backend

MUST_BE_THERE = os.environ.get("CI") == "true" or bool(os.environ.get("LOCALRUN_REQUIRE_NATIVE"))


@pytest.fixture
def native() -> Iterator[NativeLibrary]:
    loaded = load_library()
    if loaded is None:
        pytest.skip(f"no native library: {why_no_library()}")
    isa = loaded.isa
    yield loaded
    loaded.use_isa(isa)


def test_the_library_is_loaded_where_there_is_a_compiler() -> None:
    if MUST_BE_THERE:
        assert load_library() is not None, why_no_library()
        assert why_no_library() == ""


def cpu_flags() -> set[str]:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith(("flags", "Features")):
            return set(line.split(":")[1].split())
    return set()


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="windows and macos have no /proc/cpuinfo")
def test_the_isa_is_the_strongest_of_this_machine(native: NativeLibrary) -> None:
    avx512 = "avx512f avx512bw avx512vl avx512dq avx512_vnni avx512_bf16"
    needs = {
        "x86_64": {
            "avx2": "avx2 fma f16c",
            "avxvnni": "avx2 fma f16c avx_vnni",
            "avx512": f"avx2 fma f16c {avx512}",
            "amx": f"avx2 fma f16c {avx512} avx512vbmi amx_tile amx_int8 amx_bf16",
        },
        "aarch64": {"neon": "asimddp asimdhp", "i8mm": "asimddp asimdhp i8mm"},
    }[platform.machine()]
    flags = cpu_flags()
    if "amx_tile" in flags and ctypes.CDLL(None).syscall(158, 0x1023, 18):  # arch_prctl: the system may say no
        flags -= {"amx_tile"}
    expected = ("generic", *(isa for isa, names in needs.items() if flags >= set(names.split())))
    assert native.machine_isas == expected
    if MUST_BE_THERE:  # a checkout may have fewer
        assert native.isas == expected
    assert set(native.isas) <= set(expected)
    assert native.isa == native.isas[-1]


@pytest.mark.skipif(
    platform.machine() != "x86_64" or not Path("/proc/cpuinfo").exists(),
    reason="windows and macos have no /proc/cpuinfo",
)
def test_every_feature_is_seen_as_the_system_sees_it() -> None:
    """Asked of the processor by the library itself: Clang up to 18 has no names for some."""
    command = [tool("c++"), "-std=c++17", f"-I{SOURCES}"]
    driver = compiled(command, SUPPORT / "features_driver.cpp", SOURCES / "runtime" / "cpu_features.cpp")
    names = (
        "fma f16c avx2 avx_vnni avx512f avx512dq avx512bw avx512vl avx512_vnni avx512_bf16 avx512vbmi "
        "amx_bf16 amx_tile amx_int8"
    )
    found = subprocess.run([driver, *names.split(), "x87"], check=True, capture_output=True, text=True).stdout
    assert set(found.split()) == set(names.split()) & cpu_flags()


@pytest.mark.parametrize("isa", ["generic", "avx2", "avxvnni", "avx512", "amx", "neon", "i8mm"])
def test_localrun_isa_forces_one(native: NativeLibrary, isa: str) -> None:
    code = "from localrun.backends.cpu.library import load_library; print(load_library().isa)"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "LOCALRUN_ISA": isa}, capture_output=True, text=True
    )
    if isa in native.isas:
        assert done.stdout.strip() == isa
    else:
        assert "UsageError" in done.stderr
        with pytest.raises(UsageError, match=isa):
            native.use_isa(isa)


def test_a_library_without_the_best_instruction_set_says_how_to_compile_it(
    native: NativeLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    cpu = BACKENDS["cpu"]
    monkeypatch.setattr(native, "machine_isas", native.isas)
    assert (cpu.note, cpu.degraded_reason()) == ("", "")
    monkeypatch.setattr(native, "machine_isas", (*native.isas, "avx9"))
    assert "ISA avx9" in cpu.note
    assert "`make native`" in cpu.note
    (problem,) = _backend(cpu)["problems"]
    assert problem == {"what": cpu.degraded_reason(), "hint": cpu.note}
    with pytest.raises(UsageError, match="compiled without ISA 'avx9'") as caught:
        native.use_isa("avx9")
    assert "`make native`" in caught.value.hint


def test_without_a_library_the_reason_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("localrun.backends.cpu.__path__", [str(tmp_path)])
    monkeypatch.setattr(library, "_load", library._load.__wrapped__)
    assert load_library() is None
    assert "without the native library" in why_no_library()
    assert "LOCALRUN_REQUIRE_NATIVE=1" in why_no_library()  # or a compiler that failed could not be told from none
    (tmp_path / library.FILE_NAME).write_bytes(b"not a library")
    assert load_library() is None
    assert "cannot be loaded" in why_no_library()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="windows has no nm")
def test_isa_units_share_no_symbol_with_each_other(tmp_path: Path) -> None:
    """A weak symbol compiled for AVX-512 could be the copy that every unit runs."""
    cmake = shutil.which("cmake", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert cmake, "cmake is part of the dev extra"
    source = REPOSITORY / "kernels" / "cpu"
    subprocess.run([cmake, "-S", source, "-B", tmp_path], check=True, capture_output=True)
    subprocess.run([cmake, "--build", tmp_path], check=True, capture_output=True)
    units = sorted(tmp_path.rglob("isa_*.o"))
    assert len(units) >= 2
    for unit in units:
        isa = unit.name.removeprefix("isa_").split(".")[0]
        symbols = subprocess.run(["nm", unit], check=True, capture_output=True, text=True).stdout.split("\n")
        defined = {line.split()[-1]: line.split()[-2] for line in symbols if len(line.split()) == 3}
        assert not [name for name, kind in defined.items() if kind in "WwVvu"], "weak symbols"
        exported = {name.lstrip("_") for name, kind in defined.items() if kind.isupper()}
        assert exported == {f"lr_kernels_{isa}"}
    rules = "".join(path.read_text() for path in tmp_path.rglob("*") if path.name in ("build.ninja", "flags.make"))
    assert "-ffp-contract=off" in rules
    assert not {"-ffast-math", "-Ofast", "-march=native"} & set(rules.split())
