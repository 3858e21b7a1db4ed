"""A recorded decoder on a device: launches bound once for each bucket of rows, and repeated for every step."""

from __future__ import annotations

from collections.abc import Sequence

from localrun.backends.gpu.ahead import StepsAhead
from localrun.backends.gpu.buffers import Buffer, GpuBuffers, place
from localrun.backends.gpu.device import Device, Launch
from localrun.backends.gpu.forms import slot_forms
from localrun.backends.gpu.graphs import GRAPH_ROWS, Graphs, StepKey
from localrun.backends.gpu.handle import DeviceHandle
from localrun.backends.gpu.head import LogitsHead
from localrun.backends.gpu.passes import Pass, passes
from localrun.backends.gpu.scratch import SPLIT_ROWS, bucket_units, power_of_two
from localrun.backends.gpu.step_tensors import StepBuffer, StepShape, n_table, rows_alone
from localrun.backends.gpu.translator import Bucket, Translator
from localrun.backends.reference.ops import ReferenceOps
from localrun.backends.reference.pool import KVPool
from localrun.base.device_figures import DeviceFigures
from localrun.ops.instructions import Embed, Linear
from localrun.ops.interface import CancelFlag, StepCancelled, StepInput
from localrun.ops.largest_step import max_rows
from localrun.ops.program import Handle
from localrun.ops.recording import Recorded

COMMITS = (16, 64, 160)  # launches of a step after which the device is to begin, if it has not: it catches up
LEAST_TABLE = 4096  # numbers of block tables that steps have room for at first


class GpuProgram:
    """Steps of one model. What has no kernels is computed by the reference operations, on the same memory."""

    def __init__(
        self, translator: type[Translator], device: Device, recorded: Sequence[Recorded], pool: KVPool, span: int = 0
    ) -> None:
        """`span`: tokens that prompts are read in bulk by, where nothing is left to torch; 0: they are not."""
        self.device, self.pool = device, pool
        self.reference = ReferenceOps(pool, device.torch_device)
        placed: dict[int, Buffer] = {}
        self.translator = translator(device, placed, pool.layers, pool.codecs, self.reference)
        tables = [each for each in recorded if self.is_table(each)]
        recorded = [*tables, *(each for each in recorded if not self.is_table(each))]  # tables read nothing before them
        self.body = recorded[len(tables) : -1]
        self.tables = [self.translator.by_torch(each) for each in tables]
        self.by_torch = {
            each.instruction.name for each in self.body if not self.translator.has_kernels(each.instruction)
        }
        linears = [each.instruction for each in self.body if isinstance(each.instruction, Linear)]
        in_bulk = [op for op in linears if span and self.is_ours and translator.reads_in_bulk(op)]
        self.span = span if in_bulk else 0
        self.max_rows = max_rows(self.span)
        self.buffers = GpuBuffers(self.max_rows, device.torch_device)
        forms = slot_forms(recorded, pool.layers, translator.reads_codes, bool(in_bulk))
        placed.update(place(recorded, forms, self.buffers))
        self.translator.reserve_mixed(self.body, self.max_rows)
        if in_bulk:
            self.translator.make_room(in_bulk, self.max_rows, span)
        self.head = LogitsHead(self.translator, recorded[-1])
        self.step: StepBuffer | None = None
        self.launches: dict[Bucket, Sequence[Launch]] = {}  # of bodies
        self.graphs = Graphs(device)
        self.ahead = StepsAhead(self)

    def is_table(self, recorded: Recorded) -> bool:
        """Whether torch reads rows of it by the step's tokens: before all else, which may be a graph."""
        return isinstance(recorded.instruction, Embed) and not self.translator.has_kernels(recorded.instruction)

    @property
    def is_ours(self) -> bool:
        """Whether torch has no part in it."""
        return not self.by_torch and not self.tables

    @property
    def runs_ahead(self) -> bool:
        """Whether steps are begun ahead."""
        return self.device.has_graphs and self.is_ours

    @property
    def device_steps(self) -> DeviceFigures:
        """Steps so far, as Executor has them."""
        return DeviceFigures(self.ahead.n_begun, self.ahead.n_used, self.graphs.n_without_room)

    def run(self, step: StepInput) -> Handle:
        """Begin a step, unless it has been begun ahead; the one before it has been read. Raises StepCancelled."""
        handle = self.ahead.take(step) or self.begin(step)
        if step.ahead is not None and self.runs_ahead:
            self.ahead.begin(handle, step.ahead)
        return handle

    def begin(self, step: StepInput) -> DeviceHandle:
        """Begin a step. Raises StepCancelled."""
        buffer = self.step_buffer(step)
        if self.head.begin(step):
            self.graphs.clear()
        *before, last = passes(step, self.span, self.max_rows)
        for one in before:
            self.run_pass(one, buffer, ends=False)
        self.run_pass(last, buffer, ends=bool(step.logits_rows))
        return self.handle()

    def handle(self) -> DeviceHandle:
        """The step that was launched last."""
        return DeviceHandle(self.device, self.head, self.head.send())

    def run_pass(self, one: Pass, buffer: StepBuffer, *, ends: bool) -> None:
        """Begin the launches of some rows of a step, and with `ends` those of its logits. Raises StepCancelled."""
        n_units = bucket_units(max(sequence.length for sequence in one.step.sequences))
        n_alone = bucket_alone(len(rows_alone(one.step))) if one.rows > SPLIT_ROWS else 0
        bucket = Bucket(one.rows, n_units, n_alone, one.span)
        buffer.fill(one.step, one.rows, one.places, one.wanted)
        if not self.is_ours:
            self.reference.begin(one.step)
        self.launch(StepKey(bucket, self.head.rows if len(one.wanted) else 0, ends), buffer, one.step.cancel)

    def launch(self, key: StepKey, buffer: StepBuffer, cancel: CancelFlag) -> None:
        """Begin a pass that the device knows: as one launch if there is such. Raises StepCancelled."""
        graph = self.graphs.get(key)
        launches = self.launches_of(key, buffer) if graph is None else [graph]
        for launch in (*self.tables, *launches):
            if cancel.is_set():
                raise StepCancelled
            launch()
        if graph is None and not self.by_torch:
            self.graphs.add(key, launches)

    def launches_of(self, key: StepKey, buffer: StepBuffer) -> list[Launch]:
        """All launches of a pass, one by one."""
        if key.bucket not in self.launches:
            self.bind(key.bucket, buffer)
        launches, step = [*self.launches[key.bucket]], buffer.tensors(key.bucket.rows)
        if key.drawn:
            launches.insert(0, self.head.take_drawn(step))
        if key.logits:
            launches.append(self.head.gather(key.bucket.rows, step))
        if key.ends:
            launches += self.head.finish()
            if self.runs_ahead and key.bucket.rows <= GRAPH_ROWS:
                launches.append(self.head.draw(step))
        return launches

    def bind(self, bucket: Bucket, buffer: StepBuffer) -> None:
        """Make the launches of a bucket. Scratch memory that is too small for it goes, with all that points there."""
        if self.translator.reserve_partial(bucket):
            self.forget()
        launches = self.translator.launches(self.body, bucket, buffer.tensors(bucket.rows))
        for n in reversed(COMMITS):
            launches[n:n] = [self.device.commit] if n < len(launches) else []
        self.launches[bucket] = launches

    def forget(self) -> None:
        """Let go of everything that points to memory which is about to go."""
        self.launches.clear()
        self.graphs.clear()

    def step_buffer(self, step: StepInput) -> StepBuffer:
        """Memory for steps like this one; reallocated, with everything that points there, when tables outgrow it."""
        if self.step is None or n_table(step) > self.step.table_numbers:
            halves = tuple(cos.shape[-1] for cos, _ in step.cos_sin)
            rings = any(ring is not None for ring in self.pool.ring)
            states = any(layer.state_size for layer in self.pool.layers)
            shape = StepShape(len(self.pool.coded), halves, bool(step.sink_cos_sin), rings, states)
            self.forget()
            self.step = StepBuffer(shape, self.max_rows, max(LEAST_TABLE, 2 * n_table(step)), self.device)
        return self.step


def bucket_alone(n: int) -> int:
    """Rounded up to a power of two; 0 stays 0."""
    return n and power_of_two(n)
