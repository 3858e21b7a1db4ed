"""Choice of the weights that stay on disk where memory is short, and the bytes that a token reads of them.

Torch-free. Weights that every token uses stay in memory: attention, recurrent and shared parts, the output. The others
go in order of least cost: an embedding of which a token reads one row, experts, feed-forward networks of dense layers;
of each the last layers first.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from math import prod

from localrun.base.dataclass import dataclass
from localrun.fit.shape import ModelShape
from localrun.model.config import ModelConfig
from localrun.model.shapes import network_shapes
from localrun.model.weight_ref import WeightRef

NETWORK = ("gate", "up", "down")
# Of experts a share c of which is in memory, a token misses (1 - c) to a power: 1 where it chooses by chance, and more
# the fewer of them it uses, as what a text needs is mostly what its last tokens needed. Traces that are published with
# kekzl/imp on GitHub: 8 of 128 used and c 0.40, 5 to 10 % missed (pull request 1359, 2026-08-10); 10 of 512 used and c
# 0.18, 0.36 and 0.54, 56, 38 and 28 % (2061, 2026-09-21). 3 is the cautious one of the two, and fits the second.
LOCAL, MOST_LOCAL = 3 / 8, 3.0


@dataclass(frozen=True, slots=True)
class Mappable:
    """A matrix by localrun's name: its bytes as held, and the bytes that one token reads."""

    name: str
    nbytes: int
    read_bytes: int


def mappable(config: ModelConfig, refs: Mapping[str, WeightRef], nbytes: Callable[[WeightRef], int]) -> list[Mappable]:
    """The matrices of a model on disk that may stay there, in the order in which they go."""
    names = ["embed"] if "output" in refs else []
    for index in _least_used_first(config):
        names += [name for part in reversed(NETWORK) if (name := f"layers.{index}.{part}") in refs]
    found = []
    for name in names:
        ref, size = refs[name], nbytes(refs[name])
        share = (1, ref.shape[0]) if name == "embed" else (ref.n_used, ref.n_experts)
        found.append(Mappable(name, size, size * share[0] // share[1]))
    return found


def mappable_parts(shape: ModelShape, weights_bytes: int) -> tuple[Mappable, ...]:
    """Likewise for a model whose matrices are unknown: the feed-forward part of each layer, by its parameters."""
    if shape.obstacle:
        return ()
    config, bytes_each = shape.config, weights_bytes / max(shape.held_params, 1)
    found = []
    for index in _least_used_first(config):
        layer = config.layers[index]
        one = sum(map(prod, network_shapes(config.hidden_size, layer.ffn_size, layer.has_gate).values()))
        n, used = (layer.mixture.n_experts, layer.mixture.routing.n_used) if layer.mixture else (1, 1)
        found.append(Mappable(f"layers.{index}", int(n * one * bytes_each), int(used * one * bytes_each)))
    return tuple(found)


def first_of(parts: Sequence[Mappable], nbytes: int) -> tuple[Mappable, ...]:
    """The shortest prefix of `parts` with `nbytes` in total; all parts where they have fewer."""
    n, total = 0, 0
    while n < len(parts) and total < nbytes:
        total += parts[n].nbytes
        n += 1
    return tuple(parts[:n])


def within(parts: Sequence[Mappable], nbytes: int | None) -> tuple[Mappable, ...]:
    """The longest prefix of `parts` with at most `nbytes` in total; None: all parts."""
    totals = accumulate(part.nbytes for part in parts)
    return tuple(part for part, total in zip(parts, totals, strict=True) if nbytes is None or total <= nbytes)


def total_bytes(parts: Iterable[Mappable]) -> int:
    return sum(part.nbytes for part in parts)


def missed_bytes(parts: Sequence[Mappable], cached: int) -> float:
    """Bytes that a token reads from disk where `cached` bytes of these parts fit into memory.

    Systems evict the pages that were not used for longest. Weights that every token reads are cyclic: either all fit,
    or none is still in memory when its turn comes. Experts of one text are mostly those of its last tokens.
    """
    scanned = total_bytes(part for part in parts if part.read_bytes == part.nbytes)
    experts = [part for part in parts if part.read_bytes < part.nbytes and part.name != "embed"]
    total, read = total_bytes(experts), sum(part.read_bytes for part in experts)
    if scanned > cached:
        return float(scanned + read)
    share = min(1.0, (cached - scanned) / total) if total else 1.0
    return float(read * (1 - share) ** max(1.0, min(MOST_LOCAL, LOCAL * total / read))) if total else 0.0


def _least_used_first(config: ModelConfig) -> list[int]:
    """Layers with a feed-forward network: those with experts first, then the others, each from the last on."""
    having = [index for index, layer in enumerate(config.layers) if layer.ffn_size]
    return sorted(having, key=lambda index: (config.layers[index].mixture is None, -index))
