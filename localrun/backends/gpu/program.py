"""A recorded decoder on a device: launches bound once for each bucket of rows, and repeated for every step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from localrun.backends.gpu.buffers import Buffers, place
from localrun.backends.gpu.device import Device, Launch
from localrun.backends.gpu.head import Head
from localrun.backends.gpu.scratch import SPLIT_ROWS, bucket_units, power_of_two
from localrun.backends.gpu.step_tensors import StepBuffer, StepShape, rows_alone
from localrun.backends.gpu.translator import Bucket, Translator
from localrun.backends.reference.ops import ReferenceOps
from localrun.backends.reference.pool import KVPool
from localrun.ops.interface import Logits, StepCancelled, StepInput
from localrun.ops.largest_step import MAX_ROWS
from localrun.ops.program import Forward, Handle, record_instructions

FEW_ROWS = (1, 2, 4, 8, 16, 32)  # of small buckets; those of larger ones are multiples of ROW_TILE
ROW_TILE = 64
LEAST_TABLE = 4096  # numbers of block tables that steps have room for at first


class DeviceHandle(Handle):
    """A step that the device may still be computing: whoever asks for its result waits."""

    def __init__(self, read: Callable[[], Logits]) -> None:
        self._read = read
        self._found: Logits | None = None

    def result(self) -> Logits:
        self._found = self._found or self._read()
        return self._found


class GpuProgram:
    """Steps of one model. What has no kernels is computed by the reference operations, on the same memory."""

    def __init__(self, translator: type[Translator], device: Device, forward: Forward, pool: KVPool) -> None:
        self.device, self.pool = device, pool
        recorded = record_instructions(forward)
        self.body = recorded[:-1]
        self.reference = ReferenceOps(pool, device.torch_device)
        self.buffers = Buffers(MAX_ROWS, device.torch_device)
        placed = place(recorded, pool.layers, self.buffers, translator.reads_codes)
        self.translator = translator(device, placed, pool.layers, pool.codecs, self.reference)
        self.head = Head(self.translator, recorded[-1])
        self.by_torch = {
            each.instruction.name for each in self.body if not self.translator.has_kernels(each.instruction)
        }
        self.step: StepBuffer | None = None
        self.launches: dict[Bucket, Sequence[Launch]] = {}

    def run(self, step: StepInput) -> Handle:
        """Begin a step; the one before it has been read. Raises StepCancelled."""
        rows = bucket_rows(step.n_rows)
        n_units = bucket_units(max(sequence.length for sequence in step.sequences))
        bucket = Bucket(rows, n_units, bucket_alone(len(rows_alone(step))) if rows > SPLIT_ROWS else 0)
        buffer = self.step_buffer(step)
        buffer.fill(step, rows)
        if self.by_torch:
            self.reference.begin(step)
        if bucket not in self.launches:
            self.bind(bucket, buffer)
        for launch in self.launches[bucket]:
            if step.cancel.is_set():
                raise StepCancelled
            launch()
        return DeviceHandle(self.head.run(step, buffer.tensors(rows).logits_rows))

    def bind(self, bucket: Bucket, buffer: StepBuffer) -> None:
        """Make the launches of a bucket. Scratch memory that is too small for it goes, with all that points there."""
        if self.translator.reserve_partial(bucket):
            self.launches.clear()
        self.launches[bucket] = self.translator.launches(self.body, bucket, buffer.tensors(bucket.rows))

    def step_buffer(self, step: StepInput) -> StepBuffer:
        """Memory for steps like this one: made anew, with all that points there, when tables outgrow it."""
        n_table = sum(len(blocks) for sequence in step.sequences for blocks in sequence.table)
        if self.step is None or n_table > self.step.table_numbers:
            halves = tuple(cos.shape[-1] for cos, _ in step.cos_sin)
            rings = any(ring is not None for ring in self.pool.ring)
            shape = StepShape(len(self.pool.coded), halves, bool(step.sink_cos_sin), rings)
            self.launches.clear()
            self.step = StepBuffer(shape, MAX_ROWS, max(LEAST_TABLE, 2 * n_table), self.device.torch_device)
        return self.step


def bucket_rows(n_rows: int) -> int:
    """The smallest bucket that so many rows find room in."""
    few = next((rows for rows in FEW_ROWS if rows >= n_rows), 0)
    return few or -(-n_rows // ROW_TILE) * ROW_TILE


def bucket_alone(n: int) -> int:
    """Rounded up to a power of two; 0 stays 0."""
    return n and power_of_two(n)
