"""Copies between main memory and a GPU, and events, asked of the driver: nothing of a step goes through torch."""

from __future__ import annotations

from typing import Any


def upload(source: int, target: int, n_bytes: int, stream: Any) -> None:
    """Copy main memory, which should be pinned, to the device, in the order of a cuda-core stream; by address."""
    from cuda.bindings import driver

    check(driver.cuMemcpyHtoDAsync(target, source, n_bytes, stream.handle))


def read(source: int, target: int, n_bytes: int, stream: Any) -> None:
    """Likewise the other way."""
    from cuda.bindings import driver

    check(driver.cuMemcpyDtoHAsync(target, source, n_bytes, stream.handle))


def check(result: tuple[Any, ...]) -> None:
    """Raise RuntimeError where the driver refuses."""
    if result[0]:
        raise RuntimeError(f"CUDA error: {result[0].name}")  # `lost_device` knows it by these words


class CudaEvent:
    """A place in the order of a stream."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.event: Any = None

    def record(self) -> None:
        if self.event is None:
            self.event = self.stream.record()
        else:
            self.stream.record(self.event)

    def synchronize(self) -> None:
        if self.event is not None:
            self.event.sync()
