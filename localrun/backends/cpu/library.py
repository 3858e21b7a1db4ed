"""The native CPU library: found beside this package, loaded once, its instruction set chosen here.

Calls go through ctypes, which releases the GIL. Without a compiler there is no library; the reference runs instead.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from pathlib import Path

import localrun.backends.cpu
from localrun.backends.cpu.abi_check import differences
from localrun.base.errors import UsageError
from localrun.base.settings import read_settings

ABI_VERSION = 26  # LR_ABI_VERSION of kernels/cpu/localrun_cpu.h
FILE_NAMES = {"win32": "localrun_cpu.dll", "darwin": "liblocalrun_cpu.dylib", "linux": "liblocalrun_cpu.so"}
FILE_NAME = FILE_NAMES.get(sys.platform, FILE_NAMES["linux"])
ZIG = 'Clang (`pip install ziglang`, and CXX="python -m ziglang c++" in the environment)'
COMPILE_ALL = "`make native` in the checkout compiles every instruction set"
COMPILER = ZIG if sys.platform == "win32" else "a C++17 compiler (GCC or Clang)"


class NativeLibrary:
    """A loaded library. `isas` are the instruction sets this machine runs, weakest first; `isa` is the one in use.

    `machine_isas` are those and what the library was compiled without (`LOCALRUN_ISA_UNITS` of kernels/cpu).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cdll = ctypes.CDLL(str(path))
        for name in ("lr_isas", "lr_machine_isas", "lr_isa", "lr_arithmetic"):
            getattr(self.cdll, name).restype = ctypes.c_char_p
        self.cdll.lr_use_isa.argtypes = (ctypes.c_char_p,)
        self.version: int = self.cdll.lr_version()
        self.isas: tuple[str, ...] = tuple(self.cdll.lr_isas().decode().split())
        self.machine_isas: tuple[str, ...] = tuple(self.cdll.lr_machine_isas().decode().split())

    @property
    def isa(self) -> str:
        """The instruction set in use."""
        return str(self.cdll.lr_isa().decode())

    @property
    def arithmetic(self) -> str:
        """How it rounds the activations of quantized weights: columns of a factor and of a scale."""
        return str(self.cdll.lr_arithmetic().decode())

    @property
    def best_isa(self) -> str:
        """The best instruction set of this machine, compiled or not."""
        return self.machine_isas[-1]

    def use_isa(self, name: str) -> None:
        """Use another instruction set from now on; UsageError when this machine or this library lacks it."""
        if not self.cdll.lr_use_isa(name.encode()):
            return
        if name in self.machine_isas:
            has = f"it has {', '.join(self.isas)}"
            raise UsageError(f"the native library was compiled without ISA {name!r}; {has}", COMPILE_ALL)
        raise UsageError(f"this machine cannot run ISA {name!r}", f"it runs {', '.join(self.isas)}")


def load_library() -> NativeLibrary | None:
    """The library, loaded at the first call with the ISA that LOCALRUN_ISA or config.toml asks for; else None."""
    loaded = _load()
    return loaded if isinstance(loaded, NativeLibrary) else None


def why_no_library() -> str:
    """Why `load_library` gives None, and what to do; empty when it does not."""
    loaded = _load()
    return loaded if isinstance(loaded, str) else ""


@cache
def _load() -> NativeLibrary | str:
    """The library, or the reason there is none."""
    again = f"reinstall localrun where {COMPILER} is present"
    for place in localrun.backends.cpu.__path__:
        path = Path(place) / FILE_NAME
        if not path.is_file():
            continue
        try:
            library = NativeLibrary(path)
        except (OSError, AttributeError) as error:
            return f"{path} cannot be loaded ({error}); {again}"
        if library.version != ABI_VERSION:
            return f"{path} has ABI {library.version} and this code needs {ABI_VERSION}; {again}"
        if wrong := differences(library.cdll):
            return f"{path} was built from other sources ({wrong[0]}); {again}"
        isa = read_settings().isa
        if isa:
            library.use_isa(isa)
        return library
    return (
        "this installation was built without the native library, because there was no compiler or it failed; "
        f"{again}, with LOCALRUN_REQUIRE_NATIVE=1 in the environment: then pip shows the compiler's error"
    )
