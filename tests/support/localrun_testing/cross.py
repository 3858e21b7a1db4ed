"""The native library for systems that are not here, by `ziglang`: Clang, and the C libraries of every target."""

import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from . import REPOSITORY
from .instruction_sets import SOURCES, SUPPORT, tool


@dataclass(frozen=True)
class Target:
    """A system and a processor: the name zig has for them, and those that CMake has."""

    triple: str
    system: str
    processor: str
    units: tuple[str, ...]  # of the library there, weakest first

    @property
    def platform(self) -> str:
        """As in `sys.platform`."""
        return {"Darwin": "darwin", "Windows": "win32"}.get(self.system, "linux")


ARM, X86 = ("generic", "neon", "i8mm"), ("generic", "avx2", "avxvnni", "avx512")
TARGETS = {  # by the tags of wheels; the oldest systems that these are for
    "manylinux_x86_64": Target("x86_64-linux-gnu.2.28", "Linux", "x86_64", (*X86, "amx")),
    "manylinux_aarch64": Target("aarch64-linux-gnu.2.28", "Linux", "aarch64", ARM),
    "macosx_arm64": Target("aarch64-macos.11.0", "Darwin", "arm64", ARM),
    "macosx_x86_64": Target("x86_64-macos.11.0", "Darwin", "x86_64", X86),
    "win_amd64": Target("x86_64-windows-gnu", "Windows", "AMD64", X86),
    "win_arm64": Target("aarch64-windows-gnu", "Windows", "ARM64", ARM),
}

# zig names processors in words of its own: -march=armv8.2-a+dotprod+fp16 is its -mcpu=generic+v8_2a+dotprod+fullfp16.
_WRAPPER = """#!{python}
import os, sys

def word(option):
    if not option.startswith("-march=armv8.2-a"):
        return option
    return "-mcpu=generic+v8_2a" + option.removeprefix("-march=armv8.2-a").replace("fp16", "fullfp16")

os.environ.setdefault("ZIG_GLOBAL_CACHE_DIR", {cache!r})
os.environ["ZIG_LOCAL_CACHE_DIR"] = os.environ["ZIG_GLOBAL_CACHE_DIR"]
os.execv({zig!r}, [{zig!r}, "c++", "-target", {triple!r}, *map(word, sys.argv[1:])])
"""


def compiler(folder: Path, target: Target) -> Path:
    """A command in `folder` that compiles C++ for the target, with options as GCC and Clang have them."""
    found = find_spec("ziglang")
    if found is None or found.origin is None:
        pytest.skip("ziglang is not installed: it is part of the dev extra")
    wrapper = folder / f"c++-{target.triple}"
    zig, cache = Path(found.origin).parent / "zig", REPOSITORY / "build" / "zig"  # C libraries, compiled once
    wrapper.write_text(_WRAPPER.format(python=sys.executable, zig=str(zig), cache=str(cache), triple=target.triple))
    wrapper.chmod(0o755)
    return wrapper


def configure(folder: Path, target: Target, *options: str) -> str:
    """Have CMake write a build of the library for the target; gives what it said."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [tool("cmake"), "-S", str(SOURCES), "-B", str(folder / "build"), "-G", "Ninja", *options]
    command += [f"-DCMAKE_SYSTEM_NAME={target.system}", f"-DCMAKE_CXX_COMPILER={compiler(folder, target)}"]
    command += [f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}", "-DCMAKE_COMPILE_WARNING_AS_ERROR=ON"]
    if not any(option.startswith("-DCMAKE_SYSTEM_PROCESSOR") for option in options):
        command.append(f"-DCMAKE_SYSTEM_PROCESSOR={target.processor}")
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(folder: Path, target: Target) -> Path:
    """The folder with the library, as it comes into a wheel: by the project's recipe, and with no warning."""
    configure(folder, target)
    for command in (
        ["--build", str(folder / "build"), "-j2"],
        ["--install", str(folder / "build"), "--prefix", str(folder)],
    ):
        done = subprocess.run([tool("cmake"), *command], capture_output=True, text=True)
        assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return folder / "localrun" / "backends" / "cpu"


def emulated(folder: Path, target: Target, driver: str) -> list[str]:
    """The command that runs a driver of `SUPPORT` under qemu, on the library for Linux on Arm."""
    qemu, place = tool("qemu-aarch64", "qemu-aarch64-static"), build(folder, target)
    command = [str(compiler(folder, target)), "-std=c++17", "-O1", f"-I{SOURCES}", str(SUPPORT / driver)]
    link = ["-o", str(folder / "driver"), f"-L{place}", "-llocalrun_cpu", f"-Wl,-rpath,{place}"]
    subprocess.run(command + link, check=True)
    return [qemu, "-L", "/usr/aarch64-linux-gnu", str(folder / "driver")]
