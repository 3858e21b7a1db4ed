"""Launches of a mixture of experts: rows are routed on the device, and no step waits for where they go.

A tile is an expert and some pairs of a row and a choice that go there. Few rows, and rows that scatter over many
experts, make tiles of up to 8 pairs, others of more: to the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import torch
from torch import Tensor

from localrun.backends.gpu.buffers import Buffer
from localrun.backends.gpu.device import Device, Kernel, Launch
from localrun.backends.gpu.forms import Form
from localrun.backends.gpu.mixture_memory import FEW, part_shapes, part_sizes
from localrun.base.dataclass import dataclass
from localrun.ops.instructions import Experts, LinearWeight, Moe
from localrun.ops.layouts import Packed
from localrun.ops.types import LinearActivation

WARPS = 8  # of a block that routes, each with a row, or that arranges, each with an expert
COLUMNS = 256  # of a block that combines


@dataclass(frozen=True, slots=True)
class ExpertTiles:
    """Tiles of the experts of a mixture.

    experts: int32 [n], -1 where there is none; pairs: int32 [n · size], row · n_used + choice, first those that are
    there, then -1
    """

    experts: Tensor
    pairs: Tensor
    size: int
    n_experts: int


class ExpertProducts(Protocol):
    """Products of a platform, of rows in the forms that its matrices read."""

    @property
    def device(self) -> Device: ...
    @staticmethod
    def reads_codes(weight: Packed) -> bool: ...
    @staticmethod
    def most_pairs(experts: Experts) -> int:
        """Pairs of the largest tiles that there are kernels for."""
        ...

    def quantize(self, a: Buffer, rows: int) -> Iterator[Launch]:
        """Make the quantised form of rows where there is one."""
        ...

    def linear(
        self, a: Buffer, weights: Sequence[LinearWeight], outs: Sequence[Tensor], act: LinearActivation = "none"
    ) -> Iterator[Launch]:
        """A linear of as many rows as `outs` have."""
        ...

    def experts(
        self,
        a: Buffer,
        rows: int,
        weights: Sequence[LinearWeight],
        out: Tensor,
        tiles: ExpertTiles,
        act: LinearActivation = "none",
    ) -> Iterator[Launch]:
        """A linear of the experts of each pair: of row p · rows / pairs of `a` -> row p of out, f32 [pairs, n_out]."""
        ...


def mixture(
    on: ExpertProducts,
    op: Moe,
    a: Buffer,
    chosen_by: Buffer,
    positions: Tensor,
    residual: Tensor | None,
    out: Tensor,
    memory: Tensor,
) -> Iterator[Launch]:
    """Launch `op`, a mixture of rows in all the forms that its matrices read -> out, f32 [rows, hidden].

    positions: int32 [rows], negative where a row only pads; memory: int32, for `mixture_bytes`
    """
    rows, part = len(out), parts(memory, op, len(out))
    tiles, n_pairs = tiles_of(on, op, part, rows), len(part["ids"])
    yield from on.linear(chosen_by, [LinearWeight(op.router.weight, op.router.bias)], [part["scores"]])
    yield from route(on.device, op, part, positions, tiles)
    inner = inner_rows(on, op.experts, part)
    yield from on.experts(a, rows, op.experts.widening, part["inner"], tiles, op.experts.act)
    yield from on.quantize(inner, n_pairs)
    yield from on.experts(inner, n_pairs, [op.experts.down], part["y"], tiles)
    if op.shared is not None:
        expert, inner = op.shared.expert, inner_rows(on, op.shared.expert, part, "shared_")
        yield from on.linear(a, expert.widening, [part["shared_inner"]], expert.act)
        yield from on.quantize(inner, rows)
        yield from on.linear(inner, [expert.down], [part["shared_y"]])
        if op.shared.gate is not None:
            yield from on.linear(a, [LinearWeight(op.shared.gate)], [part["share"]])
    yield combine(on.device, op, part, residual, out)


def parts(memory: Tensor, op: Moe, rows: int) -> dict[str, Tensor]:
    """Memory of a mixture of so many rows, cut into what lies between its kernels."""
    shapes, found, at = part_shapes(op, rows), dict[str, Tensor](), 0
    for name, size in part_sizes(op, rows).items():
        is_float = name not in ("ids", "tile_experts", "tile_pairs")
        part = memory[at : at + size].view(torch.float32 if is_float else torch.int32)
        found[name] = part[: torch.Size(shapes[name]).numel()].view(shapes[name])
        at += size
    return found


def inner_rows(on: ExpertProducts, experts: Experts, part: dict[str, Tensor], prefix: str = "") -> Buffer:
    """The inner numbers of a network, in the forms that its way down reads."""
    form = Form(experts.down.packed.n_cols, plain=True, coded=on.reads_codes(experts.down.packed))
    coded = part[f"{prefix}coded"].view(torch.uint8) if form.coded else None
    return Buffer(form, part[f"{prefix}inner"].flatten(), coded)


def tiles_of(on: ExpertProducts, op: Moe, part: dict[str, Tensor], rows: int) -> ExpertTiles:
    """Tiles for so many rows: enough for whatever is chosen."""
    n_pairs, n_experts = len(part["ids"]), op.router.n_experts
    size = on.most_pairs(op.experts) if n_pairs > FEW * n_experts else FEW
    n = n_pairs if rows <= WARPS else n_pairs // size + n_experts
    return ExpertTiles(part["tile_experts"][:n], part["tile_pairs"][: n * size], size, n_experts)


def route(device: Device, op: Moe, part: dict[str, Tensor], positions: Tensor, tiles: ExpertTiles) -> Iterator[Launch]:
    """Choose the experts of rows, with their weights, and put the pairs into tiles."""
    routing, rows, n_experts = op.router.routing, len(positions), tiles.n_experts
    ids, n_pairs = part["ids"], len(part["ids"])
    yield kernel(device, op, "route").bind(
        (-(-rows // WARPS), 1, 1),
        (32 * WARPS, 1, 1),
        *(part["scores"], positions, op.router.choice_bias, op.router.scale, ids, part["weights"]),
        *(tiles.experts, tiles.pairs, rows, n_experts, routing.n_used),
        *(int(routing.score == "sigmoid"), int(routing.normalize), float(routing.scale)),
        *(routing.n_groups, routing.n_groups_used, routing.group_rank),
    )
    if rows > WARPS:
        yield kernel(device, op, "arrange").bind(
            (-(-n_experts // WARPS), 1, 1),
            (32 * WARPS, 1, 1),
            *(ids, tiles.experts, tiles.pairs, n_pairs, n_experts, tiles.size, len(tiles.experts)),
        )


def combine(device: Device, op: Moe, part: dict[str, Tensor], residual: Tensor | None, out: Tensor) -> Launch:
    """residual + out_scale · the weighted sum, best first, and the shared expert -> out"""
    shared, share = part.get("shared_y"), part["share"] if op.shared and op.shared.gate else None
    return kernel(device, op, "combine").bind(
        (-(-out.shape[1] // COLUMNS), len(out), 1),
        (COLUMNS, 1, 1),
        *(part["y"], part["ids"], part["weights"], shared, share, residual, out),
        *(float(op.out_scale), op.router.routing.n_used, out.shape[1]),
    )


def kernel(device: Device, op: Moe, name: str) -> Kernel:
    """A kernel of mixtures of this size."""
    return device.kernel(f"mixture{device.ending}", name, KEYS=op.router.n_experts + op.router.routing.n_groups)
