"""Widths of the results of a recorded step: numbers in a row of each. Torch-free."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from localrun.ops.cache_layer import CacheLayer
from localrun.ops.instructions import Attention, Embed, GeluMul, Instruction, Linear, LogitsOf
from localrun.ops.latent import HeadLinear, LatentAppend
from localrun.ops.recording import Recorded
from localrun.ops.recurrent import GatedDeltaRule, SelectiveScan, ShortConv

Kind = TypeVar("Kind", bound=Hashable)


def slot_widths(
    recorded: Iterable[Recorded], layers: Sequence[CacheLayer], given: Sequence[int] = ()
) -> dict[int, int]:
    """Numbers a row of every slot of a program, [R, width]; of the Logits the size of the vocabulary. The first slots
    are `given` by the caller."""
    widths: dict[int, int] = dict(enumerate(given))
    for each in recorded:
        reads = {name: widths[slot] for name, slot in each.reads.items()}
        widths |= zip(each.results, result_widths(each.instruction, reads, layers), strict=True)
    return widths


def result_widths(op: Instruction, reads: Mapping[str, int], layers: Sequence[CacheLayer]) -> Sequence[int]:
    """Numbers a row of everything an instruction gives; `reads` are those of its operands."""
    if isinstance(op, Embed):
        return (op.weight.n_cols,)
    if isinstance(op, Linear):
        return [weight.packed.n_rows for weight in op.weights][: op.n_results]
    if isinstance(op, Attention):
        place = layers[op.layer]
        return (place.n_heads * (place.value_dim or place.head_dim),)
    if isinstance(op, HeadLinear):
        return (op.weight.packed.n_rows,)
    if isinstance(op, LatentAppend):
        place = layers[op.layer]
        return (place.n_heads * place.head_dim,)
    if isinstance(op, ShortConv):
        return (reads["x"] // (3 if op.gated else 1),)
    if isinstance(op, GatedDeltaRule):
        return (op.n_value_heads * op.value_dim,)
    if isinstance(op, SelectiveScan):
        return (op.n_heads * op.head_dim,)
    if isinstance(op, LogitsOf):
        return (op.weight.n_rows,)
    like = "gate" if isinstance(op, GeluMul) else next(name for name in ("x", "q", "a") if name in reads)
    return (reads[like],) * op.n_results


def most_alive(
    recorded: Iterable[Recorded],
    kinds: Mapping[int, Kind],
    within: Callable[[Instruction], Iterable[Kind]] = lambda op: (),
    given: Iterable[int] = (),
) -> Counter[Kind]:
    """The most buffers of each kind in use at once, where one is used again as soon as nothing reads it.

    `kinds`: that of every slot which has a buffer. `within`: those that an instruction needs while it is computed.
    `given`: slots that the caller fills before the program begins.
    """
    alive = Counter(kinds[slot] for slot in given)
    most = Counter(alive)
    for each in recorded:
        more = [kinds[slot] for slot in each.results if slot in kinds]
        alive.update(more)
        inside = Counter(within(each.instruction))
        for kind in (*more, *inside):  # of all others there were as many before
            most[kind] = max(most[kind], alive[kind] + inside[kind])
        alive.subtract(kinds[slot] for slot in each.dead if slot in kinds)
    return most
