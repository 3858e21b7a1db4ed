"""The cases of mixtures of experts, for every platform's self-test."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from localrun.backends.gpu.buffers import Buffer
from localrun.backends.gpu.device import Device
from localrun.backends.gpu.forms import Form, coded_bytes, matrices_of
from localrun.backends.gpu.layouts import GpuLayout
from localrun.backends.gpu.mixture import ExpertProducts, mixture
from localrun.backends.gpu.mixture_memory import mixture_bytes
from localrun.backends.gpu.synthetic import CLOSE, between_ones, far, scattered
from localrun.backends.reference.moe import mixture as exact_mixture
from localrun.backends.reference.ops import activate
from localrun.base.dataclass import dataclass
from localrun.formats.quant import QUANT_TYPES
from localrun.ops.instructions import Experts, Linear, LinearWeight, Moe, Router, SharedExpert
from localrun.ops.layouts import Packed, RowReader
from localrun.ops.types import LinearActivation, Routing

HIDDEN, INNER, N_EXPERTS = 128, 96, 4
ROUNDED = 0.03  # of the greatest number, where rows are read in 8 bits
GROUPED = Routing(2, "sigmoid", scale=1.5, n_groups=2, n_groups_used=1)


@dataclass(frozen=True)
class MixtureCases:
    """`products`: those of a platform, on a device."""

    products: Callable[[Any], ExpertProducts]

    def named(self) -> Mapping[str, Callable[[Device], str]]:
        return {"mixture of few": self.of_few, "mixture of many": self.of_many, "mixture of floats": self.of_floats}

    def of_few(self, device: Device) -> str:
        return self.wrong(device, "MXFP4", 3, Routing(2), "clamped_silu_mul")[0]

    def of_many(self, device: Device) -> str:
        """In tiles of many pairs; some rows by themselves are the same to the bit."""
        wrong, found = self.wrong(device, "MXFP4", 20, Routing(2), "clamped_silu_mul")
        few = self.wrong(device, "MXFP4", 3, Routing(2), "clamped_silu_mul")[1]
        return wrong or ("" if torch.equal(few, found[:3]) else "other bits for few")

    def of_floats(self, device: Device) -> str:
        """Groups of experts, and one that is shared."""
        return self.wrong(device, "F16", 11, GROUPED, "silu_mul", shared=True)[0]

    def wrong(
        self, device: Device, qtype: str, rows: int, routing: Routing, act: LinearActivation, *, shared: bool = False
    ) -> tuple[str, Tensor]:
        cpu, products = torch.device("cpu"), self.products(device)
        op, there = (made_up(qtype, rows, routing, act, where, shared) for where in (cpu, device.torch_device))
        found = run(products, there).cpu()
        codes = products.reads_codes(op.experts.up.packed)
        return far(qtype, found, exact(op), ROUNDED if codes else CLOSE), found


def made_up(
    qtype: str, rows: int, routing: Routing, act: LinearActivation, where: torch.device, shared: bool = False
) -> Moe:
    """A mixture of pseudorandom numbers, with a bias of everything."""

    def matrix(qtype: str, n_rows: int, n_cols: int, seed: int) -> Packed:
        row = QUANT_TYPES[qtype]
        raw = (scattered(n_rows * n_cols // row.block_size + seed, row.block_bytes)[seed:] >> 9 & 0xFF).byte()
        if qtype == "MXFP4":
            raw[:, 0] = 123  # the scale of a block
        else:
            numbers = between_ones(n_rows + seed, n_cols)[seed:] / 4
            raw = numbers.to(torch.float16 if qtype == "F16" else torch.float32).view(torch.uint8)
        raw = raw.reshape(n_rows, -1)
        return GpuLayout().pack(
            RowReader(qtype, n_rows, n_cols, lambda first, n: raw[first : first + n].numpy(), where)
        )

    def network(n: int) -> Experts:
        def weight(n_rows: int, n_cols: int, seed: int) -> LinearWeight:
            bias = between_ones(n * n_rows + seed)[seed:].to(where)
            return LinearWeight(matrix(qtype, n * n_rows, n_cols, seed), bias)

        return Experts(weight(INNER, HIDDEN, 1), weight(INNER, HIDDEN, 2), weight(HIDDEN, INNER, 3), act)

    biases = (between_ones(N_EXPERTS).to(where) for _ in range(2))
    router = Router(matrix("F32", N_EXPERTS, HIDDEN, 0), routing, *biases)
    joined = SharedExpert(network(1), matrix("F32", 1, HIDDEN, 4)) if shared else None
    x = between_ones(32, HIDDEN)[:rows].to(where)
    return Moe(x, router, network(N_EXPERTS), joined, 0.5, x)


def run(products: ExpertProducts, op: Moe, *, positions: Tensor | None = None, memory: Tensor | None = None) -> Tensor:
    """Run the kernels of a mixture whose operands are rows, in `memory` or where other numbers were."""
    device = products.device.torch_device

    def buffer(name: str, x: Tensor) -> Buffer:
        form = Form(x.shape[1], plain=True, coded=any(map(products.reads_codes, matrices_of(op, name))))
        room = torch.zeros((len(x) + 7) * coded_bytes(form.width), dtype=torch.uint8, device=device)
        return Buffer(form, x.flatten(), room if form.coded else None)

    rows = len(op.a)
    read, chosen_by = buffer("a", op.a), buffer("chosen_by", op.a if op.chosen_by is None else op.chosen_by)
    chosen_by = read if op.chosen_by is None else chosen_by
    if memory is None:
        memory = torch.full((mixture_bytes([op], rows) // 4,), 0x7FFFFFFF, dtype=torch.int32, device=device)
    at = torch.arange(rows, dtype=torch.int32, device=device) if positions is None else positions
    out = torch.full_like(op.a, torch.nan)
    for each in (read, chosen_by):
        for launch in products.quantize(each, rows):
            launch()
    for launch in mixture(products, op, read, chosen_by, at, op.residual, out, memory):
        launch()
    return out


class ExactProducts:
    """Products in double precision, of matrices on the processor."""

    def matmul(self, x: Tensor, weight: Packed, bias: Tensor | None = None) -> Tensor:
        y = x @ weight.unpack().to(x.dtype).T
        return y if bias is None else y + bias

    def product(self, x: Tensor, weight: LinearWeight) -> Tensor:
        y = self.matmul(x, weight.packed) * weight.scale
        return y if weight.bias is None else y + weight.bias

    def linear(self, op: Linear) -> tuple[Tensor, ...]:
        results = [self.product(op.a, weight) for weight in op.weights]
        return (activate(results[0], results[-1], op.act),)


def exact(op: Moe) -> Tensor:
    """The mixture in double precision."""
    chosen_by = None if op.chosen_by is None else op.chosen_by.double()
    moved = Moe(op.a.double(), op.router, op.experts, op.shared, chosen_by=chosen_by)
    y = exact_mixture(ExactProducts(), moved) * op.out_scale
    return y if op.residual is None else op.residual + y
