"""What a backend needs beside the weights: bytes of a block of the cache, and working memory. Torch-free."""

from dataclasses import dataclass
from typing import Protocol

from localrun.fit.layers import cache_of
from localrun.model.config import LayerSpec, Mixture, ModelConfig
from localrun.ops import cpu_abi as abi
from localrun.ops.cpu_calls import CpuCalls, calls_of
from localrun.ops.kv import KVCodec
from localrun.ops.library import load_library

PREFILL_ROWS = 512  # the largest prefill chunk
SEQUENCES = 16  # that a step may hold
SCORE_TILE = 64 << 20  # bytes of attention scores that the reference holds at a time
SCORE_COPIES, CODED_COPIES = 12, 4  # of them at a time; rows of coded layers are taken a block at a time
SCRATCH_BYTES = 2 << 20  # a thread: LR_SCRATCH_BYTES of kernels/cpu/ops/op.h
NATIVE_PROGRAM_BYTES, TORCH_PROGRAM_BYTES = 160 << 20, 400 << 20
STRIDE = 256  # elements that rows of native buffers are rounded up to


class Costs(Protocol):
    """One backend's."""

    @property
    def program_bytes(self) -> int:
        """What the process holds without any model: libraries, and a large tokenizer."""
        ...

    @property
    def grows(self) -> bool:
        """Whether blocks of the cache take memory when they are first used, and not all of them at once."""
        ...

    def block_bytes(self, codec: KVCodec, spec: LayerSpec) -> int | None:
        """Bytes of one layer of one block; None where the backend cannot keep `spec` in `codec`."""
        ...

    def scratch_bytes(self, config: ModelConfig, ctx: int, codec: KVCodec, threads: int) -> int:
        """Working memory of the largest step."""
        ...


@dataclass(frozen=True, slots=True)
class PlainCosts:
    """The reference operations, on any torch device."""

    program_bytes: int = TORCH_PROGRAM_BYTES
    grows: bool = False

    def block_bytes(self, codec: KVCodec, spec: LayerSpec) -> int | None:
        return cache_of(spec).nbytes(1, codec) if codec.executable else None

    def scratch_bytes(self, config: ModelConfig, ctx: int, codec: KVCodec, threads: int) -> int:
        """Activations, scores and gathered keys of one layer, logits."""
        widest = max(config.layers, key=lambda spec: spec.n_heads * spec.head_dim)
        rows = min(PREFILL_ROWS, ctx)
        most_used = max(spec.mixture.n_used if spec.mixture else 1 for spec in config.layers)
        widths = 6 * config.hidden_size + 4 * max(spec.ffn_size for spec in config.layers)
        activations = rows * (widths + (most_used - 1) * config.hidden_size) * 4
        scores = (SCORE_COPIES if codec.native else CODED_COPIES) * min(SCORE_TILE, rows * widest.n_heads * ctx * 4)
        gathered = 4 * ctx * widest.n_kv_heads * widest.head_dim * 4
        return activations + scores + gathered + 4 * config.vocab_size * 4


@dataclass(frozen=True, slots=True)
class NativeCosts:
    """The native CPU library: it says itself what a block takes; its arena is the buffers of one layer."""

    calls: CpuCalls
    program_bytes: int = NATIVE_PROGRAM_BYTES
    grows: bool = True

    def block_bytes(self, codec: KVCodec, spec: LayerSpec) -> int | None:
        code = abi.KV_CODES.get(codec.name)
        size = -1 if code is None else self.calls.kv_block_bytes(code, spec.n_kv_heads, spec.head_dim)
        return size if size >= 0 else None

    def scratch_bytes(self, config: ModelConfig, ctx: int, codec: KVCodec, threads: int) -> int:
        shapes = {(spec.n_heads, spec.head_dim) for spec in config.layers}
        units = max(self.calls.attention_bytes(*shape, SEQUENCES, ctx) for shape in shapes)
        return arena_bytes(config, threads) + units


def arena_bytes(config: ModelConfig, threads: int) -> int:
    """The library's buffers, at most.

    For every row of a step the residual stream twice, queries twice, keys, values, and what each linear reads in two
    forms; in a mixture of experts what they read and give, for each of the choices of a row; logits; scratch memory of
    every thread.
    """
    widest = max(config.layers, key=lambda spec: spec.n_heads * spec.head_dim)
    hidden, queries = config.hidden_size, widest.n_heads * widest.head_dim
    keys = widest.n_kv_heads * widest.head_dim
    ffn = max((spec.ffn_size for spec in config.layers if not spec.mixture), default=0)
    plain = (hidden, hidden, queries, queries, keys, keys)
    coded = (hidden, queries, ffn)
    row = 4 * sum(map(_stride, (*plain, *coded))) + 2 * sum(map(_stride, coded))
    row += max((_mixture_row(hidden, spec.ffn_size, spec.mixture) for spec in config.layers if spec.mixture), default=0)
    logits = SEQUENCES * config.vocab_size * 4
    return (PREFILL_ROWS + SEQUENCES) * row + logits + threads * SCRATCH_BYTES


def _mixture_row(hidden: int, ffn: int, mixture: Mixture) -> int:
    """Bytes for a row of a step: its scores, and each choice on its way into an expert, within, and out."""
    coded = (hidden, ffn)
    choice = 4 * sum(map(_stride, (*coded, hidden))) + 2 * sum(map(_stride, coded)) + 12
    return 4 * _stride(mixture.n_experts) + mixture.n_used * choice


def costs_of(backend: str) -> Costs:
    """Those of the backend of that name; `cpu` is the native library, which must be there."""
    if backend != "cpu":
        return PlainCosts()
    library = load_library()
    assert library is not None, "the native library has been checked for"
    return NativeCosts(calls_of(library))


def usual_costs() -> Costs:
    """Those of what computes on this machine when nothing else is asked for."""
    return costs_of("cpu" if load_library() else "reference")


def _stride(width: int) -> int:
    return -(-width // STRIDE) * STRIDE
