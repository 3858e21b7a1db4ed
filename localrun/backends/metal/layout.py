"""Weights for Apple's GPU."""

from __future__ import annotations

import torch

from localrun.backends.gpu.layouts import GpuLayout


class MetalLayout(GpuLayout):
    """The GPU's layouts, packed by the processor: both have the same memory, so a matrix lies there once.

    Beside it there is never more than a slab of its rows, as the file has them and packed.
    """

    def packs_on(self, device: torch.device | None) -> torch.device:
        return torch.device("cpu")
