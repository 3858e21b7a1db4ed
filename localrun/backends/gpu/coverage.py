"""Coverage of a model by our kernels; torch computes the rest on the device, slower. Torch-free."""

from functools import lru_cache

from localrun.ops.instructions import Attention, Instruction, Linear, Moe, Xielu
from localrun.ops.recording import Recording

MAX_HEAD_DIM = 512
RECURRENT, MIXTURES, XIELU = "recurrent layers", "mixtures of experts", "the activation xIELU"
KERNELS = frozenset(
    ("embed", "norm", "linear", "rope_append", "attention", "sigmoid_mul", "gelu_mul", "scale", "logits")
)


def has_head_dim(head_dim: int) -> bool:
    """Whether there are kernels of attention for heads of this size."""
    return head_dim % 16 == 0 and head_dim <= MAX_HEAD_DIM


def gathers(op: Linear) -> bool:
    """Whether a matrix of it has its columns in an order of their own, which torch multiplies."""
    return any(weight.gather is not None for weight in op.weights)


@lru_cache(maxsize=32)
def left_to_torch(model: Recording) -> tuple[str, ...]:
    """The parts of a model that have no kernels yet, named for the user."""
    parts = {part_without_kernels(each.instruction, model) for each in model.instructions}
    first = tuple(part for part in (RECURRENT, MIXTURES) if part in parts)
    return (*first, *sorted(parts - {"", RECURRENT, MIXTURES}))


def part_without_kernels(op: Instruction, model: Recording) -> str:
    """The part of a model that an instruction belongs to where torch computes it; otherwise empty."""
    if isinstance(op, Attention):
        head_dim = model.layers[op.layer].head_dim
        return "" if has_head_dim(head_dim) else f"attention of heads of {head_dim}"
    if op.name in KERNELS:
        return ""
    if isinstance(op, Xielu):
        return XIELU
    return MIXTURES if isinstance(op, Moe) else RECURRENT
