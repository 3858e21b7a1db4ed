"""Memory of a device beside the main memory it is filled from, which nobody waits for."""

from __future__ import annotations

from typing import Protocol

import torch


class DeviceEvent(Protocol):
    """A place in the order of a device's work; torch's."""

    def record(self) -> None: ...
    def synchronize(self) -> None: ...


class Staging:
    """int32 [n] in main memory and on a device; both keep their addresses."""

    def __init__(self, n: int, device: torch.device) -> None:
        self.on_device = torch.zeros(n, dtype=torch.int32, device=device)
        self.staged = torch.zeros(n, dtype=torch.int32, pin_memory=device.type == "cuda")
        self.copied = event_of(device)
        self.is_under_way = False

    def wait(self) -> None:
        """Return when `staged` may change: it may be on its way for a step that was cut short, which nobody read."""
        if self.is_under_way and self.copied is not None:
            self.copied.synchronize()
        self.is_under_way = False

    def send(self, n: int) -> None:
        """Have the device take in the first `n` numbers, in the order of its work."""
        self.on_device[:n].copy_(self.staged[:n], non_blocking=self.copied is not None)
        if self.copied is not None:
            self.copied.record()
            self.is_under_way = True


def event_of(device: torch.device) -> DeviceEvent | None:
    """An event of a device that works on its own; None of main memory."""
    if device.type == "cuda":
        return torch.cuda.Event()
    if device.type == "mps":
        return torch.mps.Event()
    return None
