"""The native CPU library: found beside this package, loaded once, its instruction set chosen here.

Calls go through ctypes, which releases the GIL. Without a compiler there is no library; the reference runs instead.
"""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import localrun.backends.cpu
from localrun.base.errors import UsageError
from localrun.base.settings import read_settings

if TYPE_CHECKING:
    from torch import Tensor

ABI_VERSION = 6  # LR_ABI_VERSION of kernels/cpu/localrun_cpu.h
FILE_NAME = {"win32": "localrun_cpu.dll", "darwin": "liblocalrun_cpu.dylib"}.get(sys.platform, "liblocalrun_cpu.so")


@dataclass(frozen=True, slots=True)
class LogitsStats:
    """Of one row of logits: log(sum(exp(x * inv_temp))), the largest logit and its id (the lowest among equals).

    Not `finite` (a NaN, +inf, or nothing but -inf): the other three mean nothing. A single -inf is a token ruled out.
    """

    logsumexp: float
    max: float
    argmax: int
    finite: bool


class _LogitsStats(ctypes.Structure):
    _fields_ = (
        ("logsumexp", ctypes.c_double),
        ("max", ctypes.c_float),
        ("argmax", ctypes.c_int32),
        ("finite", ctypes.c_int32),
    )


class NativeLibrary:
    """A loaded library. `isas` are the instruction sets this machine runs, weakest first; `isa` is the one in use."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cdll = ctypes.CDLL(str(path))
        self.cdll.lr_isas.restype = self.cdll.lr_isa.restype = ctypes.c_char_p
        self.cdll.lr_use_isa.argtypes = (ctypes.c_char_p,)
        self.cdll.lr_logits_stats.argtypes = (
            ctypes.c_void_p,
            ctypes.c_int64,
            ctypes.c_float,
            ctypes.POINTER(_LogitsStats),
        )
        self.version: int = self.cdll.lr_version()
        self.isas: tuple[str, ...] = tuple(self.cdll.lr_isas().decode().split())

    @property
    def isa(self) -> str:
        """The instruction set in use."""
        return str(self.cdll.lr_isa().decode())

    def use_isa(self, name: str) -> None:
        """Use another instruction set from now on; UsageError when this machine lacks it."""
        if self.cdll.lr_use_isa(name.encode()):
            raise UsageError(f"this machine cannot run ISA {name!r}", f"it runs {', '.join(self.isas)}")

    def logits_stats(self, row: Tensor, inv_temp: float = 1.0) -> LogitsStats:
        """Statistics of `row` (float32 on the CPU, contiguous, [vocab]) at temperature 1 / inv_temp."""
        import torch

        if row.dtype != torch.float32 or row.device.type != "cpu" or row.dim() != 1 or not row.is_contiguous():
            raise ValueError(f"a contiguous float32 row on the CPU is needed, not {row.dtype} {tuple(row.shape)}")
        out = _LogitsStats()
        if self.cdll.lr_logits_stats(row.data_ptr(), row.numel(), inv_temp, ctypes.byref(out)):
            raise ValueError(f"cannot take statistics of {row.numel()} logits with inv_temp {inv_temp}")
        return LogitsStats(out.logsumexp, out.max, out.argmax, bool(out.finite))


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
    again = "reinstall localrun where a C++17 compiler (GCC or Clang) is present"
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
        isa = read_settings().isa
        if isa:
            library.use_isa(isa)
        return library
    return (
        "this installation was built without the native library, because there was no compiler or it failed; "
        f"{again}, with LOCALRUN_REQUIRE_NATIVE=1 in the environment: then pip shows the compiler's error"
    )
