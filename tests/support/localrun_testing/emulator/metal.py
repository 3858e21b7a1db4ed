"""The twin of torch.mps.compile_shader: the same calls, for kernels that g++ compiles and tensors of main memory."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from localrun.base.errors import LocalrunError
from localrun_testing.emulator.build import EmulatedFault, Sanitizer, compiled
from localrun_testing.emulator.msl import cpp_of

if TYPE_CHECKING:
    from torch import Tensor

    from localrun.backends.metal.device import MetalDevice

GridSize: TypeAlias = "int | Sequence[int]"
MOST_THREADS = 1024  # of a threadgroup
# What an integer is set as, by letters of the struct module; torch has no uint32, and an int32 has the same bits.
_INTEGERS: dict[str, type[ctypes.c_int32 | ctypes.c_int64]] = {"i": ctypes.c_int32, "q": ctypes.c_int64}


class EmulatedShader:
    """One kernel, called as torch calls it."""

    thread_execution_width = 32

    def __init__(self, compiler: EmulatedCompiler, library: ctypes.CDLL, name: str) -> None:
        self.compiler = compiler
        self.library = library
        self.name = name
        self.start = getattr(library, f"emu_start_{name}")
        self.max_threads_per_threadgroup: int = ctypes.c_int.in_dll(library, f"emu_most_threads_of_{name}").value
        parameters = getattr(library, f"emu_parameters_of_{name}")
        parameters.restype = library.emu_error.restype = ctypes.c_char_p
        self.parameters: str = parameters().decode()  # a letter each: p (a pointer), else of the struct module

    def __call__(
        self,
        *args: Tensor | int | float | None,
        threads: GridSize | None = None,
        group_size: GridSize | None = None,
        arg_casts: str | dict[int, str] | None = None,
    ) -> None:
        """Runs it on `threads` threads, in threadgroups of `group_size`.

        ValueError and RuntimeError for what torch refuses; EmulatedFault for what a GPU would take and get wrong.
        """
        grid, block = self._groups(args, threads, group_size)
        n_read = len(self.parameters)
        if len(args) != n_read and not (
            len(args) == n_read + 1 and isinstance(args[-1], int)
        ):  # `given`, not asked for
            raise EmulatedFault(f"{self.name} reads {n_read} buffers, but {len(args)} are bound")
        values = [self._value(place, argument, arg_casts) for place, argument in enumerate(args[:n_read])]
        pointers = (ctypes.c_void_p * max(1, len(values)))(*[ctypes.addressof(value) for value in values])
        self.library.emu_schedule(ctypes.c_uint32(self.compiler.seed), ctypes.c_uint8(self.compiler.poison))
        dims = [(ctypes.c_uint32 * 3)(*dim) for dim in (grid, block)]
        if self.start(dims[0], dims[1], ctypes.c_uint32(0), pointers):
            raise EmulatedFault(f"{self.name}: {self.library.emu_error().decode()}")

    def _groups(
        self, args: Sequence[Tensor | int | float | None], threads: GridSize | None, group_size: GridSize | None
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """How many threadgroups, and of how many threads, in three dimensions."""
        import torch

        if threads is None:
            first = next((argument for argument in args if isinstance(argument, torch.Tensor)), None)
            if first is None:
                raise RuntimeError("Number of threads is undefined or has wrong dimension")
            threads = first.numel()
        total = _dimensions(threads)
        if not 1 <= len(total) <= 3:
            raise RuntimeError("Number of threads is undefined or has wrong dimension")
        group = _dimensions(group_size) if group_size is not None else (MOST_THREADS, 1, 1)[: len(total)]
        if len(group) != len(total):
            raise RuntimeError("threads and group_size must have the same number of dimensions")
        if math.prod(group) > self.max_threads_per_threadgroup:
            raise ValueError(f"Threadgroup size exceeds {self.max_threads_per_threadgroup} limit")
        if group_size is None and len(total) == 1:
            group = (min(group[0], total[0]),)
        if any(part < 1 for part in group) or any(n % part for n, part in zip(total, group, strict=True)):
            raise EmulatedFault(f"{self.name}: {total} threads are not whole threadgroups of {group}")
        if math.prod(group) % 32 and math.prod(total) != math.prod(group):
            raise EmulatedFault(f"{self.name}: threadgroups of {group} threads are not whole simdgroups")
        grid = tuple(n // part for n, part in zip(total, group, strict=True))
        return (*grid, 1, 1)[:3], (*group, 1, 1)[:3]

    def _value(
        self, place: int, argument: Tensor | int | float | None, arg_casts: str | dict[int, str] | None
    ) -> ctypes.c_void_p | ctypes.c_int32 | ctypes.c_int64 | ctypes.c_float:
        """The bound value: an address, or a number of as many bytes as torch would set."""
        import torch

        wanted, where = self.parameters[place], f"argument {place} of {self.name}"
        if isinstance(argument, torch.Tensor):
            if argument.device.type != "cpu":
                raise RuntimeError(f"{where} is a tensor on {argument.device}")
            if wanted != "p":
                raise EmulatedFault(f"{where} is a tensor, but the kernel reads a number")
            return ctypes.c_void_p(argument.data_ptr())
        if not isinstance(argument, int | float):
            raise RuntimeError(f"{where} is a {type(argument).__name__}, which torch does not pass")
        cast = arg_casts.get(place) if isinstance(arg_casts, dict) else arg_casts
        if cast not in (None, "int32"):
            raise NotImplementedError(f"{where}: {cast} is not emulated")
        letter = "f" if isinstance(argument, float) else "q" if cast is None else "i"
        if letter != wanted.lower():
            raise EmulatedFault(f"{where} is set as {letter!r} (of the struct module), but the kernel reads {wanted!r}")
        return ctypes.c_float(argument) if isinstance(argument, float) else _INTEGERS[letter](argument)


class EmulatedLibrary:
    """The kernels of one text, as attributes."""

    def __init__(self, compiler: EmulatedCompiler, text: str) -> None:
        self._compiler = compiler
        self._library = ctypes.CDLL(str(compiled(text, {}, compiler.sanitizer, cpp_of)))

    def __getattr__(self, name: str) -> EmulatedShader:
        try:
            return EmulatedShader(self._compiler, self._library, name)
        except AttributeError:
            raise RuntimeError(f"Failed to create function state object for: {name}") from None


class EmulatedCompiler:
    """Emulator of torch's compile_shader; see EmulatedDevice for where and how carefully kernels run."""

    def __init__(self, *, sanitizer: Sanitizer = "", seed: int = 0, poison: int = 0xFF) -> None:
        self.sanitizer: Sanitizer = sanitizer
        self.seed = seed
        self.poison = poison

    def compile_shader(self, source: str) -> EmulatedLibrary:
        """SyntaxError with the compiler's words when it does not compile, or is not ASCII."""
        if not source.isascii():
            raise SyntaxError("the text of a shader is not ASCII")
        try:
            return EmulatedLibrary(self, source)
        except LocalrunError as error:
            raise SyntaxError(str(error)) from error


def emulated_device(
    family: int = 7,
    *,
    sanitizer: Sanitizer = "",
    seed: int = 0,
    poison: int = 0xFF,
    replace: Mapping[str, str] | None = None,
) -> MetalDevice:
    """A Metal device that computes on the CPU; see EmulatedDevice for sanitizer, seed, poison and replace."""
    from localrun.backends.metal.device import MetalDevice

    compiler = EmulatedCompiler(sanitizer=sanitizer, seed=seed, poison=poison)
    return MetalDevice(compiler.compile_shader, "cpu", family, replace=replace)


def _dimensions(size: GridSize) -> tuple[int, ...]:
    return (size,) if isinstance(size, int) else tuple(size)
