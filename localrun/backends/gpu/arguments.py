"""Checks of launch arguments, done once when they are bound: a kernel that reads a wrong pointer says nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from localrun.backends.gpu.device import Argument

Letter: TypeAlias = Literal["p", "i", "f"]
NAMES: dict[str, str] = {"p": "a pointer", "i": "an int", "f": "a float"}


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
