"""Steps that a device begins before the host knows their tokens: with those that the device has drawn itself.

The host goes by its own choice. A step that was begun ahead counts where it reads all that the one reads that is asked
for, and the host has chosen the same tokens; otherwise the step is computed as if nothing had been begun. What it wrote
to the cache then lies after the end of its text, where the next tokens are written, or is a state that they replace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Protocol

from localrun.backends.gpu.device import Launch
from localrun.backends.gpu.graphs import GRAPH_ROWS, StepKey
from localrun.backends.gpu.handle import DeviceHandle
from localrun.backends.gpu.head import LogitsHead
from localrun.backends.gpu.passes import bucket_rows
from localrun.backends.gpu.scratch import bucket_units
from localrun.backends.gpu.staging import Arrival
from localrun.backends.gpu.step_tensors import StepBuffer, n_table
from localrun.backends.gpu.translator import Bucket
from localrun.base.dataclass import dataclass
from localrun.ops.interface import CancelFlag, SequenceInput, StepInput
from localrun.ops.sampling import Draw


class BoundProgram(Protocol):
    """The parts of a program (GpuProgram) that steps are begun by."""

    span: int
    max_rows: int
    head: LogitsHead
    step: StepBuffer | None
    launches: dict[Bucket, Sequence[Launch]]

    def launch(self, key: StepKey, buffer: StepBuffer, cancel: CancelFlag) -> None: ...
    def handle(self) -> DeviceHandle: ...


@dataclass(frozen=True, slots=True)
class BegunStep:
    """A step that was begun ahead: what it reads, how the next tokens are drawn, and what arrives of the one before."""

    handle: DeviceHandle
    rows: int
    read: tuple[object, ...]
    draws: list[Draw]
    before: Arrival


class StepsAhead:
    """At most one step that was begun ahead."""

    def __init__(self, program: BoundProgram) -> None:
        self.program = program
        self.begun: BegunStep | None = None
        self.n_begun = self.n_used = self.n_unused = 0

    def begin(self, newest: DeviceHandle, step: StepInput) -> None:
        """Begin `step`, whose rows go on with those of `newest`, where it is like others that were recorded."""
        program, rows = self.program, self.rows_of(step)
        buffer = program.step
        if rows is None or buffer is None or step.cancel.is_set() or not program.head.is_adjusted(step):
            return
        bucket = Bucket(rows, bucket_units(max(sequence.length for sequence in step.sequences)))
        if bucket not in program.launches:
            return  # memory may have to move for it
        buffer.fill(step, rows)
        program.launch(StepKey(bucket, program.head.rows, ends=True, drawn=True), buffer, step.cancel)
        newest.is_overtaken = True
        self.begun = BegunStep(program.handle(), rows, read_by(step), list(step.draws), newest.arrival)
        self.n_begun += 1

    def take(self, step: StepInput) -> DeviceHandle | None:
        """The step that was begun ahead, if it is this one."""
        begun, self.begun = self.begun, None
        if begun is None:
            return None
        is_it = not step.cancel.is_set() and self.is_same(begun, step)
        self.n_used, self.n_unused = self.n_used + is_it, self.n_unused + (not is_it)
        return begun.handle if is_it else None

    def is_same(self, begun: BegunStep, step: StepInput) -> bool:
        """Whether a step reads what was sent, and its tokens are those that were drawn."""
        if read_by(step) != begun.read or not self.program.head.is_adjusted(step):
            return False
        drawn: list[int] = begun.before.wait()[: step.n_rows, -1].tolist()
        # of the last step of an answer nothing is drawn
        return drawn == list(step.token_ids) and list(step.draws) in ([], begun.draws)

    def rows_of(self, step: StepInput) -> int | None:
        """Rows of its bucket, where it is one pass of few rows, all with logits, that finds room."""
        program, n = self.program, step.n_rows
        if program.step is None or n > GRAPH_ROWS or not n == len(step.logits_rows) == program.head.n_logits:
            return None
        in_bulk = any(
            step.sequences[index].n_bulk > at for index, at in zip(step.row_sequence, step.positions, strict=True)
        )
        return None if in_bulk or n_table(step) > program.step.table_numbers else bucket_rows(n)


OF_SEQUENCE = attrgetter(*(field.name for field in fields(SequenceInput) if field.name not in ("table", "ring")))


def read_by(step: StepInput) -> tuple[object, ...]:
    """Operands of a step of text beside its tokens, as they are now: tables are the cache's own, and change. Angles and
    scales of queries follow from positions."""
    tables = [[blocks[:] for blocks in (*each.table, *each.ring)] for each in step.sequences]
    rows = (list(step.positions), list(step.row_sequence), list(step.logits_rows))
    return (*rows, tables, [OF_SEQUENCE(each) for each in step.sequences])
