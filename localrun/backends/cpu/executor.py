"""The native CPU backend: a step as one native call. Torch-free."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from localrun.backends.cpu import abi, abi_step
from localrun.backends.cpu.bindings import start_threads
from localrun.backends.cpu.buffers import CpuBuffers
from localrun.backends.cpu.layout import CpuLayout
from localrun.backends.cpu.logits import LogitsMemory, view_of
from localrun.backends.cpu.pool import CpuPool
from localrun.backends.cpu.program import ProgramBuilder
from localrun.backends.cpu.step import NativeStep
from localrun.backends.executor import ExecutorRequest
from localrun.base.device_figures import DeviceFigures
from localrun.ops.cache_layer import NOWHERE, CacheLayer
from localrun.ops.instructions import Embed
from localrun.ops.interface import PlainKV, StepCancelled, StepInput
from localrun.ops.kv import KV_CODECS
from localrun.ops.program import Handle
from localrun.ops.recording import Recorded


class CpuExecutor:
    """A model's program, arena and cache in the native library. Logits stay valid until the next step."""

    bulk_span = 0  # prompts and answers are computed alike
    exact_rows = True
    takes_images = True
    runs_ahead = False
    device_steps = DeviceFigures()

    def __init__(self, layout: CpuLayout, request: ExecutorRequest, max_rows: int) -> None:
        self.calls = layout.calls
        self.max_rows = max_rows
        self.reserved: list[tuple[int, int]] = []
        self.cache_layers = layers = tuple(request.cache.layers)
        self.owns_cache = not request.shares_cache
        self.make_pools(request)
        somewhere = next(layer for layer in layers if layer is not NOWHERE)  # nothing names those that are nowhere
        places = (somewhere if layer is NOWHERE else layer for layer in layers)
        native_layers = (abi_step.CacheLayerC * len(layers))(*map(self.native_layer, places))
        buffers = CpuBuffers(self.reserve, max_rows)
        known = (layout.matrix, layout.activation_format, layout.file_type)
        builder = ProgramBuilder(request.instructions, layers, buffers, *known, given=request.given)
        self.given = [builder.values[slot] for slot in range(len(request.given))]
        instructions = builder.build()
        self.last_norm = view_of(builder.last_norm, max_rows)
        self.rows_beside = None if builder.beside is None else view_of(builder.beside, max_rows)
        self.hidden_size = hidden_size(request.instructions)
        self.keep = builder.keep
        self.instructions = (abi.Instruction * len(instructions))(*instructions)
        program = abi_step.ProgramC(self.instructions, native_layers, len(instructions), len(layers))
        self.program = program
        self.owns_threads = request.beside is None
        beside = request.beside
        assert beside is None or isinstance(beside, CpuExecutor)
        self.threads: int = start_threads(self.calls, layout.n_threads) if beside is None else beside.threads
        self.memory = LogitsMemory(self.calls, self.threads, builder.logits_rows, max_rows, builder.vocab_size)
        self.step = NativeStep(self.memory.candidates, len(request.cache.blocks), max_rows)
        self.handle = self.calls.program_create(program, self.threads, max_rows)

    def make_pools(self, request: ExecutorRequest) -> None:
        """Room for the blocks of every group, and for 16-bit blocks beside codes; or those of another executor."""
        cache = request.cache
        self.blocks: list[CpuPool] = []  # [groups]
        self.ring: list[CpuPool | None] = []  # [groups], None where the codec is native
        if request.shares_cache:
            assert isinstance(request.beside, CpuExecutor)
            self.blocks, self.ring = request.beside.blocks, request.beside.ring
            return
        for group, (count, ring_count) in enumerate(zip(cache.blocks, cache.ring_blocks, strict=True)):
            members = list(dict.fromkeys(layer for layer in self.cache_layers if layer.group == group))
            (codec,) = {cache.kv.codecs[self.cache_layers.index(layer)] for layer in members}
            self.blocks.append(CpuPool(self.calls, codec, members, count))
            self.ring.append(None if codec.native else CpuPool(self.calls, KV_CODECS["f16"], members, ring_count))

    def native_layer(self, layer: CacheLayer) -> abi_step.CacheLayerC:
        blocks, ring = self.blocks[layer.group], self.ring[layer.group]
        return abi_step.CacheLayerC(
            blocks.place(layer),
            ring.place(layer) if ring else abi_step.KVPoolC(),
            layer.group,
            layer.n_heads,
            layer.n_kv_heads,
            layer.head_dim,
            blocks.code,
            layer.state_size,
            layer.value_dim or 0,
        )

    @property
    def kv_nbytes(self) -> int:
        return sum(pool.nbytes for pool in (*self.blocks, *self.ring) if pool and self.owns_cache)

    def block_bytes(self, group: int) -> int:
        return self.blocks[group].block_bytes

    def ring_bytes(self, group: int) -> int:
        ring = self.ring[group]
        return ring.block_bytes if ring else 0

    def ring_of(self, group: int) -> CpuPool:
        ring = self.ring[group]
        assert ring, "a native codec has no 16-bit blocks beside its own"
        return ring

    def reserve(self, n_bytes: int) -> int:
        """The address of zeroed memory that is freed with the executor."""
        address = self.calls.reserve(n_bytes)
        self.reserved.append((address, n_bytes))
        return address

    def copy_block(self, group: int, source: int, target: int) -> None:
        self.blocks[group].copy(source, target)

    def copy_ring(self, group: int, source: int, target: int) -> None:
        self.ring_of(group).copy(source, target)

    def read_block(self, group: int, block: int) -> bytes:
        return self.blocks[group].read(block)

    def write_block(self, group: int, block: int, data: bytes | memoryview) -> None:
        self.blocks[group].write(block, data)

    def read_ring(self, group: int, block: int) -> bytes:
        return self.ring_of(group).read(block)

    def write_ring(self, group: int, block: int, data: bytes | memoryview) -> None:
        self.ring_of(group).write(block, data)

    def kv_export(self, layer: int, block: int, ring: bool = False) -> tuple[PlainKV, PlainKV]:
        place = self.cache_layers[layer]
        return (self.ring_of(place.group) if ring else self.blocks[place.group]).export_plain(place, block)

    def kv_import(self, layer: int, block: int, keys: PlainKV, values: PlainKV, ring: bool = False) -> None:
        place = self.cache_layers[layer]
        (self.ring_of(place.group) if ring else self.blocks[place.group]).import_plain(place, block, keys, values)

    def run(self, step: StepInput) -> Handle:
        assert step.n_rows <= self.max_rows
        assert len(step.logits_rows) <= self.max_rows
        assert step.images is None or step.images.rows.shape[1] == self.hidden_size
        self.commit(step)
        for value in self.given:
            assert step.given is not None
            view_of(value, step.n_rows)[:] = step.given
        if self.calls.program_run(self.handle, self.step.translate(step)) == abi.CANCELLED:
            raise StepCancelled
        return Handle(self.memory.logits(len(step.logits_rows)))

    def hidden(self, n_rows: int) -> np.ndarray | None:
        return self.last_norm[:n_rows]

    def beside(self, n_rows: int) -> np.ndarray | None:
        return None if self.rows_beside is None else self.rows_beside[:n_rows]

    def commit(self, step: StepInput) -> None:
        """Make sure that all blocks of the step are there."""
        for sequence in step.sequences:
            for pool, blocks in zip(self.blocks, sequence.table, strict=True):
                pool.use(blocks)
            for ring, blocks in zip(self.ring, sequence.ring, strict=False):
                if ring:
                    ring.use(blocks)

    def close(self) -> None:
        """Stop the threads and free arena and cache."""
        self.calls.program_destroy(self.handle)
        if self.owns_threads:
            self.calls.threads_destroy(self.threads)
        for address, n_bytes in self.reserved:
            self.calls.release(address, n_bytes)
        self.reserved.clear()
        for pool in (*self.blocks, *self.ring):
            if pool and self.owns_cache:
                pool.close()


def hidden_size(instructions: Sequence[Recorded]) -> int:
    """Width of the rows of images in the place of embeddings; 0 where nothing is embedded."""
    return next((one.instruction.weight.n_cols for one in instructions if isinstance(one.instruction, Embed)), 0)
