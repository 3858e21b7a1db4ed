"""Instructions that have kernels on GPUs: one row each. Torch computes the others on the device, slower. Torch-free."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from localrun.base.dataclass import dataclass
from localrun.ops.cache_layer import NOWHERE, CacheLayer
from localrun.ops.instructions import (
    AddImageRows,
    Attention,
    Embed,
    GeluMul,
    Instruction,
    Linear,
    LogitsOf,
    Moe,
    Norm,
    RopeAppend,
    Scale,
    SigmoidMul,
    Xielu,
)
from localrun.ops.latent import HeadLinear, LatentAppend
from localrun.ops.layouts import MAPPED
from localrun.ops.recording import Recording
from localrun.ops.recurrent import GatedDeltaRule, SelectiveScan, ShortConv

BOTH = ("cuda", "mps")
MAX_HEAD_DIM = 512
MAX_KEYS = 640  # experts and their groups: for eight rows they lie in the shared memory of a block
MIXTURES = "mixtures of experts"
HEADS = "attention of heads of {0.head_dim}"
LATENTS = "latent attention"


def always(op: Instruction, place: CacheLayer) -> bool:
    return True


def has_head(op: Instruction, place: CacheLayer) -> bool:
    """Whether heads are of a size that attention is written for, and values are not a part of keys."""
    return place.value_dim is None and place.head_dim % 16 == 0 and place.head_dim <= MAX_HEAD_DIM


def is_mixed(op: Instruction) -> bool:
    """Whether an instruction is a mixture of no more experts than kernels choose among."""
    return isinstance(op, Moe) and op.router.n_experts + op.router.routing.n_groups <= MAX_KEYS


def gathers(op: Linear) -> bool:
    """Whether a matrix of it has its columns in an order of their own, which torch multiplies."""
    return any(weight.gather is not None for weight in op.weights)


@dataclass(frozen=True, slots=True)
class Support:
    """Kernels for an instruction, on the backends `on`, where it `fits` them; `launches` of a decode step.

    part: of a model, named for users, where torch computes it. {0}: the cache entries of its layer.
    """

    part: str = ""
    on: tuple[str, ...] = BOTH
    fits: Callable[[Any, CacheLayer], bool] = always
    launches: float = 1


SUPPORTS: Mapping[type[Instruction], Support] = {
    Moe: Support(MIXTURES, fits=lambda op, place: is_mixed(op), launches=7),
    RopeAppend: Support(HEADS, fits=has_head),
    Attention: Support(HEADS, fits=has_head, launches=2),
    Linear: Support(
        "matrices whose columns are sorted by group (desc_act, actorder)", fits=lambda op, place: not gathers(op)
    ),
    Embed: Support(
        "embeddings of every layer, which stay in their file", fits=lambda op, place: op.weight.layout is not MAPPED
    ),
    AddImageRows: Support("images", on=()),
    HeadLinear: Support(LATENTS, on=()),
    LatentAppend: Support(LATENTS, on=()),
    Norm: Support(),
    SigmoidMul: Support(),
    GeluMul: Support(),
    Scale: Support(),
    Xielu: Support(),
    ShortConv: Support(),
    GatedDeltaRule: Support(launches=2),
    SelectiveScan: Support(launches=2),
    LogitsOf: Support(launches=8),
}


def kernels_on(backend: str) -> frozenset[str]:
    """Names of the instructions that have any."""
    return frozenset(op.name for op, support in SUPPORTS.items() if backend in support.on)


def has_kernels(op: Instruction, layers: Sequence[CacheLayer], backend: str) -> bool:
    """Whether kernels compute an instruction of a decoder with these cache entries."""
    support = SUPPORTS[type(op)]
    return backend in support.on and support.fits(op, place_of(op, layers))


def place_of(op: Instruction, layers: Sequence[CacheLayer]) -> CacheLayer:
    """The cache entries that an instruction reads or writes."""
    return NOWHERE if (layer := getattr(op, "layer", None)) is None else layers[layer]


@lru_cache(maxsize=32)  # a plan asks for every codec and many contexts
def ops_of_torch(model: Recording, backend: str) -> tuple[Instruction, ...]:
    """The instructions of a model that torch computes."""
    ops = (each.instruction for each in model.instructions)
    return tuple(op for op in ops if not has_kernels(op, model.layers, backend))


@lru_cache(maxsize=32)
def left_to_torch(model: Recording, backend: str) -> tuple[str, ...]:
    """The parts of a model that have no kernels yet, named for the user, in the order of the table."""
    parts = set[tuple[int, str]]()
    for op in ops_of_torch(model, backend):
        parts.add((list(SUPPORTS).index(type(op)), part_of(op, place_of(op, model.layers))))
    return tuple(dict.fromkeys(part for _, part in sorted(parts)))


def part_of(op: Instruction, place: CacheLayer) -> str:
    """The part of a model that an instruction belongs to, named for the user."""
    return SUPPORTS[type(op)].part.format(place) if place.value_dim is None else LATENTS


def reads_in_bulk(model: Recording, backend: str) -> bool:
    """Whether prompts of it may be read in bulk: no part is torch's."""
    return not left_to_torch(model, backend)
