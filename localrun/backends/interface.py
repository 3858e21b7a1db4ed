"""The interface of a backend: one folder each, found through `registry`. Asking imports neither torch nor numpy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from localrun.backends.decode_cost import DecodeCost
from localrun.backends.limits import LimitProbe
from localrun.base.machine import Memory
from localrun.cache.kinds.interface import CacheKind
from localrun.ops.kv import KVCodec

if TYPE_CHECKING:
    import torch

    from localrun.backends.executor import Executor, ExecutorRequest
    from localrun.ops.encoder_program import Encoder, EncoderRecording
    from localrun.ops.layouts import Layout
    from localrun.ops.recording import Recording


class Backend(Protocol):
    """One way to compute, as `--backend` names it. It tells the bytes of everything before anything is loaded."""

    @property
    def name(self) -> str: ...
    @property
    def note(self) -> str:
        """A note for a user who chose it; empty where there is nothing to say."""
        ...

    @property
    def device(self) -> torch.device | None:
        """Where torch computes; None where it is a library of ours that does, in main memory."""
        ...

    @property
    def in_main_memory(self) -> bool: ...
    @property
    def program_bytes(self) -> int:
        """Bytes of the process without any model: libraries, and a large tokenizer."""
        ...

    @property
    def growth_bytes(self) -> int:
        """Bytes that the program itself grows by while it loads a model and answers, beside all that is counted."""
        ...

    @property
    def grows(self) -> bool:
        """Whether blocks of the cache take memory when they are first used, and not all of them at once."""
        ...

    @property
    def maps_weights(self) -> bool:
        """Whether matrices may stay in files that are read as they are used, where memory is short."""
        ...

    @property
    def measures_limits(self) -> bool:
        """Whether its speed is held against what the device can do at best, which `limit_probe` measures."""
        ...

    @property
    def kernels(self) -> frozenset[str]:
        """The operations, by name, that it has code of its own for; torch computes the others."""
        ...

    @property
    def rounding(self) -> str:
        """Names everything of this backend that the bits of a result depend on."""
        ...

    def why_unavailable(self) -> str:
        """Why it cannot compute on this machine, and what to do; empty where it can."""
        ...

    def degraded_reason(self) -> str:
        """Why this backend is degraded here although it should work on every machine; empty where it is not."""
        ...

    def self_test(self) -> str:
        """Why what it computes here is not to be trusted, after trying; empty where it is. It may compile first."""
        ...

    def summary(self) -> str:
        """The device that computes, in a few words; empty where its name says it all. Asked where it is available."""
        ...

    def details(self) -> dict[str, Any]:
        """Further fields for `doctor --json`."""
        ...

    def why_not(self, model: Recording, matrix_types: Iterable[str]) -> str:
        """Why it cannot run a model with matrices of these quant types; empty where it can."""
        ...

    def without_kernels(self, model: Recording) -> Sequence[str]:
        """The parts of a model that others are much faster than, named for the user."""
        ...

    def decode_cost(self, model: Recording) -> DecodeCost:
        """The cost of a step of one row, beside reading the matrices."""
        ...

    def memory(self, main: Memory) -> Memory:
        """Memory of the device that computes; `main` is main memory now."""
        ...

    def peak_bytes(self) -> int:
        """The most memory this process has held where it computes."""
        ...

    def layout_name(self, qtype: str) -> str:
        """How matrices of a quant type are held; empty where they cannot be."""
        ...

    def matrix_bytes(self, qtype: str, n_rows: int, n_cols: int) -> int:
        """Bytes of a matrix as it is held to be multiplied."""
        ...

    def block_bytes(self, codec: KVCodec, kind: CacheKind) -> int | None:
        """Bytes of one layer of one block; None where what it keeps cannot be kept in `codec`."""
        ...

    def scratch_bytes(
        self, model: Recording, ctx: int, codecs: tuple[KVCodec, ...], threads: int, sequences: int
    ) -> int:
        """Working memory of the largest step of `sequences` sequences side by side; `codecs` are of every
        layer."""
        ...

    def limit_probe(self, threads: int) -> LimitProbe: ...
    def layout(self, dense_bytes: int, budget: int, threads: int) -> Layout:
        """The layout for matrices that would take `dense_bytes` as f32; `threads` pack them."""
        ...

    def encoder(self, layout: Layout, recording: EncoderRecording, max_rows: int) -> Encoder:
        """An encoder of rows that see each other, its matrices in `layout`, for at most so many rows."""
        ...

    def encoder_bytes(self, recording: EncoderRecording, n_rows: int, threads: int) -> int:
        """Working memory of an encoder of so many rows."""
        ...

    def executor(self, request: ExecutorRequest) -> Executor:
        """A model on this backend, its matrices in `layout`."""
        ...
