"""Limits of a GPU from its clocks and widths: known at once, without torch and without a context."""

from localrun.backends.cuda.driver import Gpu
from localrun.backends.limits import Limits

AMPERE = 80
COPY_SHARE = 0.92  # of what the memory's clock and width come to, that a copy reaches
INT8_MACS = {75: 1024, 80: 2048, 86: 1024, 87: 1024, 89: 1024, 90: 4096, 100: 8192, 120: 1024}  # a processor and clock


class DriverLimitProbe:
    """Nothing is measured: what the driver says of its device, again and again."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu

    def measure(self) -> Limits:
        newest = max(arch for arch in INT8_MACS if arch <= self.gpu.arch)
        int8 = INT8_MACS[newest] * self.gpu.processors * self.gpu.clock_hz / 1e9
        read = COPY_SHARE * self.gpu.read_bytes / 1e9
        return Limits(read, read, int8, int8 / 2)

    def close(self) -> None:
        pass


def shared_bytes(arch: int) -> int:
    """Bytes of shared memory that a block can have on `arch` (90 for sm_90) and all later ones."""
    return 99 << 10 if arch >= AMPERE else 64 << 10
