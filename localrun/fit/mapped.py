"""Weights that need not be in memory: which stay on disk where it is short, and what a token reads of them.

Torch-free. What every token uses stays in memory: attention, recurrent and shared parts, the output. The others go in
the order in which they are missed least: an embedding of which a token reads one row, experts, networks of dense
layers; of each the last layers first.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from localrun.fit.shape import Shape
from localrun.model.config import ModelConfig
from localrun.model.weight_ref import WeightRef

NETWORK = ("gate", "up", "down")


@dataclass(frozen=True, slots=True)
class Mappable:
    """A matrix by our name: bytes as it is held, and those of them that computing one token reads."""

    name: str
    nbytes: int
    read_bytes: int


def mappable(config: ModelConfig, refs: Mapping[str, WeightRef], nbytes: Callable[[WeightRef], int]) -> list[Mappable]:
    """Of a model that is here, in the order in which they go."""
    names = ["embed"] if "output" in refs else []
    for index in _least_used_first(config):
        names += [name for part in reversed(NETWORK) if (name := f"layers.{index}.{part}") in refs]
    found = []
    for name in names:
        ref, size = refs[name], nbytes(refs[name])
        share = (1, ref.shape[0]) if name == "embed" else (ref.n_used, ref.n_experts)
        found.append(Mappable(name, size, size * share[0] // share[1]))
    return found


def mappable_parts(shape: Shape, weights_bytes: int) -> tuple[Mappable, ...]:
    """Likewise of a model whose matrices are not known one by one: the networks of each layer, by their parameters."""
    if shape.obstacle:
        return ()
    config, bytes_each = shape.config, weights_bytes / max(shape.held_params, 1)
    found = []
    for index in _least_used_first(config):
        layer = config.layers[index]
        one = (3 if layer.has_gate else 2) * config.hidden_size * layer.ffn_size
        n, used = (layer.mixture.n_experts, layer.mixture.routing.n_used) if layer.mixture else (1, 1)
        found.append(Mappable(f"layers.{index}", int(n * one * bytes_each), int(used * one * bytes_each)))
    return tuple(found)


def first_of(parts: Sequence[Mappable], nbytes: int) -> tuple[Mappable, ...]:
    """The fewest of the first that are `nbytes` together; all where they are not as many."""
    n, total = 0, 0
    while n < len(parts) and total < nbytes:
        total += parts[n].nbytes
        n += 1
    return tuple(parts[:n])


def total_bytes(parts: Iterable[Mappable]) -> int:
    return sum(part.nbytes for part in parts)


def missed_bytes(parts: Sequence[Mappable], cached: int) -> float:
    """What a token reads from the disk, where `cached` bytes of these parts find room in memory."""
    total = total_bytes(parts)
    return max(0.0, 1 - cached / total) * sum(part.read_bytes for part in parts) if total else 0.0


def _least_used_first(config: ModelConfig) -> list[int]:
    """Layers that have a network: those with experts before others, the last first."""
    having = [index for index, layer in enumerate(config.layers) if layer.ffn_size]
    return sorted(having, key=lambda index: (config.layers[index].mixture is None, -index))
