"""Matrices of pseudorandom numbers, the same everywhere, for the self-tests of kernels that read weights."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from localrun.backends.gpu.device import Device
from localrun.backends.gpu.layouts import GpuLayout
from localrun.backends.gpu.synthetic import between_ones, scattered
from localrun.formats.quant import QUANT_TYPES
from localrun.ops.layouts import Packed, RowReader

N_OUT, N_IN = 40, 768
CLOSE = 2e-6  # what a sum may be off by, of the sum of all magnitudes
SCALES: Mapping[str, tuple[int, ...]] = {"Q4_K": (0, 2), "Q6_K": (208,)}  # bytes of a block that are an fp16 scale


def products(x: Tensor, matrix: Tensor) -> tuple[Tensor, Tensor]:
    """x @ matrix.T in double precision, and of the magnitudes."""
    return x.double() @ matrix.double().T, x.double().abs() @ matrix.double().abs().T


def weights(qtype: str) -> Tensor:
    """A matrix as a file has it: uint8 [N_OUT, bytes of a row]."""
    if qtype == "F16":
        return between_ones(N_OUT, N_IN).half().view(torch.uint8)
    row = QUANT_TYPES[qtype]
    blocks = (scattered(N_OUT * N_IN // row.block_size, row.block_bytes) >> 9 & 0xFF).to(torch.uint8)
    for at in SCALES[qtype]:
        blocks[:, at : at + 2] = (0.02 + 0.01 * between_ones(len(blocks), 1)).half().view(torch.uint8)
    return blocks.view(N_OUT, -1)


def decoded(qtype: str, raw: Tensor) -> Tensor:
    return QUANT_TYPES[qtype].decode(raw.flatten(), (N_OUT, N_IN)).float()


def packed(qtype: str, raw: Tensor, device: Device) -> Packed:
    rows = RowReader(qtype, N_OUT, N_IN, lambda first, n: raw[first : first + n].numpy(), device.torch_device)
    return GpuLayout().pack(rows)
