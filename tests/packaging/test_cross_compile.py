"""The native library compiled for every system that there is a wheel for, by the same recipe, and looked into."""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from localrun_testing import REPOSITORY, cross
from localrun_testing.cross import TARGETS
from localrun_testing.instruction_sets import SOURCES, tool, units_named
from localrun_testing.shared_objects import read

from localrun.backends.cpu.library import FILE_NAMES, load_library

NO_WHEEL = {"win_arm64"}
FORMATS = {"linux": "elf", "darwin": "macho", "win32": "pe"}
OF_THE_SYSTEM = re.compile(  # what it may need there: Linux's C library, macOS's, and Windows 10's
    r"lib(c|m|dl|pthread)\.so\.\d|ld-linux.*|/usr/lib/libSystem\.B\.dylib|KERNEL32\.dll|api-ms-win-crt-.*\.dll",
    re.IGNORECASE,
)
FAST_CORES = {"linux": b"", "darwin": b"_pthread_set_qos_class_self_np", "win32": b"SetThreadInformation"}  # how to ask
INSTRUCTIONS = {  # that only its unit has
    "avx2": r"vfmadd\d+ps.*%ymm",
    "avxvnni": r"\{vex\}\s*vpdpbusd",
    "avx512": r"vpdpbusd.*%zmm",
    "amx": r"\btdpb\w+",
    "neon": r"\bsdot\b",
    "i8mm": r"\bsmmla\b",
}
each_target = pytest.mark.parametrize(
    "tag", [pytest.param(tag, marks=pytest.mark.xdist_group(f"compiled for {tag}")) for tag in TARGETS]
)


def offered() -> set[str]:
    """The functions of the C ABI, from its headers."""
    text = "".join(path.read_text("utf-8") for path in SOURCES.rglob("*.h"))
    return set(re.findall(r"^LR_API [^(\n]*?(\w+)\(", text, re.MULTILINE))


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> "Builds":
    return Builds(tmp_path_factory.mktemp("cross"))


class Builds:
    """The folder with the library for each target, compiled when first asked for."""

    def __init__(self, folder: Path) -> None:
        self.of = cache(lambda tag: cross.build(folder / tag, TARGETS[tag]))

    def library(self, tag: str) -> Path:
        return self.of(tag) / FILE_NAMES[TARGETS[tag].platform]


def test_an_abi_is_read_from_headers_and_libraries_alike() -> None:
    loaded = load_library()
    if loaded is None:
        pytest.skip("no native library")
    assert len(offered()) > 30
    assert read(loaded.path).exports == offered()


def test_wheels_are_built_for_what_is_compiled_here() -> None:
    command = [sys.executable, "-m", "cibuildwheel", "--print-build-identifiers", str(REPOSITORY), "--platform"]
    named = [
        subprocess.run([*command, system], check=True, capture_output=True, text=True).stdout
        for system in ("linux", "macos", "windows")
    ]
    assert {name.partition("-")[2] for name in "".join(named).split()} == TARGETS.keys() - NO_WHEEL


@pytest.mark.slow
@each_target
def test_it_compiles_without_a_warning_and_offers_the_whole_abi(tag: str, builds: Builds) -> None:
    target, found = TARGETS[tag], read(builds.library(tag))
    assert [path.name for path in builds.of(tag).iterdir()] == [FILE_NAMES[target.platform]]
    assert (found.format, found.machine) == (
        FORMATS[target.platform],
        "aarch64" if "neon" in target.units else "x86_64",
    )
    assert {
        name for name in found.exports if not name.startswith("_")
    } == offered()  # the others are of zig's C++ library
    assert [name for name in found.needs if not OF_THE_SYSTEM.fullmatch(name)] == []
    assert FAST_CORES[target.platform] in builds.library(tag).read_bytes()


@pytest.mark.slow
@each_target
def test_no_unit_is_missing(tag: str, builds: Builds) -> None:
    target, objdump = TARGETS[tag], tool("llvm-objdump-16")
    command = [objdump, "-d", "--no-show-raw-insn", str(builds.library(tag))]
    code = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    there = {unit for unit, instruction in INSTRUCTIONS.items() if re.search(instruction, code)}
    assert there == set(target.units) - {"generic"}


@pytest.mark.slow
@pytest.mark.parametrize("built_for", ["arm64", "x86_64"])
def test_a_mac_builds_for_either_kind_of_macs(built_for: str, tmp_path: Path) -> None:
    """On the other kind: what CMake calls the processor of the system is that of the machine it runs on."""
    target = TARGETS[f"macosx_{built_for}"]
    other = "arm64" if built_for == "x86_64" else "x86_64"
    options = (f"-DCMAKE_SYSTEM_PROCESSOR={other}", f"-DCMAKE_OSX_ARCHITECTURES={built_for}")
    said = cross.configure(tmp_path, target, *options, "-DLOCALRUN_ISA_UNITS=machine")  # which is not the one at hand
    assert units_named(said) == target.units
