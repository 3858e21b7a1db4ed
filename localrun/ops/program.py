"""Programs: the decoder runs once on a recorder; from then on a step replays the list of operations."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from localrun.ops.interface import Logits, Ops, StepCancelled, StepInput
from localrun.ops.layouts import Packed, Vector
from localrun.ops.terms import Form, GatedActivation, QKNorm


@dataclass(frozen=True, slots=True)
class Slot:
    """The future result of a recorded operation."""

    index: int


@dataclass(frozen=True, slots=True)
class Instruction:
    """One recorded call; `dead` are the slots nothing reads afterwards."""

    op: str
    arguments: tuple[Any, ...]
    results: tuple[int, ...]
    dead: tuple[int, ...] = ()


class Backend(Protocol):
    """Executable operations bound to a device and a cache."""

    def begin(self, step: StepInput) -> None: ...


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of instructions on one backend; values cross to the next segment as they are."""

    backend: Backend
    instructions: tuple[Instruction, ...]


class Handle:
    """A step under way. On the CPU it is done when `run` returns."""

    def __init__(self, result: Logits) -> None:
        self._result = result

    def result(self) -> Logits:
        return self._result


class Recorder:
    """An `Ops` that writes down what it is asked; there is no control flow on data in a decoder, so once is enough."""

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self.n_slots = 0

    def emit(self, op: str, arguments: tuple[Any, ...], n_results: int = 1) -> list[Slot]:
        slots = [Slot(self.n_slots + i) for i in range(n_results)]
        self.n_slots += n_results
        self.instructions.append(Instruction(op, arguments, tuple(slot.index for slot in slots)))
        return slots

    def embed(self, weight: Packed, scale: float) -> Slot:
        return self.emit("embed", (weight, scale))[0]

    def norm(
        self, x: Slot, weight: Vector, eps: float, residual: Slot | None = None, forms: tuple[Form, ...] = ("f32",)
    ) -> Slot:
        return self.emit("norm", (x, weight, eps, residual, forms))[0]

    def linear(
        self,
        a: Slot,
        weights: Sequence[tuple[Packed, Vector | None]],
        out_scale: float = 1.0,
        residual: Slot | None = None,
        act: GatedActivation = "none",
    ) -> list[Slot]:
        n_results = len(weights) if act == "none" else 1
        return self.emit("linear", (a, tuple(weights), out_scale, residual, act), n_results)

    def rope_append(
        self,
        q: Slot,
        k: Slot,
        v: Slot,
        layer: int,
        rope: int | None,
        qk_norm: QKNorm = "none",
        q_weight: Vector | None = None,
        k_weight: Vector | None = None,
        eps: float = 0.0,
        sink_query: bool = False,
    ) -> tuple[Slot, Slot | None]:
        arguments = (q, k, v, layer, rope, qk_norm, q_weight, k_weight, eps, sink_query)
        turned, *sink = self.emit("rope_append", arguments, 1 + sink_query)
        return turned, sink[0] if sink else None

    def attention(
        self,
        q: Slot,
        layer: int,
        scale: float,
        softcap: float | None = None,
        window: int | None = None,
        sinks: Vector | None = None,
        sink_query: Slot | None = None,
        sink_window: int | None = None,
    ) -> Slot:
        arguments = (q, layer, scale, softcap, window, sinks, sink_query, sink_window)
        return self.emit("attention", arguments)[0]

    def moe(
        self,
        a: Slot,
        router: Packed,
        experts: tuple[Packed, Packed, Packed],
        top_k: int,
        normalize: bool,
        act: GatedActivation = "silu_mul",
        out_scale: float = 1.0,
        residual: Slot | None = None,
    ) -> Slot:
        return self.emit("moe", (a, router, experts, top_k, normalize, act, out_scale, residual))[0]

    def logits(self, a: Slot, weight: Packed, scale: float = 1.0, softcap: float | None = None) -> Slot:
        return self.emit("logits", (a, weight, scale, softcap))[0]


class Program:
    """A recorded decoder. `run` executes one step; a step that sees `cancel` raises StepCancelled."""

    def __init__(self, segments: Sequence[Segment], n_slots: int, result: Slot) -> None:
        self.segments = tuple(segments)
        self.n_slots = n_slots
        self.result = result

    def run(self, step: StepInput) -> Handle:
        values: list[Any] = [None] * self.n_slots
        for segment in self.segments:
            segment.backend.begin(step)
            for instruction in segment.instructions:
                if step.cancel.is_set():
                    raise StepCancelled
                arguments = [values[a.index] if isinstance(a, Slot) else a for a in instruction.arguments]
                results = getattr(segment.backend, instruction.op)(*arguments)
                for index, value in zip(instruction.results, present(results), strict=True):
                    values[index] = value
                for index in instruction.dead:
                    values[index] = None
        result: Logits = values[self.result.index]
        return Handle(result)


def present(results: Any) -> Sequence[Any]:
    """What an operation returned, one value a slot: a list, one value, or a tuple whose absent parts have no slot."""
    if isinstance(results, tuple):
        return [value for value in results if value is not None]
    return results if isinstance(results, list) else [results]


def record(forward: Callable[[Ops], Any], backend: Backend) -> Program:
    """Run `forward` once on a recorder and keep what it asked for, to be executed by `backend`."""
    instructions = record_instructions(forward)
    n_slots = sum(len(i.results) for i in instructions)
    return Program([Segment(backend, instructions)], n_slots, Slot(instructions[-1].results[0]))


def record_instructions(forward: Callable[[Ops], Any]) -> tuple[Instruction, ...]:
    """What `forward` asks for, in order, each with the slots nothing reads after it. The last one gives the Logits."""
    recorder = Recorder()
    result = forward(recorder)
    assert recorder.instructions[-1].results == (result.index,)
    last_use = {
        argument.index: position
        for position, instruction in enumerate(recorder.instructions)
        for argument in instruction.arguments
        if isinstance(argument, Slot)
    }
    return tuple(
        Instruction(i.op, i.arguments, i.results, tuple(slot for slot, last in last_use.items() if last == position))
        for position, i in enumerate(recorder.instructions)
    )
