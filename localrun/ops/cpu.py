"""The native CPU backend: weights in the library's layouts, a step as one native call."""

import ctypes
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from localrun.base.errors import ModelFileError
from localrun.formats.decode_iq import grid_table
from localrun.formats.quant import QUANT_TYPES
from localrun.ops import cpu_abi as abi
from localrun.ops.cpu_calls import CpuCalls
from localrun.ops.cpu_program import Buffers, ProgramBuilder
from localrun.ops.executor import Forward
from localrun.ops.interface import CacheLayer, LogitAdjust, Logits, StepCancelled, StepInput
from localrun.ops.kv import KVCodec
from localrun.ops.layouts import Packed, RowReader
from localrun.ops.program import Handle, record_instructions

GRIDS = {name: name for name in ("IQ1_S", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S")} | {"IQ1_M": "IQ1_S"}
LANES = 16  # rows a layout interleaves
CANDIDATES = np.dtype(
    [
        ("ids", np.int32, abi.MAX_CANDIDATES),
        ("values", np.float32, abi.MAX_CANDIDATES),
        ("logsumexp", np.float64),
        ("n_candidates", np.int32),
        ("finite", np.int32),
    ]
)


@dataclass(frozen=True)
class CpuLayout:
    """The library's layouts, one for every quant type; slabs of a matrix are read and packed side by side."""

    calls: CpuCalls
    n_threads: int
    name: str = "cpu"

    def holds(self, qtype: str) -> bool:
        """Whether the library has a layout for a type."""
        return QUANT_TYPES[qtype].gguf_id is not None and self.layout_of(qtype) >= 0

    def holds_cache(self, codec: KVCodec, n_kv_heads: int, head_dim: int) -> bool:
        """Whether the library has blocks for keys and values of that shape."""
        code = abi.KV_CODES.get(codec.name)
        return code is not None and self.calls.kv_block_bytes(code, n_kv_heads, head_dim) >= 0

    def layout_of(self, qtype: str) -> int:
        return self.calls.layout_for(gguf_id(qtype))

    def nbytes(self, qtype: str, n_rows: int, n_cols: int) -> int:
        return self.calls.packed_bytes(self.layout_of(qtype), n_rows, n_cols)

    def pack(self, rows: RowReader) -> Packed:
        n_bytes = self.nbytes(rows.qtype, rows.n_rows, rows.n_cols)
        if n_bytes < 0:
            raise ModelFileError("BAD_ROW", f"a {rows.qtype} matrix cannot have rows of {rows.n_cols} columns")
        if rows.qtype in GRIDS:
            self.calls.set_grid(gguf_id(rows.qtype), grid_table(GRIDS[rows.qtype]).astype(np.int8).tobytes())
        packed = Packed(self, rows.qtype, rows.n_rows, rows.n_cols, (torch.empty(n_bytes, dtype=torch.uint8),))
        matrix = self.matrix(packed)
        step = rows.slab_rows(multiple=LANES)

        def pack_slab(first: int) -> None:
            raw = rows.read(first, min(step, rows.n_rows - first)).contiguous()
            self.calls.pack(matrix, gguf_id(rows.qtype), raw.data_ptr(), first, len(raw))

        starts = range(0, rows.n_rows, step)
        if len(starts) == 1:
            pack_slab(0)
        else:
            with ThreadPoolExecutor(self.n_threads) as threads:
                list(threads.map(pack_slab, starts))
        return packed

    def unpack(self, packed: Packed, rows: "slice | Tensor") -> Tensor:
        numbers = range(packed.n_rows)[rows] if isinstance(rows, slice) else rows.tolist()
        out = torch.empty(len(numbers), packed.n_cols)
        matrix = self.matrix(packed)
        for place, number in enumerate(numbers):
            self.calls.unpack_row(matrix, number, out[place].data_ptr())
        return out

    def matrix(self, packed: Packed) -> abi.Matrix:
        """The C view of a packed matrix; valid while `packed` lives."""
        (plane,) = packed.planes
        return abi.Matrix(
            packed.n_rows, packed.n_cols, self.layout_of(packed.qtype), 0, plane.data_ptr(), plane.numel()
        )

    def form(self, packed: Packed) -> int:
        """The form of its activations a linear on this matrix reads."""
        return self.calls.layout_form(self.layout_of(packed.qtype))


class CpuExecutor:
    """A model's program, arena and cache in the native library. Logits stay valid until the next step."""

    device = torch.device("cpu")

    def __init__(
        self,
        layout: CpuLayout,
        forward: Forward,
        layers: Sequence[CacheLayer],
        n_blocks: int,
        codec: KVCodec,
        max_rows: int,
        max_logits: int,
    ) -> None:
        self.calls = layout.calls
        self.max_rows, self.max_logits = max_rows, max_logits
        self.reserved: list[tuple[int, int]] = []
        self.n_groups = 1 + max(layer.group for layer in layers)
        self.layers, self.block_bytes, self.pools = self.make_pools(layers, n_blocks, codec)
        self.kv_nbytes = n_blocks * sum(self.block_bytes)
        buffers = Buffers(self.reserve, max_rows)
        builder = ProgramBuilder(record_instructions(forward), layers, buffers, layout.matrix, layout.form, max_logits)
        instructions = builder.build()
        self.keep = builder.keep
        self.rows = tensor_at(builder.logits_rows, max_logits, builder.vocab_size)  # f32 [max_logits, vocab]
        self.candidates = (abi.Candidates * max_logits)()
        self.candidates_view = np.frombuffer(memoryview(self.candidates).cast("B"), CANDIDATES)
        self.instructions = (abi.Instruction * len(instructions))(*instructions)
        program = abi.ProgramC(self.instructions, self.layers, len(instructions), len(layers))
        self.program = program
        self.threads = self.calls.threads_create(layout.n_threads)
        self.handle = self.calls.program_create(program, self.threads, max_rows)

    def make_pools(
        self, layers: Sequence[CacheLayer], n_blocks: int, codec: KVCodec
    ) -> tuple[Any, list[int], list[int]]:
        """Memory for the blocks of every group, and where each layer's part of a block begins."""
        block_bytes = [0] * self.n_groups
        places = (abi.CacheLayerC * len(layers))()
        for number in sorted(range(len(layers)), key=lambda n: layers[n].index):
            layer = layers[number]
            places[number].layer_offset = block_bytes[layer.group]
            block_bytes[layer.group] += self.calls.kv_block_bytes(
                abi.KV_CODES[codec.name], layer.n_kv_heads, layer.head_dim
            )
        pools = [self.reserve(n_blocks * size) for size in block_bytes]
        for place, layer in zip(places, layers, strict=True):
            place.pool, place.block_bytes, place.group = pools[layer.group], block_bytes[layer.group], layer.group
            place.n_heads, place.n_kv_heads, place.head_dim = layer.n_heads, layer.n_kv_heads, layer.head_dim
            place.codec = abi.KV_CODES[codec.name]
        return places, block_bytes, pools

    def reserve(self, n_bytes: int) -> int:
        """The address of zeroed memory that is freed with the executor."""
        address = self.calls.reserve(n_bytes)
        self.reserved.append((address, n_bytes))
        return address

    def copy_block(self, group: int, source: int, target: int) -> None:
        self.calls.kv_copy_block(self.pools[group], self.block_bytes[group], source, target)

    def run(self, step: StepInput) -> Handle:
        assert step.n_rows <= self.max_rows
        assert len(step.logits_rows) <= self.max_logits
        translated, keep = self.translate(step)
        if self.calls.program_run(self.handle, translated) == abi.CANCELLED:
            raise StepCancelled
        del keep
        return Handle(self.logits(len(step.logits_rows)))

    def translate(self, step: StepInput) -> tuple[abi.Step, list[Any]]:
        """A step as C sees it, and what has to stay alive while it does."""
        keep: list[Any] = []

        def address(values: Sequence[int]) -> int:
            keep.append(abi.int32s(values))
            return ctypes.addressof(keep[-1])

        sequences = (abi.SequenceC * len(step.sequences))()
        for place, sequence in zip(sequences, step.sequences, strict=True):
            place.table = (ctypes.c_void_p * self.n_groups)(*(address(table) for table in sequence.table))
            place.first, place.length = address(sequence.first), sequence.length
        adjust = None
        if any(step.adjust):
            adjust = (abi.Adjust * len(step.adjust))(*(adjustment(change, address, keep) for change in step.adjust))
        pointers = ctypes.c_void_p * max(1, len(step.cos_sin))
        translated = abi.Step(
            token=address(step.token_ids),
            position=address(step.positions),
            row_sequence=address(step.row_sequence),
            sequence=sequences,
            logits_row=address(step.logits_rows),
            adjust=adjust,
            candidates=self.candidates,
            cos=pointers(*(cos.data_ptr() for cos, _ in step.cos_sin)),
            sin=pointers(*(sin.data_ptr() for _, sin in step.cos_sin)),
            rope_half=address([cos.shape[-1] for cos, _ in step.cos_sin]),
            cancel=step.cancel.address,
            n_rows=step.n_rows,
            n_sequences=len(step.sequences),
            n_logits=len(step.logits_rows),
        )
        return translated, keep

    def logits(self, count: int) -> Logits:
        found = self.candidates_view[:count]
        n_candidates = int(found["n_candidates"][0]) if count else 0
        return Logits(
            rows=self.rows[:count],
            top_ids=torch.from_numpy(found["ids"][:, :n_candidates].astype(np.int64)),
            top_values=torch.from_numpy(found["values"][:, :n_candidates].copy()),
            logsumexp=torch.from_numpy(found["logsumexp"].astype(np.float32)),
            finite=torch.from_numpy(found["finite"] != 0),
        )

    def close(self) -> None:
        """Stop the threads and free arena and cache."""
        self.calls.program_destroy(self.handle)
        self.calls.threads_destroy(self.threads)
        for address, n_bytes in self.reserved:
            self.calls.release(address, n_bytes)
        self.reserved.clear()


def gguf_id(qtype: str) -> int:
    number = QUANT_TYPES[qtype].gguf_id
    assert number is not None, f"{qtype} is not a type of GGUF files"
    return number


def adjustment(change: LogitAdjust | None, address: Any, keep: list[Any]) -> abi.Adjust:
    """A LogitAdjust as C sees it; what would change nothing is left out."""
    change = change or LogitAdjust()
    out = abi.Adjust(
        repeat=change.repeat,
        presence=change.presence,
        frequency=change.frequency,
        inv_temperature=1.0 / (change.temperature or 1.0),
    )
    if change.repeat != 1.0 and change.seen:
        out.seen, out.n_seen = address(list(change.seen)), len(change.seen)
    if change.counts and (change.presence or change.frequency):
        out.ids, out.counts = address(list(change.counts)), address(list(change.counts.values()))
        out.n_ids = len(change.counts)
    if change.bias:
        keep.append((ctypes.c_float * len(change.bias))(*change.bias.values()))
        out.bias_ids, out.bias = address(list(change.bias)), ctypes.addressof(keep[-1])
        out.n_bias = len(change.bias)
    return out


def tensor_at(address: int, n_rows: int, n_cols: int) -> Tensor:
    """A float32 view [n_rows, n_cols] of native memory."""
    memory = (ctypes.c_float * (n_rows * n_cols)).from_address(address)
    return torch.frombuffer(memory, dtype=torch.float32).view(n_rows, n_cols)
