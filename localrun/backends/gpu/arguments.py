"""Checks of launch arguments, done once when they are bound: a kernel that reads a wrong pointer says nothing."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from localrun.backends.gpu.device import Argument, Dim

Letter: TypeAlias = Literal["p", "i", "f"]
NAMES: dict[str, str] = {"p": "a pointer", "i": "an int", "f": "a float"}


MOST_THREADS, MOST_BLOCKS, MOST_ROWS = 1024, (1 << 31) - 1, (1 << 16) - 1  # of CUDA: a block, x of a grid, y and z


def check_launch(name: str, grid: Dim, block: Dim) -> None:
    """ValueError for more blocks or threads than CUDA launches."""
    if not 0 < math.prod(block) <= MOST_THREADS:
        raise ValueError(f"{name}: a block has 1 to {MOST_THREADS} threads, not {block}")
    if not all(0 <= n <= most for n, most in zip(grid, (MOST_BLOCKS, MOST_ROWS, MOST_ROWS), strict=True)):
        raise ValueError(f"{name}: a grid has at most ({MOST_BLOCKS}, {MOST_ROWS}, {MOST_ROWS}) blocks, not {grid}")


def letter(argument: Argument, device_type: str, where: str) -> Letter:
    """p for what is passed as a pointer, i as an int32, f as a float32; ValueError for what cannot be.

    Tensors are contiguous and on a device of that type; `where` is what the error calls the argument.
    """
    import torch

    if isinstance(argument, torch.Tensor):
        if argument.device.type != device_type or not argument.is_contiguous():
            raise ValueError(f"{where} must be a contiguous tensor on {device_type}")
        return "p"
    if argument is None:
        return "p"
    if isinstance(argument, float):
        return "f"
    if not -(1 << 31) <= argument < 1 << 31:
        raise ValueError(f"{where} is {argument}, which no int32 holds")
    return "i"
