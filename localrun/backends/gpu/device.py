"""The seam between steps and a GPU: kernels by name, and launches that are bound once and repeated every step.

Everything above it (buffers, arguments, grids, buckets of rows) runs in every test, on an emulated device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


class DeviceEvent(Protocol):
    """A place in the order of a device's work."""

    def record(self) -> None:
        """Put it after what the device was asked for so far in its steps."""
        ...

    def synchronize(self) -> None:
        """Return when the device has come to where it was put last; at once where it never was."""
        ...


class NoEvent:
    """In the place of an event, on a device whose work is done as soon as it was asked for."""

    def record(self) -> None:
        pass

    def synchronize(self) -> None:
        pass


class Device(Protocol):
    """A GPU or its emulator. has_graphs: whether `record` gives anything."""

    has_graphs: bool

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

    def event(self) -> DeviceEvent: ...
    def upload(self, source: Tensor, target: Tensor, n: int) -> None:
        """Copy the first n int32 numbers of main memory to the device, in the order of its steps.

        `source` must not change before an event after it.
        """
        ...

    def read(self, source: Tensor, target: Tensor, n: int) -> None:
        """Likewise the other way; `target` has them after an event that is recorded later."""
        ...

    def record(self, launches: Sequence[Launch]) -> Launch | None:
        """One launch in the place of these, in their order; None where the device has no graphs, or no room for one.

        Each has run before and is of a kernel: nothing else can be recorded. Addresses and numbers stay those that were
        bound; what lies there is read when it runs.
        """
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
