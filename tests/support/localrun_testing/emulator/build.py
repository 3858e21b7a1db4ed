"""Kernels as C++: the same text through g++, with kernels/emulator in the place of CUDA."""

from __future__ import annotations

import hashlib
import inspect
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

from localrun.base.errors import LocalrunError
from localrun.base.lock import locked
from localrun_testing import REPOSITORY
from localrun_testing.kept import FOLDER

Sanitizer: TypeAlias = Literal["", "address", "thread"]

RUNTIME = REPOSITORY / "kernels" / "emulator"
_COMPILE = ("g++", "-std=c++17", "-march=native", "-fPIC", "-w")
_KERNEL = ("-O2", "-ffp-contract=off")
_RUNTIME = ("-O3", "-mno-red-zone")  # fibers.cpp pushes below the stack pointer
_SANITIZE: Mapping[Sanitizer, tuple[str, ...]] = {
    "": (),
    "address": (
        "-g1",
        "-fsanitize=address,undefined",
        "-fsanitize-sections=lr_shared",
        "-fno-sanitize-recover=undefined",
    ),
    "thread": ("-g1", "-fsanitize=thread"),
}
_KERNEL_NAME = re.compile(r'extern "C" __global__\s+void\s+(\w+)\(')


class EmulatedFault(Exception):
    """A kernel did what a GPU forbids or leaves undefined; the message says what, and on which line."""


def compiled(
    text: str, defines: Mapping[str, int], sanitizer: Sanitizer, translate: Callable[[str], str] | None = None
) -> Path:
    """A library with the kernels of `text`, a file of kernels/cuda with its includes.

    translate: what makes C++ of the preprocessed text of another language, with an `entry` for each kernel. Libraries
    are kept by content, for every checkout and run; processes that need the same one at the same time wait for one.
    """
    macros = [f"-D{name}={value}" for name, value in sorted({**defines, "LR_EMULATED": 1}.items())]
    flags = (*_KERNEL, *macros, *_SANITIZE[sanitizer])
    translate = translate or _with_entries
    path = _kept("".join((text, *flags, inspect.getsource(sys.modules[translate.__module__]))), ".so")
    with locked(path.with_suffix(".lock")):
        if not path.exists():
            _compile(text, flags, translate, path)
    return path


def _compile(text: str, flags: tuple[str, ...], translate: Callable[[str], str], path: Path) -> None:
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        plain, entries = Path(scratch, "kernel.cu.cpp"), Path(scratch, "kernel.ii")
        plain.write_text(text)
        _run(*_COMPILE, *flags, f"-I{RUNTIME}", "-E", str(plain), "-o", str(entries))
        entries.write_text(translate(entries.read_text()))
        _run(*_COMPILE, *flags, "-shared", "-fpreprocessed", str(entries), str(_runtime()), "-o", f"{scratch}/done")
        os.replace(f"{scratch}/done", path)


def _with_entries(text: str) -> str:
    """Preprocessed kernels of CUDA as functions of the file, and for each what the host calls."""
    entries = "".join(entry(name, name) for name in _KERNEL_NAME.findall(text))
    return re.sub(r'extern "C" __global__', "static", text) + "\n" + entries


def entry(name: str, function: str) -> str:
    """C++ source through which the host calls `function` as kernel `name` and asks for its parameters."""
    return (
        f'extern "C" const char* emu_parameters_of_{name}(void) {{ return emu_parameters({function}); }}\n'
        f'extern "C" int emu_start_{name}(const uint32_t* grid, const uint32_t* block, uint32_t shared, '
        f"void** arguments) {{ return emu_start({function}, grid, block, shared, arguments); }}\n"
    )


@cache
def _runtime() -> Path:
    """The emulator, which all kernels of a process share: never sanitized, as it does what sanitizers forbid."""
    path = _kept("", ".so")
    with locked(path.with_suffix(".lock")):
        if not path.exists():
            with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
                files = map(str, sorted(RUNTIME.glob("*.cpp")))
                _run(*_COMPILE, *_RUNTIME, "-shared", *files, "-o", f"{scratch}/done")
                os.replace(f"{scratch}/done", path)
    return path


def _kept(content: str, ending: str) -> Path:
    """Where what is compiled from `content` by this compiler and emulator is kept."""
    runtime = "".join(path.read_text() for path in sorted(RUNTIME.iterdir()))
    digest = hashlib.sha256("\0".join((content, runtime, _compiler())).encode()).hexdigest()[:24]
    FOLDER.mkdir(mode=0o700, exist_ok=True)
    return FOLDER / f"{digest}{ending}"


@cache
def _compiler() -> str:
    """Compiler and target processor: both decide the compiled code."""
    return _run(*_COMPILE, "-v", "-E", "-x", "c++", os.devnull)


def _run(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        raise LocalrunError(f"emulated kernels need g++: {error}", "install it") from error
    if done.returncode:
        raise LocalrunError(f"the kernel does not compile:\n{done.stderr}", "the lines are those of the file named")
    return done.stdout + done.stderr
