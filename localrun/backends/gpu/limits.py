"""Limits of a GPU, measured by torch: copies, and products of matrices of fp16."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from localrun.backends.limits import Limits

if TYPE_CHECKING:
    import torch

COPIED_BYTES = 128 << 20  # more than any cache of the system holds
SIDE = 2048  # of the matrices


class TorchLimitProbe:
    """Measures on a device of torch; `wait` returns when it has done all it was asked for."""

    def __init__(self, device: torch.device, wait: Callable[[], None], copied: int = COPIED_BYTES) -> None:
        import torch

        self.wait = wait
        self.source, self.copy = (torch.ones(copied // 4, device=device) for _ in range(2))
        self.matrix = torch.ones(SIDE, SIDE, dtype=torch.float16, device=device)
        self.product = torch.empty_like(self.matrix)

    def measure(self) -> Limits:
        import torch

        copied = 2 * self.source.nbytes / self.seconds(lambda: self.copy.copy_(self.source)) / 1e9
        macs = SIDE**3 / self.seconds(lambda: torch.mm(self.matrix, self.matrix, out=self.product)) / 1e9
        return Limits(copied, copied, macs, macs)  # reads are as fast as copies count, in both directions

    def seconds(self, run: Callable[[], object]) -> float:
        run()
        self.wait()
        started = time.perf_counter()
        for _ in range(4):
            run()
        self.wait()
        return max(time.perf_counter() - started, 1e-9) / 4

    def close(self) -> None:
        del self.source, self.copy, self.matrix, self.product
