"""Slabs of a file on their way to a GPU: while it copies and packs one, the next is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from localrun.ops.layouts import SLAB_BYTES

MOST_BYTES = 16 << 20  # of a slab: more would not make a load faster, for each takes a GPU a few milliseconds
WORKING_BYTES = 32  # that packing a byte of a slab takes beside it, at most (of IQ1; 7 of Q4_K)


class CopyEvent(Protocol):
    """A place in the order of a device's work, such as torch.cuda.Event."""

    def record(self) -> object: ...
    def synchronize(self) -> object: ...


class SlabCopies:
    """Copies slabs through two buffers in turn, each used again when the device has read it."""

    def __init__(
        self,
        buffer: Callable[[int], Tensor],
        copy: Callable[[Tensor], Tensor],
        event: Callable[[], CopyEvent],
    ) -> None:
        """buffer: uint8 [n] of main memory. copy: begins to copy that to the device. event: see CopyEvent."""
        self.buffer, self.copy, self.event = buffer, copy, event
        self.turns: list[tuple[Tensor, CopyEvent]] = []  # the one that was used last at the end

    def send(self, slab: np.ndarray) -> Tensor:
        """A slab, uint8 [rows, bytes], on the device, in the order of its work; `slab` may change at once."""
        staged, copied = self.next(slab.size)
        staged.numpy()[:] = slab.reshape(-1)
        found = self.copy(staged).view(*slab.shape)
        copied.record()
        return found

    def next(self, n: int) -> tuple[Tensor, CopyEvent]:
        """uint8 [n] of a buffer that nobody reads, and its event."""
        memory, copied = self.turns.pop(0) if len(self.turns) == 2 else (self.buffer(n), self.event())
        copied.synchronize()
        if len(memory) < n:
            memory = self.buffer(n)
        self.turns.append((memory, copied))
        return memory[:n], copied


def cuda_copies(device: torch.device) -> SlabCopies:
    """Through pinned memory, which a GPU reads by itself."""

    def pinned(n: int) -> Tensor:
        return torch.empty(n, dtype=torch.uint8, pin_memory=True)

    return SlabCopies(pinned, lambda staged: staged.to(device, non_blocking=True), torch.cuda.Event)


def slab_bytes(device: torch.device | None) -> int:
    """Bytes of a slab for a device: on a GPU as many as half of its free memory has room for while they are packed."""
    if device is None or device.type != "cuda":
        return SLAB_BYTES
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return slab_in(torch.cuda.mem_get_info(device)[0] + kept)


def slab_in(free: int) -> int:
    """Bytes of a slab where so many are free."""
    return min(MOST_BYTES, max(SLAB_BYTES, free // (2 * WORKING_BYTES)))
