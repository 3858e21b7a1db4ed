"""The seam between steps and a GPU: kernels by name, and launches that are bound once and repeated every step.

Everything above it (buffers, arguments, grids, buckets of rows) runs in every test, on an emulated device.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Dim: TypeAlias = tuple[int, int, int]
Argument: TypeAlias = "Tensor | int | float | None"  # a pointer, an int32, a float32, a null pointer
Launch: TypeAlias = Callable[[], None]  # asks for one kernel on the stream in use; it may not be done when this returns


class Kernel(Protocol):
    """A compiled kernel."""

    def bind(self, grid: Dim, block: Dim, *arguments: Argument, shared: int = 0) -> Launch:
        """A launch with these arguments, which it keeps alive; `shared` are bytes of dynamic shared memory.

        Grids of no block are launches that do nothing.
        """
        ...


class Device(Protocol):
    """A GPU or its emulator."""

    @property
    def torch_device(self) -> torch.device:
        """Where its tensors are."""
        ...

    @property
    def arch(self) -> int:
        """The generation that kernels are compiled for: 90 for sm_90, 7 for Apple7."""
        ...

    @property
    def ending(self) -> str:
        """Suffix of its kernel files, such as .cu, by which kernels for both platforms are found."""
        ...

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory that a block can have on every GPU of its generation or later."""
        ...

    @property
    def processors(self) -> int:
        """Streaming multiprocessors, or cores."""
        ...

    def steps(self) -> AbstractContextManager[None]:
        """Within it, this thread's launches and what torch is asked for on the device are done in one order."""
        ...

    def commit(self) -> None:
        """Have the device begin with what it was asked for, where it waits for more; does not wait."""
        ...

    def finish(self) -> None:
        """Return when all is done that was asked for in steps."""
        ...

    def kernel(self, file: str, name: str, **defines: int) -> Kernel:
        """Kernel `name` of `file`, compiled with these macros; the same one when it is asked for again."""
        ...
