"""Mixtures of experts in the layouts of GPUs, and how they run on emulated devices."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from localrun.backends.cuda.products import CudaProducts
from localrun.backends.gpu.mixture import ExpertProducts
from localrun.backends.metal.products import MetalProducts
from localrun.ops.instructions import Experts, LinearWeight, Moe, Router, SharedExpert
from localrun.ops.types import LinearActivation, Routing
from localrun_testing.gpu_cases import Name, device_of

from .gpu_weights import packed, packed_floats, random_rows

HIDDEN, INNER, N_EXPERTS = 64, 96, 6
BEST_TWO = Routing(2)


def mixture_of(
    qtypes: tuple[str, str, str] | str = "F32",
    routing: Routing = BEST_TWO,
    *,
    act: LinearActivation = "silu_mul",
    sizes: tuple[int, int] = (HIDDEN, INNER),
    n_experts: int = N_EXPERTS,
    shared: bool = False,
) -> Moe:
    """Experts whose gate, up and down are of these types, with biases and a scale of each; its rows are to be set."""
    hidden, inner = sizes
    gate, up, down = (qtypes,) * 3 if isinstance(qtypes, str) else qtypes

    def network(n: int, seed: int) -> Experts:
        def weight(qtype: str, n_rows: int, n_cols: int, number: int) -> LinearWeight:
            scales = 0.2 + 0.1 * random_rows(1, n, number)[0] if n > 1 else 0.2
            return LinearWeight(
                packed(qtype, n * n_rows, n_cols, number), random_rows(1, n * n_rows, number)[0], scales
            )

        way_in = weight(up, inner, hidden, seed + 1)
        opened = None if act == "relu_squared" else weight(gate, inner, hidden, seed)
        return Experts(opened, way_in, weight(down, hidden, inner, seed + 2), act)

    router = Router(packed_floats(random_rows(n_experts, hidden, 5)), routing, random_rows(1, n_experts, 6)[0])
    joined = SharedExpert(network(1, 30), packed_floats(random_rows(1, hidden, 7))) if shared else None
    return Moe(random_rows(1, hidden), router, network(n_experts, 20), joined)


def of_rows(op: Moe, rows: int, seed: int = 1) -> Moe:
    """The mixture of random rows, added to others."""
    hidden = op.router.weight.n_cols
    return replace(op, a=random_rows(rows, hidden, seed), residual=random_rows(rows, hidden, seed + 100), out_scale=0.7)


def routed_by(op: Moe, logits: Tensor) -> Moe:
    """Rows that a router has these raw outputs for, f32 [rows, n_experts]; it reads them from operands of its own."""
    n_experts, hidden = logits.shape[1], op.router.weight.n_cols
    eye = packed_floats(torch.eye(n_experts, hidden))
    chosen_by = torch.nn.functional.pad(logits, (0, hidden - n_experts))
    return replace(of_rows(op, len(logits)), router=replace(op.router, weight=eye, bias=None), chosen_by=chosen_by)


def products_of(platform: Name, seed: int = 0, poison: int = 0xFF) -> ExpertProducts:
    """Products on an emulated device."""
    device = device_of(platform, seed=seed, poison=poison)
    return CudaProducts(device) if platform == "cuda" else MetalProducts(device)
