"""Working memory of the largest step in the native library, and states: counted before anything is loaded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from localrun.backends.cpu.abi import ADAPTER_SPAN, SCRATCH_BYTES
from localrun.backends.cpu.buffers import row_stride
from localrun.base.dataclass import dataclass
from localrun.ops.instructions import Instruction, Linear, LogitsOf, Moe
from localrun.ops.largest_step import MAX_ROWS
from localrun.ops.latent import HeadLinear
from localrun.ops.recording import Recorded, Recording
from localrun.ops.recurrent import GatedDeltaRule, SelectiveScan
from localrun.ops.widths import most_alive, slot_widths

if TYPE_CHECKING:
    from localrun.backends.cpu.bindings import CpuCalls
    from localrun.ops.cache_layer import CacheLayer
    from localrun.ops.encoder_program import EncoderRecording


@dataclass(frozen=True, slots=True)
class Rows:
    """A buffer: `copies` times `width` numbers of a row of a step, as f32 and, where linears read them, as codes."""

    width: int
    coded: bool = False
    copies: int = 1

    @property
    def row_bytes(self) -> int:
        """Bytes of codes for the formats that take the most: bf16, or 16 bits, for 32 a scale of 32 and two sums."""
        stride = row_stride(self.width)
        return self.copies * (4 * stride + self.coded * stride * (2 * 32 + 4 + 2 * 4) // 32)


@dataclass(frozen=True, slots=True)
class Arena:
    """Sizes of the library's buffers for a row of a step and for a row of logits; and shapes of heads."""

    row_bytes: int
    logits_bytes: int
    heads: frozenset[tuple[int, int]]  # how many, and the size of their values

    def nbytes(self, threads: int, sequences: int) -> int:
        return MAX_ROWS * self.row_bytes + sequences * self.logits_bytes + threads * SCRATCH_BYTES


@lru_cache(maxsize=64)
def arena_of(model: Recording) -> Arena:
    """Buffers as `program.ProgramBuilder` reserves them, and what kernels keep for a row between their phases."""
    *body, last = model.instructions
    assert isinstance(last.instruction, LogitsOf)
    widths, coded = slot_widths(body, model.layers, model.given), slots_coded(body)
    kinds = {slot: Rows(width, slot in coded) for slot, width in widths.items()}
    buffers = most_alive(body, kinds, buffers_within)
    buffers += Counter(kinds[slot] for slot in range(len(model.given)))
    buffers[Rows(last.instruction.weight.n_cols, coded=True)] += 1  # rows that want logits
    between = max(bytes_between(each.instruction) for each in body)
    row_bytes = between + sum(n * rows.row_bytes for rows, n in buffers.items())
    places = (place for place in model.layers if place.head_dim)
    heads = frozenset((place.n_heads, place.value_dim or place.head_dim) for place in places)
    return Arena(row_bytes, 4 * last.instruction.weight.n_rows, heads)


def encoder_bytes(recording: EncoderRecording, n_rows: int, threads: int) -> int:
    """Buffers as `CpuEncoder` reserves them; what an instruction keeps beside them is in the scratch of threads."""
    body = list(recording.instructions)
    widths, coded = slot_widths(body, (), recording.given), slots_coded(body)
    kinds = {slot: Rows(width, slot in coded) for slot, width in widths.items()}
    buffers = most_alive(body, kinds, given=range(len(recording.given)))
    return n_rows * sum(n * rows.row_bytes for rows, n in buffers.items()) + threads * SCRATCH_BYTES


def slots_coded(recorded: list[Recorded]) -> set[int]:
    """Slots that some linear reads."""
    reads = [each.reads for each in recorded if isinstance(each.instruction, Linear | Moe)]
    return {slot for read in reads for name, slot in read.items() if name in ("a", "chosen_by")}


def buffers_within(op: Instruction) -> Iterator[Rows]:
    """Buffers inside an instruction.

    Of a mixture: scores, each choice of a row on its way into an expert, within and out, the shared expert. Of a
    linear: for each adapter, the rows between its two matrices. Of matrices of heads: every head of a row.
    """
    if isinstance(op, Linear):
        yield from (Rows(adapter.a.n_rows) for weight in op.weights for adapter in weight.adapters)
    if isinstance(op, HeadLinear):
        yield Rows(op.weight.packed.n_cols, coded=True, copies=op.n_heads)
    if not isinstance(op, Moe):
        return
    n, n_used = op.router.n_experts, op.router.routing.n_used
    up, down = op.experts.up.packed, op.experts.down.packed
    yield Rows(n)
    yield Rows(up.n_cols, coded=True, copies=n_used)
    yield Rows(down.n_cols, coded=True, copies=n_used)
    yield Rows(down.n_rows // n, copies=n_used)
    if op.shared is not None:
        shared = op.shared.expert.down.packed
        yield Rows(shared.n_cols, coded=True)
        yield Rows(shared.n_rows)
        yield Rows(1)


def span_bytes(rank: int, n_in: int) -> int:
    """Bytes of the sums of a row that threads make of spans of columns of an adapter's A."""
    return 4 * 16 * -(-rank // 16) * -(-n_in // ADAPTER_SPAN)


def bytes_between(op: Instruction) -> int:
    """Bytes that a kernel keeps for a row beside its buffers."""
    if isinstance(op, Linear):
        adapters = [adapter.a for weight in op.weights for adapter in weight.adapters]
        return sum(span_bytes(a.n_rows, a.n_cols) for a in adapters)
    if isinstance(op, GatedDeltaRule):
        return 4 * 2 * (op.n_key_heads * op.key_dim + op.n_value_heads)
    if isinstance(op, SelectiveScan):
        return 4 * 2 * op.n_heads
    if isinstance(op, Moe):  # which choices go where, and where in a step those of an expert begin
        return 12 * op.router.routing.n_used + -(-4 * (op.router.n_experts + 1) // MAX_ROWS)
    return 0


def layer_block_bytes(calls: CpuCalls, code: int, layer: CacheLayer) -> int:
    """Bytes of a layer in a block, held as the codec of that number; -1 for what the library cannot hold."""
    if layer.state_size:
        return -(-4 * layer.state_size // 64) * 64  # f32 numbers, in whole cache lines
    if layer.value_dim is not None:
        return calls.latent_block_bytes(code, layer.head_dim, layer.value_dim)
    return calls.kv_block_bytes(code, layer.n_kv_heads, layer.head_dim)
