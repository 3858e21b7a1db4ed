"""Programs of encoders: recorded once, run on rows that the caller brings; no pool, no tables, no chunks."""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from localrun.base.dataclass import dataclass
from localrun.ops.interface import Angles, CancelFlag, SequenceInput, StepInput
from localrun.ops.recording import Ops, Recorded, Recorder, with_dead_slots
from localrun.ops.types import Value

EncoderForward = Callable[[Ops, Sequence[Value]], Value]  # of the rows that are given: gives those of the result


@dataclass(frozen=True, eq=False, slots=True)
class EncoderRecording:
    """A whole encoder. Its first slots are given: f32 [R, width] each; `result` is what it is for."""

    instructions: tuple[Recorded, ...]
    given: tuple[int, ...]  # widths
    result: int


def record_encoder(forward: EncoderForward, given: Sequence[int]) -> EncoderRecording:
    """Record `forward` on rows of the given widths."""
    recorder = Recorder()
    result = forward(recorder, [recorder.slot() for _ in given])
    return EncoderRecording(with_dead_slots(recorder.recorded), tuple(given), result.index)


@dataclass(frozen=True, slots=True)
class EncoderInput:
    """Rows of some sequences, one after the other; `cancel` is looked at between operations."""

    given: Sequence[np.ndarray]  # f32 [R, width]
    lengths: Sequence[int]  # rows of each sequence
    cos_sin: Sequence[Angles]  # per rope kind
    cancel: CancelFlag

    def step(self) -> StepInput:
        """The step as decoders have it: without tokens, blocks and logits."""
        positions = [position for n in self.lengths for position in range(n)]
        row_sequence = [number for number, n in enumerate(self.lengths) for _ in range(n)]
        sequences = [SequenceInput(n, (), ()) for n in self.lengths]
        rows = ([0] * len(positions), positions, row_sequence, sequences)
        return StepInput(*rows, logits_rows=(), cos_sin=self.cos_sin, cancel=self.cancel)


class Encoder(Protocol):
    """An encoder on one backend, with working memory for a number of rows."""

    def run(self, rows: EncoderInput, progress: Callable[[float], None]) -> np.ndarray:
        """Compute the result of all rows, f32 [R, width]. Raises StepCancelled, or MemoryError."""
        ...

    def close(self) -> None:
        """Give the working memory back."""
        ...
