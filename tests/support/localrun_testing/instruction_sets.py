"""The instruction sets that tests can run here: those of the machine, and AMX by a model of its instructions."""

import hashlib
import itertools
import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from localrun.backends.cpu.library import FILE_NAME, NativeLibrary, load_library, why_no_library
from localrun.base.lock import locked

from . import REPOSITORY
from .kept import kept

SOURCES = REPOSITORY / "kernels" / "cpu"
SUPPORT = REPOSITORY / "tests" / "support"
MODEL_FLAGS = f"-DLR_AMX_MODEL -I{SUPPORT}"  # of every file; the unit's own are those of its vectors
VECTORS = "avx512"  # what the model computes with: narrower ones do not multiply both signed bytes of a code
EMULATED = ("neon", "i8mm")


def tool(*names: str) -> str:
    """The path of a program that a test needs, by the first of its names that is there."""
    path = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
    found = next(filter(None, (shutil.which(name, path=path) for name in names)), None)
    if not found:
        pytest.skip(f"{names[0]} is not installed")
    return found


def native() -> tuple[str, ...]:
    """What this machine runs, weakest first."""
    loaded = load_library()
    return loaded.isas if loaded else ()


def models_amx() -> bool:
    """Whether tests of AMX run by the model here: the machine has no AMX, but the vectors beside it."""
    return sys.platform == "linux" and "amx" not in native() and VECTORS in native()


def is_modelled(isa: str) -> bool:
    return isa not in native() and models_amx()


def codes_16_bits(isa: str) -> bool:
    """Whether this instruction set keeps keys and values of 16 bits as codes with a scale, not as floats."""
    return isa in ("avx2", "avxvnni")


def all_here() -> tuple[str, ...]:
    """Every instruction set that tests run on here, for parametrising them."""
    return (*native(), "amx") if models_amx() else native()


def pairwise(**options: Sequence[object]) -> pytest.MarkDecorator:
    """Parametrise by instruction set and options: all combinations on the best set, every value of each on the others.

    There the k-th values of all options meet; shorter lists begin again, and each set turns them differently.
    """
    best = {*all_here()[-1:], *native()[-1:]}  # AMX by a model, too
    lists = list(options.values())
    cases: list[tuple[object, ...]] = []
    for turn, isa in enumerate(all_here() or ("generic",)):
        if isa in best:
            cases += [(isa, *values) for values in itertools.product(*lists)]
        else:
            places = range(max(map(len, lists)))
            cases += [(isa, *(x[(k + turn * nth) % len(x)] for nth, x in enumerate(lists))) for k in places]
    return pytest.mark.parametrize(("isa", *options), cases, indirect=["isa"])


def said() -> str:
    """One line about who ran what."""
    parts = [f"{', '.join(native()) or 'none'} natively"]
    if models_amx():
        parts.append(f"amx by a model of its tiles on {VECTORS}")
    if emulated := [isa for isa in EMULATED if isa not in native()]:
        parts.append(f"{', '.join(emulated)} by qemu-user in the slow tests")
    return f"instruction sets: {'; '.join(parts)}"


def units_named(said: str) -> tuple[str, ...]:
    """The instruction sets that CMake says a build has."""
    (line,) = (line for line in said.splitlines() if line.startswith("-- instruction sets: "))
    return tuple(line.rpartition(" ")[2].split(";"))


def build(folder: Path, units: str, *options: str, flags: str = "", optimize: str = "-O1") -> Path:
    """A library of these units in `folder`; what has not changed is not compiled again."""
    cmake = tool("cmake")
    flag_options = f"-DCMAKE_CXX_FLAGS={flags}", f"-DCMAKE_CXX_FLAGS_RELEASE={optimize}"
    where = ["-S", str(SOURCES), "-B", str(folder)]
    for command in (
        [*where, f"-DLOCALRUN_ISA_UNITS={units}", *flag_options, *options],
        ["--build", str(folder), "-j2"],
    ):
        done = subprocess.run([cmake, *command], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder / FILE_NAME


def emulated(folder: Path, units: str, driver: str) -> list[str]:
    """The command that runs a driver of `SUPPORT` under qemu, on a library of these units of Arm."""
    compiler, qemu = tool("aarch64-linux-gnu-g++"), tool("qemu-aarch64", "qemu-aarch64-static")
    target = ("-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64", f"-DCMAKE_CXX_COMPILER={compiler}")
    build(folder, units, *target, optimize="-O3")
    command = [compiler, "-std=c++17", "-ffp-contract=off", f"-I{SOURCES}", str(SUPPORT / driver)]
    link = ["-o", str(folder / "driver"), f"-L{folder}", "-llocalrun_cpu", f"-Wl,-rpath,{folder}"]
    subprocess.run(command + link, check=True)
    return [qemu, "-L", "/usr/aarch64-linux-gnu", str(folder / "driver")]


def unit_command(isa: str) -> list[str]:
    """The compiler with the options of the unit of `isa`, without its files: as CMake writes them down."""
    model = (f"-DCMAKE_CXX_FLAGS={MODEL_FLAGS}",) if is_modelled(isa) else ()
    options = [f"-DLOCALRUN_ISA_UNITS={isa}", f"-DCMAKE_CXX_COMPILER={tool('c++')}", *model]
    command = [tool("cmake"), "-S", str(SOURCES), "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", *options]

    def configure(path: Path) -> None:
        with TemporaryDirectory() as folder:
            subprocess.run([*command, "-B", folder], check=True, capture_output=True)
            shutil.copy(Path(folder, "compile_commands.json"), path)

    recipes = [path.read_text("utf-8") for path in sorted(SOURCES.rglob("CMakeLists.txt"))]
    entries = json.loads(kept(configure, command, recipes, _version(tool("c++"))).read_text("utf-8"))
    (found,) = (entry["command"] for entry in entries if Path(entry["file"]).name == f"isa_{isa}.cpp")
    words: list[str] = shlex.split(found)
    return words[: words.index("-o")]


@cache
def _headers() -> list[str]:
    """All that files beside the kernels may include."""
    return [path.read_text("utf-8") for path in sorted(SOURCES.rglob("*.*")) if path.suffix in (".h", ".inc", ".cpp")]


@cache
def _version(compiler: str) -> str:
    return subprocess.run([compiler, "--version"], check=True, capture_output=True, text=True).stdout


def compiled(command: Sequence[str], *files: Path, link: Sequence[str] = ()) -> Path:
    """What this command of a compiler makes of these files, kept by all that they may include."""

    def make(path: Path) -> None:
        subprocess.run([*command, *map(str, files), *link, "-o", str(path)], check=True)

    texts = [path.read_text("utf-8") for path in (*files, *sorted(SUPPORT.glob("*.h")))]
    return kept(make, command, link, texts, _headers(), _version(command[0]))


@cache
def amx_model() -> NativeLibrary:
    """A library whose only unit is AMX, by the model. Built once a checkout; workers wait for each other."""
    name = hashlib.sha256(f"{SOURCES} {MODEL_FLAGS}".encode()).hexdigest()[:12]
    folder = REPOSITORY / "build" / f"amx-model-{name}"
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / "lock"):
        return NativeLibrary(build(folder, "amx", flags=MODEL_FLAGS))


_in_use: list[NativeLibrary] = []


def library_in_use() -> NativeLibrary:
    """The library that `using` has chosen, or the one that localrun loads; skips where there is none."""
    if _in_use:
        return _in_use[-1]
    loaded = load_library()
    if loaded is None:
        pytest.skip(f"no native library: {why_no_library()}")
    return loaded


@contextmanager
def using(isa: str) -> Iterator[NativeLibrary]:
    """The library that runs `isa`, with it in use."""
    library = amx_model() if is_modelled(isa) else library_in_use()
    before = library.isa
    library.use_isa(isa)
    _in_use.append(library)
    try:
        yield library
    finally:
        _in_use.pop()
        library.use_isa(before)
