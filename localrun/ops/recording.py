"""Recording of a decoder: the list of instructions that every step replays. Torch-free."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import Any

from localrun.base.dataclass import dataclass
from localrun.ops.cache_layer import CacheLayer
from localrun.ops.instructions import Instruction, Slot

Ops = Callable[[Instruction], Sequence[Any]]  # what a decoder asks for operations: gives their results
Forward = Callable[..., Any]  # a decoder, called with Ops and the rows that steps bring along: gives the Logits


@dataclass(frozen=True, slots=True)
class Recorded:
    """An instruction, the slots it reads (by field), those of its results, and those that nothing reads after it."""

    instruction: Instruction
    reads: Mapping[str, int]
    results: tuple[int, ...]
    dead: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class Recording:
    """A recorded decoder, and the cache entries of its layers. What is worked out from one is kept by its identity."""

    instructions: tuple[Recorded, ...]
    layers: tuple[CacheLayer, ...]
    given: tuple[int, ...] = ()  # widths of the first slots: rows that steps bring along


class Recorder:
    """Records the instructions of a decoder. None of them depends on data, so recording once is enough."""

    def __init__(self) -> None:
        self.recorded: list[Recorded] = []
        self.n_slots = 0

    def __call__(self, instruction: Instruction) -> tuple[Slot, ...]:
        results = range(self.n_slots, self.n_slots + instruction.n_results)
        self.n_slots = results.stop
        self.recorded.append(Recorded(instruction, slots_of(instruction), tuple(results)))
        return tuple(map(Slot, results))

    def slot(self) -> Slot:
        """A slot that no instruction fills: the caller of the program does."""
        self.n_slots += 1
        return Slot(self.n_slots - 1)


def record_instructions(forward: Forward, n_given: int = 0) -> tuple[Recorded, ...]:
    """Record `forward` as instructions, each with the slots nothing reads after it. The last one gives the Logits.

    The first `n_given` slots are rows that every step brings along.
    """
    recorder = Recorder()
    result = forward(recorder, *(recorder.slot() for _ in range(n_given)))
    assert recorder.recorded[-1].results == (result.index,)
    return with_dead_slots(recorder.recorded)


def with_dead_slots(recorded: Sequence[Recorded]) -> tuple[Recorded, ...]:
    """Instructions, each with the slots nothing reads after it."""
    last_use = {slot: place for place, one in enumerate(recorded) for slot in one.reads.values()}
    dead: dict[int, list[int]] = {}
    for slot, place in last_use.items():
        dead.setdefault(place, []).append(slot)
    return tuple(
        Recorded(one.instruction, one.reads, one.results, tuple(dead.get(place, ())))
        for place, one in enumerate(recorded)
    )


def slots_of(instruction: Instruction) -> dict[str, int]:
    """The operands of a recorded instruction that are results of others: slots by field."""
    kind: Any = type(instruction)  # to mypy, a union of classes has no hash
    values = ((name, getattr(instruction, name)) for name in _field_names(kind))
    return {name: value.index for name, value in values if isinstance(value, Slot)}


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))
