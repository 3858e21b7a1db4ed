"""Kernels compiled as C++ and run on the CPU, on tensors of main memory: how they are proven where there is no GPU."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from localrun.backends.cuda.limits import shared_bytes
from localrun.backends.cuda.source import ENDING, source, with_includes
from localrun.backends.gpu.arguments import NAMES, check_launch, letter
from localrun.backends.gpu.device import NoEvent
from localrun.base.errors import LocalrunError
from localrun_testing.emulator.build import EmulatedFault, Sanitizer, compiled

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from localrun.backends.gpu.device import Argument, Dim, Launch


class EmulatedKernel:
    """One kernel of a loaded library."""

    def __init__(self, device: EmulatedDevice, name: str, library: ctypes.CDLL) -> None:
        self.device = device
        self.name = name
        self.library = library
        try:
            self.start = getattr(library, f"emu_start_{name}")
        except AttributeError:
            raise LocalrunError(f"no kernel {name}", "its file has none of that name") from None
        parameters = getattr(library, f"emu_parameters_of_{name}")
        parameters.restype = library.emu_error.restype = ctypes.c_char_p
        self.parameters: str = parameters().decode()  # a letter each: p (a pointer), i (an int), f (a float)

    def bind(self, grid: Dim, block: Dim, *arguments: Argument, shared: int = 0) -> Launch:
        """A launch that has run when it returns; EmulatedFault when the kernel is at fault.

        ValueError where arguments are not what the kernel takes.
        """
        if shared > self.device.shared_bytes:
            raise ValueError(f"{self.name}: {shared} bytes of shared memory are more than every such GPU has")
        check_launch(self.name, grid, block)
        if len(arguments) != len(self.parameters):
            raise ValueError(f"{self.name} takes {len(self.parameters)} arguments, not {len(arguments)}")
        values = [
            _value(argument, wanted, f"argument {place} of {self.name}")
            for place, (argument, wanted) in enumerate(zip(arguments, self.parameters, strict=True))
        ]
        pointers = (ctypes.c_void_p * max(1, len(values)))(*[ctypes.addressof(value) for value in values])
        dims = [(ctypes.c_uint32 * 3)(*dim) for dim in (grid, block)]
        device = self.device

        def launch(keep: object = (arguments, values)) -> None:
            self.library.emu_schedule(ctypes.c_uint32(device.seed), ctypes.c_uint8(device.poison))
            self.library.emu_tensor_cores(ctypes.c_int(-1 if device.extra_bits is None else device.extra_bits))
            if self.start(dims[0], dims[1], ctypes.c_uint32(shared), pointers):
                raise EmulatedFault(f"{self.name}: {self.library.emu_error().decode()}")

        return launch


class EmulatedDevice:
    """A device that computes on the CPU, one thread of a block at a time.

    arch: what it says it is; 75 takes Turing's instructions. seed, poison: in which order threads run (0 as they are
    numbered, 1 backwards, else shuffled), and the byte that shared memory is filled with before a block starts.
    extra_bits: 0, 1 or 2 that tensor cores keep below the last of float32 while they add products of floats, and then
    cut off, as GPUs do (kernels/emulator/warp.cpp); None: every sum is rounded to nearest.
    replace: texts of files other than those of kernels/cuda. sanitizer: its runtime must be in LD_PRELOAD.
    """

    ending = ENDING
    has_graphs = True

    def __init__(
        self,
        arch: int = 80,
        processors: int = 4,
        *,
        sanitizer: Sanitizer = "",
        seed: int = 0,
        poison: int = 0xFF,
        extra_bits: int | None = None,
        replace: Mapping[str, str] | None = None,
    ) -> None:
        self.arch = arch
        self.shared_bytes = shared_bytes(arch)
        self.processors = processors
        self.sanitizer = sanitizer
        self.seed = seed
        self.poison = poison
        self.extra_bits = extra_bits
        self.replace = replace or {}
        self._kernels: dict[object, EmulatedKernel] = {}

    @property
    def torch_device(self) -> torch.device:
        import torch

        return torch.device("cpu")

    def steps(self) -> AbstractContextManager[None]:
        return nullcontext()  # every launch has run when it returns

    def event(self) -> NoEvent:
        return NoEvent()

    def upload(self, source: Tensor, target: Tensor, n: int) -> None:
        target.view(-1)[:n] = source.view(-1)[:n]

    def read(self, source: Tensor, target: Tensor, n: int) -> None:
        target.view(-1)[:n] = source.view(-1)[:n]

    def record(self, launches: Sequence[Launch]) -> Launch:
        """All of them, at the addresses they were bound to."""
        every = tuple(launches)

        def run() -> None:
            for launch in every:
                launch()

        return run

    def commit(self) -> None:
        pass

    def finish(self) -> None:
        pass

    def kernel(self, file: str, name: str, **defines: int) -> EmulatedKernel:
        """Kernel `name` of `file`; LocalrunError with the compiler's words when it does not compile."""
        key = (file, name, *sorted(defines.items()))
        if key not in self._kernels:
            text = with_includes(file, self.replace) if self.replace else source(file)
            path = compiled(text, {**defines, "LR_ARCH": self.arch}, self.sanitizer)
            self._kernels[key] = EmulatedKernel(self, name, ctypes.CDLL(str(path)))
        return self._kernels[key]

    def bf16_product(self, a: Tensor, b: Tensor, out: Tensor) -> Launch:
        """Torch's in float32, in which products of bf16 numbers are exact."""
        return lambda: void(out.copy_(a.float() @ b.float().T))


def emulated_device() -> EmulatedDevice:
    """The device of `--backend cuda` where it is emulated."""
    return EmulatedDevice()


def void(_: object) -> None:
    return None


def _value(argument: Argument, wanted: str, where: str) -> ctypes.c_void_p | ctypes.c_int32 | ctypes.c_float:
    """The ctypes value for a parameter of that letter."""
    given = letter(argument, "cpu", where)
    if given != wanted:
        raise ValueError(f"{where} is {NAMES[given]}, but the kernel takes {NAMES[wanted]}")
    if isinstance(argument, float):
        return ctypes.c_float(argument)
    if isinstance(argument, int):
        return ctypes.c_int32(argument)
    return ctypes.c_void_p(None if argument is None else argument.data_ptr())
