"""The end of a step: logits of the rows that are wanted, and the candidates they are chosen from."""

from __future__ import annotations

import torch
from torch import Tensor

from localrun.backends.gpu.buffers import Buffer, GpuBuffers
from localrun.backends.gpu.device import Launch
from localrun.backends.gpu.elementwise import gather_rows
from localrun.backends.gpu.forms import Form
from localrun.backends.gpu.logits import AdjustTensors, FoundCandidates, draw_next, finish, logits_of, take_drawn
from localrun.backends.gpu.scratch import power_of_two
from localrun.backends.gpu.staging import Arrival
from localrun.backends.gpu.step_tensors import StepTensors
from localrun.backends.gpu.translator import Translator
from localrun.base.dataclass import dataclass
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

    def begin(self, step: StepInput) -> bool:
        """Make room for a step's rows of logits, and tell the device how they change, before anything is launched ->
        whether anything has moved that launches were bound to before."""
        self.n_logits = len(step.logits_rows)
        self.rows = power_of_two(self.n_logits)  # with padding
        before = self.buffers
        self.now = self.buffers_for(self.rows)
        moved = self.now is not before
        if self.n_logits and self.now.adjust.fill(step.adjust, self.n_logits):
            moved = True
        if moved:
            self.launches.clear()
        return moved

    def gather(self, rows: int, step: StepTensors) -> Launch:
        """Take what the last norm gave of a pass of so many rows. `step`: the pass on the device."""
        n = min(self.rows, len(step.logits_rows))
        into = self.now.gathered.x(self.rows)
        return gather_rows(self.device, self.read.x(rows), step.logits_rows[:n], step.logits_places[:n], into)

    def finish(self) -> list[Launch]:
        """Launches that go on with what was gathered."""
        if self.rows not in self.launches:
            self.launches[self.rows] = self.bind(self.now, self.rows)
        return self.launches[self.rows]

    def send(self) -> Arrival:
        """Have the device copy what it finds of a step's rows to main memory."""
        found = self.now.found
        return found.begin(self.n_logits) if self.n_logits else found.arrivals[0]

    def logits(self, arrival: Arrival, is_overtaken: bool) -> Logits:
        """The logits of a step, once the device has computed them; without the rows where another has begun since."""
        return logits_of(arrival, self.now.rows[: 0 if is_overtaken else self.n_logits], self.n_logits)

    def draw(self, step: StepTensors) -> Launch:
        """Draw the next tokens of a step's rows. `step`: the step on the device."""
        return draw_next(self.device, step.draws, self.now.found, self.rows, self.op.weight.n_rows)

    def take_drawn(self, step: StepTensors) -> Launch:
        """Go on with the tokens that were drawn."""
        return take_drawn(self.device, self.now.found, step.token_ids)

    def is_adjusted(self, step: StepInput) -> bool:
        """Whether the device knows already how a step's rows of logits change."""
        return self.now.adjust.holds(step.adjust[: self.n_logits])

    def buffers_for(self, rows: int) -> HeadBuffers:
        if self.buffers is None or len(self.buffers.rows) < rows:
            most, device = max(rows, FEWEST), self.device
            self.launches.clear()
            self.buffers = None  # before there are others
            coded = self.translator.reads_codes(self.op.weight)
            where = device.torch_device
            gathered = GpuBuffers(most, where).make(Form(self.op.weight.n_cols, plain=True, coded=coded))
            logits = torch.empty(most, self.op.weight.n_rows, device=where)
            self.buffers = HeadBuffers(gathered, logits, AdjustTensors(most, device), FoundCandidates(most, device))
        return self.buffers

    def bind(self, buffers: HeadBuffers, rows: int) -> list[Launch]:
        op, logits = self.op, buffers.rows[:rows]
        made = self.translator.logits(buffers.gathered, op.weight, logits, rows)
        rest = finish(self.device, logits, buffers.adjust, buffers.found, rows, scale=op.scale, softcap=op.softcap)
        return [*made, *rest]
