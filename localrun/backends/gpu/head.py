"""The end of a step: logits of the rows that are wanted, and the candidates they are chosen from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from localrun.backends.gpu.buffers import Buffer, GpuBuffers
from localrun.backends.gpu.device import Launch
from localrun.backends.gpu.forms import Form
from localrun.backends.gpu.logits import AdjustTensors, FoundCandidates, finish
from localrun.backends.gpu.passes import Pass
from localrun.backends.gpu.scratch import power_of_two
from localrun.backends.gpu.step_tensors import StepTensors
from localrun.backends.gpu.translator import Translator
from localrun.ops.instructions import LogitsOf
from localrun.ops.interface import Logits, StepInput
from localrun.ops.recording import Recorded

FEWEST = 8  # rows that there is room for at first: quantised ones come in eights


@dataclass(frozen=True, slots=True)
class HeadBuffers:
    """Memory for rows of logits."""

    gathered: Buffer  # of what the last norm gave
    rows: Tensor  # f32 [most, vocab]
    adjust: AdjustTensors
    found: FoundCandidates


class LogitsHead:
    """Launches for one, two, four … rows of logits. Their memory grows when more rows are wanted than before."""

    def __init__(self, translator: Translator, recorded: Recorded) -> None:
        assert isinstance(recorded.instruction, LogitsOf)
        self.translator, self.op = translator, recorded.instruction
        self.device, self.read = translator.device, translator.buffers[self.op.a.index]
        self.launches: dict[int, list[Launch]] = {}
        self.buffers: HeadBuffers | None = None

    def begin(self, step: StepInput) -> None:
        """Make room for a step's rows of logits, and tell the device how they change before anything is launched."""
        self.n_logits = len(step.logits_rows)
        self.rows = power_of_two(self.n_logits)
        self.now = self.buffers_for(self.rows)
        if self.n_logits and self.now.adjust.fill(step.adjust, self.n_logits):
            self.launches.clear()

    def gather(self, one: Pass, step: StepTensors) -> None:
        """Take what the last norm gave of the rows of a pass. `step`: the pass on the device."""
        read, n, into = self.read.x(one.rows), len(one.wanted), self.now.gathered.x(self.rows)
        if n and n == self.n_logits:
            chosen = step.logits_rows[: self.rows]  # with padding, as far as there is any
            torch.index_select(read, 0, chosen, out=into[: len(chosen)])
        elif n:
            into[step.logits_places[:n]] = read[step.logits_rows[:n]]

    def run(self) -> Callable[[], Logits]:
        """Go on with what was gathered; what is given waits for the device."""
        n, rows, buffers = self.n_logits, self.rows, self.now
        if rows not in self.launches:
            self.launches[rows] = self.bind(buffers, rows)
        if n:
            for launch in self.launches[rows]:
                launch()
        return lambda: buffers.found.read(buffers.rows[:n])

    def buffers_for(self, rows: int) -> HeadBuffers:
        if self.buffers is None or len(self.buffers.rows) < rows:
            most, where = max(rows, FEWEST), self.device.torch_device
            self.launches.clear()
            self.buffers = None  # before there are others
            coded = self.translator.reads_codes(self.op.weight)
            gathered = GpuBuffers(most, where).make(Form(self.op.weight.n_cols, plain=True, coded=coded))
            logits = torch.empty(most, self.op.weight.n_rows, device=where)
            self.buffers = HeadBuffers(gathered, logits, AdjustTensors(most, where), FoundCandidates.empty(most, where))
        return self.buffers

    def bind(self, buffers: HeadBuffers, rows: int) -> list[Launch]:
        op, logits = self.op, buffers.rows[:rows]
        made = self.translator.logits(buffers.gathered, op.weight, logits, rows)
        rest = finish(self.device, logits, buffers.adjust, buffers.found, rows, scale=op.scale, softcap=op.softcap)
        return [*made, *rest]
