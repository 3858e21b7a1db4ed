"""Cost of a decode step, counted from a recording before anything is loaded. Torch-free."""

from functools import lru_cache

from localrun.base.dataclass import dataclass
from localrun.ops.instructions import Instruction, Linear, LogitsOf, Moe
from localrun.ops.latent import HeadLinear
from localrun.ops.recording import Recording


@dataclass(frozen=True, slots=True)
class DecodeCost:
    """Cost of a step of one row on a device, beside reading the matrices."""

    launches: int = 0  # of kernels of ours
    torch_ops: int = 0  # operations of torch, each asked for when the one before it has been
    torch_bytes: float = 0.0  # that these read and write
    is_graph: bool = False  # all launches are one CUDA graph, which the host asks for once
    is_ahead: bool = False  # a step is begun before the token of the one before it is known


@lru_cache(maxsize=32)
def numbers_read(model: Recording) -> float:
    """Numbers of all matrices that a step of one row multiplies with: of a mixture those of the chosen experts."""
    return sum(_numbers(each.instruction, whole=False) for each in model.instructions)


@lru_cache(maxsize=32)
def numbers_held(model: Recording) -> float:
    """Numbers of all matrices that steps multiply with; a vocabulary counts once, however often it is used."""
    return sum(_numbers(each.instruction, whole=True) for each in model.instructions)


def experts_read(op: Moe) -> float:
    """Numbers of the matrices of the experts that one row goes through, the shared one among them."""
    return _experts(op, op.router.routing.n_used)


def _numbers(op: Instruction, *, whole: bool) -> float:
    if isinstance(op, Linear):
        return sum(weight.packed.n_rows * weight.packed.n_cols for weight in op.weights)
    if isinstance(op, HeadLinear):
        return op.weight.packed.n_rows * op.weight.packed.n_cols
    if isinstance(op, LogitsOf):
        return op.weight.n_rows * op.weight.n_cols
    if isinstance(op, Moe):
        router = op.router.weight
        return router.n_rows * router.n_cols + _experts(op, router.n_rows if whole else op.router.routing.n_used)
    return 0.0


def _experts(op: Moe, n: int) -> float:
    one = [weight.packed for weight in (*op.experts.widening, op.experts.down)]
    shared = [] if op.shared is None else [*op.shared.expert.widening, op.shared.expert.down]
    return n / op.router.n_experts * sum(matrix.n_rows * matrix.n_cols for matrix in one) + sum(
        weight.packed.n_rows * weight.packed.n_cols for weight in shared
    )
