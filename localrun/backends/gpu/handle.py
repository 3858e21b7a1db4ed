"""A step on its way through a device."""

from __future__ import annotations

from localrun.backends.gpu.device import Device
from localrun.backends.gpu.head import LogitsHead
from localrun.backends.gpu.lost_device import told_when_lost
from localrun.backends.gpu.staging import Arrival
from localrun.ops.interface import Logits
from localrun.ops.program import Handle


class DeviceHandle(Handle):
    """A step that the device may still be computing; asking for its result waits for it."""

    def __init__(self, device: Device, head: LogitsHead, arrival: Arrival) -> None:
        self.device, self.head, self.arrival = device, head, arrival
        self.found: Logits | None = None
        self.is_overtaken = False  # by a step that was begun ahead, and writes its full rows where these were

    def result(self) -> Logits:
        if self.found is None:
            with told_when_lost():
                self.found = self.head.logits(self.arrival, self.is_overtaken)
        return self.found
