"""Programs: recorded instructions, replayed step by step on interpreters."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from localrun.base.dataclass import dataclass
from localrun.ops.interface import Logits, StepCancelled, StepInput
from localrun.ops.recording import Recorded


class Interpreter(Protocol):
    """Executes instructions one by one: a method for each, by its name, that takes it with values for slots."""

    def begin(self, step: StepInput) -> None: ...
    def receive(self, value: Any) -> Any:
        """Copy what another interpreter computed to where this one computes."""
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
