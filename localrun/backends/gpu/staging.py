"""Memory of a device beside main memory that is copied to it, or from it; both keep their addresses."""

from __future__ import annotations

from collections import deque

import numpy as np
import torch
from torch import Tensor

from localrun.backends.gpu.device import Device, DeviceEvent


def pinned(n: int, device: Device) -> Tensor:
    """int32 [n] in main memory, which the device copies by itself."""
    return torch.zeros(n, dtype=torch.int32, pin_memory=device.torch_device.type == "cuda")


class Staging:
    """int32 [n], written in main memory and copied to the device."""

    def __init__(self, n: int, device: Device) -> None:
        self.device = device
        self.on_device = torch.zeros(n, dtype=torch.int32, device=device.torch_device)
        self.staged = pinned(n, device)
        self.numbers = self.staged.numpy()  # the same memory
        self.copied: DeviceEvent = device.event()
        self.is_under_way = False

    def wait(self) -> None:
        """Return when `numbers` may change: it may be on its way for a step that was cut short, which nobody read."""
        if self.is_under_way:
            self.copied.synchronize()
        self.is_under_way = False

    def send(self, n: int) -> None:
        """Have the device take in the first `n` numbers, in the order of its work."""
        self.device.upload(self.staged, self.on_device, n)
        self.copied.record()
        self.is_under_way = True


class Arrival:
    """int32 [rows, n] in main memory, which a device copies."""

    def __init__(self, rows: int, n: int, device: Device) -> None:
        self.staged = pinned(rows * n, device).view(rows, n)
        self.numbers: np.ndarray = self.staged.numpy()
        self.copied: DeviceEvent = device.event()
        self.is_there = True

    def begin(self) -> None:
        """Expect it after what the device was asked for so far."""
        self.copied.record()
        self.is_there = False

    def wait(self) -> np.ndarray:
        """All of it, once it is there."""
        if not self.is_there:
            self.copied.synchronize()
        self.is_there = True
        return self.numbers


class Readback:
    """int32 [rows, n] that the device writes, and copies in main memory: of the newest step, and of the one before."""

    def __init__(self, rows: int, n: int, device: Device) -> None:
        self.device = device
        self.on_device = torch.zeros(rows, n, dtype=torch.int32, device=device.torch_device)
        self.arrivals = deque(Arrival(rows, n, device) for _ in range(2))

    def begin(self, rows: int) -> Arrival:
        """Have the device copy the first `rows`, in the order of its work."""
        self.arrivals.rotate()
        arrival = self.arrivals[0]
        self.device.read(self.on_device, arrival.staged, rows * arrival.staged.shape[1])
        arrival.begin()
        return arrival
