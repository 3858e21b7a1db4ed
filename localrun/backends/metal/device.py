"""An Apple GPU behind the seam of steps: torch compiles the kernels and owns memory and the queue.

What compiles is a parameter, so the same lines run on a Mac and, with a twin of torch's compile_shader, in every test.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from localrun.backends.gpu.arguments import letter
from localrun.backends.gpu.device import NoEvent
from localrun.backends.metal.source import text_of

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from localrun.backends.gpu.device import Argument, DeviceEvent, Dim, Launch

Compile: TypeAlias = Callable[[str], Any]  # torch.mps.compile_shader: a text, a library with kernels for attributes
MOST_THREADS = 1024  # of a threadgroup, on every Apple GPU
MOST_ARGUMENTS = 30  # Metal has places for 31 buffers; the last is `given`


class MetalKernel:
    """A compiled kernel."""

    def __init__(self, device: MetalDevice, name: str, shader: Callable[..., None]) -> None:
        self.device = device
        self.name = name
        self.shader = shader

    def bind(self, grid: Dim, block: Dim, *arguments: Argument, shared: int = 0) -> Launch:
        """A launch of `grid` threadgroups of `block` threads, whole simdgroups; it keeps the arguments alive.

        Tensors and None become buffers, an int a `constant int&`, a float a `constant float&`. After the last one
        follows `constant uint& given`: bit i is set where argument i is not None. ValueError for what does not fit.
        """
        if math.prod(block) > MOST_THREADS or math.prod(block) % 32 or not math.prod(block):
            raise ValueError(f"{self.name}: a threadgroup has 32, 64 … {MOST_THREADS} threads, not {block}")
        most = getattr(self.shader, "max_threads_per_threadgroup", MOST_THREADS)
        if math.prod(block) > most:  # registers decide, of kernels without LR_THREADS
            raise ValueError(f"{self.name}: this GPU runs at most {most} threads of it in a threadgroup, not {block}")
        if (width := getattr(self.shader, "thread_execution_width", 32)) != 32:
            raise ValueError(f"{self.name}: a simdgroup has {width} threads on this GPU, where kernels count on 32")
        if shared:
            raise ValueError(f"{self.name}: Metal kernels declare the threadgroup memory they use")
        if len(arguments) > MOST_ARGUMENTS:
            raise ValueError(f"{self.name}: {len(arguments)} arguments are more than {MOST_ARGUMENTS}")
        device_type, given = self.device.torch_device.type, 0
        values: list[object] = []
        casts: dict[int, str] = {}
        for place, argument in enumerate(arguments):
            kind = letter(argument, device_type, f"argument {place} of {self.name}")
            given |= (argument is not None) << place
            values.append(self.device.nothing if argument is None else argument)
            if kind == "i":
                casts[place] = "int32"  # torch passes an int64 otherwise
        if not math.prod(grid):
            return _nothing
        casts[len(values)] = "int32"
        threads = tuple(n * part for n, part in zip(grid, block, strict=True))
        return partial(self.shader, *values, given, threads=threads, group_size=block, arg_casts=casts)


class MetalDevice:
    """An Apple GPU or its emulator.

    compile_shader: torch's, or its twin. torch_device: where tensors are.

    family: of Apple GPUs, which kernels see as LR_FAMILY: 7 (M1), 8 (M2), 9 (M3, M4), 10 (M5). processors: its cores.
    replace: texts of files other than those of kernels/metal.
    """

    ending = ".metal"
    shared_bytes = 32 << 10
    has_graphs = False  # torch encodes every launch anew

    def __init__(
        self,
        compile_shader: Compile,
        torch_device: str = "mps",
        family: int = 7,
        processors: int = 8,
        *,
        replace: Mapping[str, str] | None = None,
    ) -> None:
        import torch

        self.torch_device: torch.device = torch.device(torch_device)
        self.arch = family
        self.processors = processors
        self.exact_matrices = False  # until a self-test has found that products of 8 x 8 matrices are chains of fma
        self.nothing = torch.zeros(4, device=self.torch_device)  # bound in place of a missing tensor
        self._event: DeviceEvent | None = None
        self._compile = compile_shader
        self._replace = replace or {}
        self._libraries: dict[str, Any] = {}  # by text
        self._kernels: dict[object, MetalKernel] = {}

    def steps(self) -> AbstractContextManager[None]:
        return nullcontext()  # torch has one queue for all threads

    def event(self) -> DeviceEvent:
        import torch

        if self.torch_device.type != "mps":
            return NoEvent()
        event: DeviceEvent = torch.mps.Event()
        return event

    def upload(self, source: Tensor, target: Tensor, n: int) -> None:
        target.view(-1)[:n].copy_(source.view(-1)[:n], non_blocking=True)

    def read(self, source: Tensor, target: Tensor, n: int) -> None:
        target.view(-1)[:n].copy_(source.view(-1)[:n])  # waits: torch promises no address that stays

    def record(self, launches: Sequence[Launch]) -> None:
        return None

    def commit(self) -> None:
        self._event = self._event or self.event()
        self._event.record()  # commits what has been encoded, which otherwise waits for the step's end

    def finish(self) -> None:
        if self.torch_device.type == "mps":
            import torch

            torch.mps.synchronize()

    def kernel(self, file: str, name: str, **defines: int) -> MetalKernel:
        """Kernel `name` of kernels/metal/`file`, compiled with these macros; the same one when it is asked for again.

        SyntaxError with the compiler's words when it does not compile.
        """
        key = (file, name, *sorted(defines.items()))
        if key not in self._kernels:
            text = text_of(file, {**defines, "LR_FAMILY": self.arch}, self._replace)
            if text not in self._libraries:
                self._libraries[text] = self._compile(text)
            self._kernels[key] = MetalKernel(self, name, getattr(self._libraries[text], name))
        return self._kernels[key]


def _nothing() -> None:
    """A launch of no threadgroup."""
