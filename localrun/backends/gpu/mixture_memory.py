"""Memory between the kernels of a mixture of experts. Torch-free."""

from collections.abc import Iterable
from math import prod
from typing import TypeAlias

from localrun.backends.gpu.forms import coded_bytes
from localrun.backends.gpu.supports import is_mixed
from localrun.ops.instructions import Experts, Instruction, Moe

FEW, MANY = 8, 64  # pairs of a row and a choice in a tile of an expert, at most
ALIGNED = 64  # numbers that a part begins at a multiple of
PartShape: TypeAlias = tuple[int, ...]


def part_shapes(op: Moe, rows: int) -> dict[str, PartShape]:
    """Shapes of what lies between the kernels, in numbers of 4 bytes; those of `coded` parts are bytes."""
    n_experts, pairs = op.router.n_experts, rows * op.router.routing.n_used
    hidden = op.experts.down.packed.n_rows // n_experts
    shapes: dict[str, PartShape] = {
        "scores": (rows, n_experts),
        "ids": (pairs,),
        "weights": (pairs,),
        "tile_experts": (pairs + n_experts,),
        "tile_pairs": (pairs + MANY * n_experts,),
        **network_shapes("", op.experts, hidden, pairs),
    }
    if op.shared is not None:
        shapes |= network_shapes("shared_", op.shared.expert, hidden, rows) | {"share": (rows, 1)}
    return shapes


def network_shapes(prefix: str, experts: Experts, n_out: int, rows: int) -> dict[str, PartShape]:
    """Shapes of the inner numbers of a network, of the same quantised, and of its results."""
    inner, whole = experts.down.packed.n_cols, -(-rows // 8) * 8
    return {
        f"{prefix}inner": (rows, inner),
        f"{prefix}coded": (whole * coded_bytes(inner) // 4,),
        f"{prefix}y": (rows, n_out),
    }


def part_sizes(op: Moe, rows: int) -> dict[str, int]:
    """Numbers of 4 bytes that each part takes."""
    return {name: -(-prod(shape) // ALIGNED) * ALIGNED for name, shape in part_shapes(op, rows).items()}


def mixture_bytes(ops: Iterable[Instruction], rows: int) -> int:
    """Bytes for the mixtures of a program, which run one after the other."""
    sizes = (sum(part_sizes(op, rows).values()) for op in ops if isinstance(op, Moe) and is_mixed(op))
    return 4 * max(sizes, default=0)
