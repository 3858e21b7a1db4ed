"""The native library as a backend: weights stay quantised, a step is one call. Torch-free, and numpy only to run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from localrun.backends.cpu import abi
from localrun.backends.cpu.bindings import CpuCalls, calls_of
from localrun.backends.cpu.library import COMPILE_ALL, NativeLibrary, load_library, why_no_library
from localrun.backends.cpu.limits import CpuLimitProbe
from localrun.backends.cpu.scratch import arena_of, encoder_bytes, layer_block_bytes
from localrun.backends.decode_cost import DecodeCost
from localrun.base.machine import Memory, peak_rss
from localrun.cache.kinds.interface import CacheKind
from localrun.formats.quant import QUANT_TYPES
from localrun.ops.cache_layer import NOWHERE, CacheLayer
from localrun.ops.instructions import Instruction, Moe
from localrun.ops.kv import BLOCK_TOKENS, KV_CODECS, KVCodec
from localrun.ops.largest_step import MAX_ROWS
from localrun.ops.latent import HeadLinear
from localrun.ops.recurrent import GatedDeltaRule, SelectiveScan, ShortConv
from localrun.ops.types import NUMERICS_VERSION

if TYPE_CHECKING:
    from localrun.backends.cpu.encoder import CpuEncoder
    from localrun.backends.cpu.executor import CpuExecutor
    from localrun.backends.cpu.layout import CpuLayout
    from localrun.backends.executor import ExecutorRequest
    from localrun.ops.encoder_program import EncoderRecording
    from localrun.ops.layouts import Layout
    from localrun.ops.recording import Recording


class CpuBackend:
    """Everything but `kernels`, `note`, `why_unavailable`, `fault` and `details` wants the library to be there."""

    name = "cpu"
    device = None
    in_main_memory = True
    program_bytes = 160 << 20
    growth_bytes = 2 << 20
    measures_limits = True
    grows = True
    maps_weights = True

    @property
    def library(self) -> NativeLibrary:
        library = load_library()
        assert library is not None, "the native library has been checked for"
        return library

    @property
    def calls(self) -> CpuCalls:
        return calls_of(self.library)

    @property
    def kernels(self) -> frozenset[str]:
        from localrun.backends.cpu.program import ProgramBuilder
        from localrun.ops.instructions import INSTRUCTIONS

        return frozenset(op.name for op in INSTRUCTIONS if hasattr(ProgramBuilder, op.name))

    @property
    def rounding(self) -> str:
        return f"cpu {self.library.isa} {self.library.arithmetic} {NUMERICS_VERSION}"

    def why_unavailable(self) -> str:
        return why_no_library()

    @property
    def note(self) -> str:
        library = load_library()
        if library is None or library.best_isa in library.isas:
            return ""
        return f"slow: this machine has ISA {library.best_isa}, and the native library lacks it; {COMPILE_ALL}"

    def degraded_reason(self) -> str:
        if self.why_unavailable():
            return "there is no native CPU library, so everything is slower"
        return "the native CPU library is slower than it could be" if self.note else ""

    def self_test(self) -> str:
        return ""

    def summary(self) -> str:
        return f"ISA {self.library.isa} of {', '.join(self.library.isas)}"

    def details(self) -> dict[str, Any]:
        library = load_library()
        return {
            "isa": library.isa if library else None,
            "arithmetic": library.arithmetic if library else None,
            "isas": list(library.isas) if library else [],
            "library": str(library.path) if library else None,
        }

    def why_not(self, model: Recording, matrix_types: Iterable[str]) -> str:
        unknown = sorted(qtype for qtype in set(matrix_types) if not self.layout_name(qtype))
        if unknown:
            return f"the library has no layout for {', '.join(unknown)}"
        if not all(has_kernel(each.instruction) for each in model.instructions):
            return "the library has no kernel for the sizes of these layers"
        if any(self.place_bytes(KV_CODECS["f16"], place) is None for place in {*model.layers} - {NOWHERE}):
            return "the library has no block store for heads of this size"
        return ""

    def without_kernels(self, model: Recording) -> Sequence[str]:
        return ()

    def decode_cost(self, model: Recording) -> DecodeCost:
        return DecodeCost()

    def memory(self, main: Memory) -> Memory:
        return main

    def peak_bytes(self) -> int:
        return peak_rss()

    def layout_name(self, qtype: str) -> str:
        layout = self._layout(qtype)
        return self.calls.layout_name(layout) if layout >= 0 else ""

    def matrix_bytes(self, qtype: str, n_rows: int, n_cols: int) -> int:
        packed = self.calls.packed_bytes(layout, n_rows, n_cols) if (layout := self._layout(qtype)) >= 0 else -1
        return packed if packed >= 0 else QUANT_TYPES[qtype].nbytes((n_rows, n_cols))

    def _layout(self, qtype: str) -> int:
        """Number of the type's layout in the library; -1 where there is none."""
        number = QUANT_TYPES[qtype].number
        return -1 if number is None else self.calls.layout_for(number)

    def block_bytes(self, codec: KVCodec, kind: CacheKind) -> int | None:
        keeps_some = kind.block_bytes(codec, BLOCK_TOKENS) > 0
        return self.place_bytes(codec, kind.layer(0, 0, n_heads=1)) if keeps_some else 0

    def place_bytes(self, codec: KVCodec, place: CacheLayer) -> int | None:
        """The same from a pool's description of a layer."""
        size = layer_block_bytes(self.calls, abi.KV_CODES.get(codec.name, -1), place)
        return size if size >= 0 else None

    def scratch_bytes(
        self, model: Recording, ctx: int, codecs: tuple[KVCodec, ...], threads: int, sequences: int
    ) -> int:
        arena = arena_of(model)
        attention = (self.calls.attention_bytes(*heads, sequences, ctx) for heads in arena.heads)
        return arena.nbytes(threads, sequences) + max(attention, default=0)

    def limit_probe(self, threads: int) -> CpuLimitProbe:
        return CpuLimitProbe(threads)

    def layout(self, dense_bytes: int, budget: int, threads: int) -> CpuLayout:
        from localrun.backends.cpu.layout import CpuLayout

        return CpuLayout(self.calls, threads)

    def encoder(self, layout: Layout, recording: EncoderRecording, max_rows: int) -> CpuEncoder:
        from localrun.backends.cpu.encoder import CpuEncoder
        from localrun.backends.cpu.layout import CpuLayout

        assert isinstance(layout, CpuLayout), "matrices are this backend's"
        return CpuEncoder(layout, recording, max_rows)

    def encoder_bytes(self, recording: EncoderRecording, n_rows: int, threads: int) -> int:
        return encoder_bytes(recording, n_rows, threads)

    def executor(self, request: ExecutorRequest) -> CpuExecutor:
        from localrun.backends.cpu.executor import CpuExecutor
        from localrun.backends.cpu.layout import CpuLayout

        return CpuExecutor(CpuLayout(self.calls, request.threads), request, MAX_ROWS)


def has_kernel(op: Instruction) -> bool:
    """Whether the library computes an instruction, and has its sizes."""
    if isinstance(op, HeadLinear):
        return op.weight.packed.n_rows % (16 * op.n_heads) == 0
    if isinstance(op, ShortConv):
        return op.taps <= abi.MAX_TAPS
    if isinstance(op, GatedDeltaRule):
        return op.key_dim % 2 == 0 and op.value_dim % abi.DELTA_PANEL == 0
    if isinstance(op, SelectiveScan):
        return op.state_dim % 2 == 0 and op.head_dim % 16 == 0
    return op.name in abi.OPS or isinstance(op, Moe)
