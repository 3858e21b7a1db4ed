"""Kernels to machine code with NVRTC, which needs neither a GPU nor a driver; what was compiled is kept on disk."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from localrun.base.errors import LocalrunError
from localrun.base.paths import writable_folder

_INSTALL = "pip install 'localrun[cuda]'"
_MOST_KEPT = 256 << 20  # bytes on disk


def why_no_compiler() -> str:
    """Why kernels cannot be compiled on this machine; empty where they can."""
    try:
        _program("", "nothing.cu", 80, {})
    except LocalrunError as error:
        return f"{error.message}; {error.hint}"
    return ""


def compile_kernels(text: str, name: str, arch: int, defines: Mapping[str, int], *, keep: bool = True) -> Any:
    """A file of kernels with its includes (`source`) for sm_`arch`: cuda-core's ObjectCode, its `code` the cubin.

    For a GPU that is newer than the compiler it is PTX, which the driver translates (`known_arch`).

    keep: look among what was compiled before, and add to it. LocalrunError where a part is missing, or with NVRTC's
    words when the text does not compile.
    """
    known = known_arch(arch)
    program = _program(text, name, known, defines)
    from cuda.core._utils.cuda_utils import NVRTCError

    try:
        return program.compile("cubin" if known == arch else "ptx", cache=_kept() if keep else None)
    except NVRTCError as error:
        raise LocalrunError(f"{name} does not compile for sm_{arch}: {error}", _INSTALL) from error


@cache
def known_arch(arch: int) -> int:
    """`arch`, or the newest before it that the compiler knows: its PTX runs on every later GPU."""
    try:
        from cuda.bindings import nvrtc

        _, known = nvrtc.nvrtcGetSupportedArchs()
    except (ImportError, RuntimeError):  # said by who compiles
        return arch
    return max((int(each) for each in known if each <= arch), default=arch)


def nvrtc_version() -> str:
    """Version of the compiler in use, such as 13.0."""
    from cuda.bindings import nvrtc

    _, major, minor = nvrtc.nvrtcVersion()
    return f"{major}.{minor}"


def _program(text: str, name: str, arch: int, defines: Mapping[str, int]) -> Any:
    try:
        from cuda.core import Program, ProgramOptions
    except ImportError as error:
        raise LocalrunError(f"CUDA kernels need the package cuda-core ({error})", _INSTALL) from error
    macros = [(macro, str(value)) for macro, value in sorted(defines.items())]
    # No contraction: a product and a sum are one operation only where the kernel says so, with every compiler.
    # Denormals, quotients and roots are as IEEE 754 has them: NVRTC's defaults, but bits hang on them.
    rounding = {"fma": False, "ftz": False, "prec_div": True, "prec_sqrt": True}
    options = ProgramOptions(arch=f"sm_{arch}", std="c++17", name=name, define_macro=macros or None, **rounding)
    try:
        return Program(text, "c++", options)
    except RuntimeError as error:  # DynamicLibNotFoundError
        first = str(error).partition("\n")[0]
        raise LocalrunError(f"CUDA kernels need the compiler NVRTC ({first})", _INSTALL) from error


@cache
def _kept() -> Any:
    """cuda-core's cache of programs in our own folder; None when nothing can be written there."""
    from cuda.core.utils import FileStreamProgramCache

    folder = writable_folder("cache")
    return FileStreamProgramCache(folder / "cuda", max_size_bytes=_MOST_KEPT) if folder else None
