"""Programs: the decoder runs once on a recorder; from then on a step replays the list of instructions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

from localrun.ops.instructions import Instruction, Slot
from localrun.ops.interface import Logits, StepCancelled, StepInput

Ops = Callable[[Instruction], Sequence[Any]]  # what a decoder asks for operations: gives their results
Forward = Callable[[Ops], Any]  # a decoder: gives the Logits


@dataclass(frozen=True, slots=True)
class Recorded:
    """An instruction in its place: the slots it reads, by field, those of its results, and those nothing reads then."""

    instruction: Instruction
    reads: Mapping[str, int]
    results: tuple[int, ...]
    dead: tuple[int, ...] = ()


class Interpreter(Protocol):
    """Executes instructions one by one: a method for each, by its name, that takes it with values for slots."""

    def begin(self, step: StepInput) -> None: ...
    def receive(self, value: Any) -> Any:
        """What another interpreter computed, copied to where this one computes."""
        ...


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of instructions on one interpreter: some layers of a model on one device."""

    interpreter: Interpreter
    instructions: tuple[Recorded, ...]
    received: tuple[int, ...]  # slots that are read here and were computed in segments before

    @classmethod
    def of(cls, interpreter: Interpreter, instructions: Sequence[Recorded]) -> "Segment":
        read = {slot for recorded in instructions for slot in recorded.reads.values()}
        made = {slot for recorded in instructions for slot in recorded.results}
        return cls(interpreter, tuple(instructions), tuple(sorted(read - made)))


class Handle:
    """A step under way. On the CPU it is done when `run` returns.

    What a step reads may change as soon as its result has been read, and not before: the blocks and tables of its
    sequences, the buffers of its StepInput. Its Logits, whose full rows stay with the backend, are valid until the next
    step begins; what is wanted longer is copied.
    """

    def __init__(self, result: Logits) -> None:
        self._result = result

    def result(self) -> Logits:
        """Wait for the step; the same Logits every time. Raises StepCancelled where it was cut short."""
        return self._result


class Recorder:
    """Writes down what it is asked; there is no control flow on data in a decoder, so once is enough."""

    def __init__(self) -> None:
        self.recorded: list[Recorded] = []
        self.n_slots = 0

    def __call__(self, instruction: Instruction) -> tuple[Slot, ...]:
        results = range(self.n_slots, self.n_slots + instruction.n_results)
        self.n_slots = results.stop
        self.recorded.append(Recorded(instruction, slots_of(instruction), tuple(results)))
        return tuple(map(Slot, results))


class Program:
    """A recorded decoder. `run` executes one step; a step that sees `cancel` raises StepCancelled."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        self.segments = tuple(segments)
        (self.result,) = self.segments[-1].instructions[-1].results

    def run(self, step: StepInput) -> Handle:
        values: dict[int, Any] = {}
        for segment in self.segments:
            segment.interpreter.begin(step)
            values.update({slot: segment.interpreter.receive(values[slot]) for slot in segment.received})
            for recorded in segment.instructions:
                if step.cancel.is_set():
                    raise StepCancelled
                operands = {field: values[slot] for field, slot in recorded.reads.items()}
                execute = getattr(segment.interpreter, recorded.instruction.name)
                results = execute(replace(recorded.instruction, **operands))
                values.update(zip(recorded.results, results, strict=True))
                for slot in recorded.dead:
                    del values[slot]
        logits: Logits = values[self.result]
        return Handle(logits)


def record_instructions(forward: Forward) -> tuple[Recorded, ...]:
    """What `forward` asks for, in order, each with the slots nothing reads after it. The last one gives the Logits."""
    recorder = Recorder()
    result = forward(recorder)
    assert recorder.recorded[-1].results == (result.index,)
    last_use = {slot: place for place, recorded in enumerate(recorder.recorded) for slot in recorded.reads.values()}
    return tuple(
        replace(recorded, dead=tuple(slot for slot, last in last_use.items() if last == place))
        for place, recorded in enumerate(recorder.recorded)
    )


def slots_of(instruction: Instruction) -> dict[str, int]:
    """The operands of a recorded instruction that are results of others: slots by field."""
    values = ((field.name, getattr(instruction, field.name)) for field in fields(instruction))
    return {name: value.index for name, value in values if isinstance(value, Slot)}
