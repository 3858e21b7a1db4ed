"""Which backend runs a model: the native CPU library, or the reference operations on some torch device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from localrun.base.errors import UsageError
from localrun.base.request import Backend as BackendName
from localrun.engine.runner import cache_layers
from localrun.engine.scheduler import MAX_CHUNK, MAX_RUNNING
from localrun.fit.machine import cpu_limit, peak_rss
from localrun.model.config import ModelConfig
from localrun.model.decoder import Model
from localrun.ops.cpu_calls import calls_of
from localrun.ops.cpu_executor import CpuExecutor
from localrun.ops.cpu_layout import CpuLayout
from localrun.ops.executor import Executor
from localrun.ops.kv import KV_CODECS, KVPlan
from localrun.ops.layouts import Layout
from localrun.ops.library import NUMERICS_VERSION, load_library, why_no_library

if TYPE_CHECKING:
    import torch

HINT = "leave --backend away, or see what `localrun doctor` says"
MAX_LOGITS = 64  # rows of logits a step may ask for: perplexity wants many, sampling one a sequence


class Backend(Protocol):
    """How weights are held and steps are run. `notes` are for the user."""

    @property
    def name(self) -> str: ...
    @property
    def device(self) -> torch.device | None:
        """Where torch computes; None where it is the native library that does, in main memory."""
        ...

    @property
    def threads(self) -> int: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    @property
    def rounding(self) -> str:
        """Names everything of this backend that the bits of a result depend on."""
        ...

    @property
    def in_main_memory(self) -> bool: ...
    def free_bytes(self, main_memory: int) -> int:
        """Memory that is free where this backend computes."""
        ...

    def peak_bytes(self) -> int:
        """The most memory this process has held where this backend computes."""
        ...

    def layout(self, dense_bytes: int, budget: int) -> Layout:
        """The layout for matrices that would take `dense_bytes` as f32."""
        ...

    def executor(self, model: Model, plan: KVPlan, blocks: Sequence[int], ring_blocks: Sequence[int]) -> Executor:
        """The model on this backend; `blocks` and `ring_blocks` of every layer group."""
        ...


@dataclass(frozen=True, slots=True)
class CpuBackend:
    """The native library: weights stay quantised, a step is one call."""

    packing: CpuLayout
    threads: int
    notes: tuple[str, ...] = ()
    name: str = "cpu"
    device: None = None
    in_main_memory: bool = True

    @property
    def rounding(self) -> str:
        return f"cpu {self.packing.calls.library.isa} {NUMERICS_VERSION}"

    def free_bytes(self, main_memory: int) -> int:
        return main_memory

    def peak_bytes(self) -> int:
        return peak_rss()

    def layout(self, dense_bytes: int, budget: int) -> Layout:
        return self.packing

    def executor(self, model: Model, plan: KVPlan, blocks: Sequence[int], ring_blocks: Sequence[int]) -> Executor:
        return CpuExecutor(
            self.packing,
            model.forward,
            cache_layers(model.config, plan.codecs),
            plan,
            blocks,
            ring_blocks,
            MAX_CHUNK + MAX_RUNNING,
            MAX_LOGITS,
        )


def choose_backend(wish: BackendName, threads: int | None, config: ModelConfig, matrix_types: Iterable[str]) -> Backend:
    """The backend that was asked for, else the fastest that can run this model. Raises UsageError."""
    threads = threads or cpu_limit()
    if wish in ("auto", "cpu"):
        packing, reason = native_layout(threads, config, matrix_types)
        if packing is not None:
            return CpuBackend(packing, threads)
        if wish == "cpu":
            raise UsageError(f"the native CPU backend cannot run this: {reason}", HINT)
        return reference_backend("cpu", threads, f"slow: the reference runs, because {reason}")
    if wish == "reference":
        return reference_backend("cpu", threads)
    return reference_backend(wish, threads, f"the reference operations run on {wish}, with weights decoded")


def reference_backend(device: str, threads: int, *notes: str) -> Backend:
    """Plain torch on a device; the first thing that imports torch. Raises UsageError where torch lacks the device."""
    from localrun.engine.reference_backend import ReferenceBackend, why_no_device

    if reason := why_no_device(device):
        raise UsageError(reason, HINT)
    return ReferenceBackend.on(device, threads, notes)


def native_layout(threads: int, config: ModelConfig, matrix_types: Iterable[str]) -> tuple[CpuLayout | None, str]:
    """The library's layouts if it runs this model whole, else the reason why not."""
    library = load_library()
    if library is None:
        return None, why_no_library()
    packing = CpuLayout(calls_of(library), threads)
    unknown = sorted(qtype for qtype in set(matrix_types) if not packing.holds(qtype))
    if unknown:
        return None, f"the library has no layout for {', '.join(unknown)}"
    sizes = {(spec.n_kv_heads, spec.head_dim) for spec in config.layers}
    if not all(packing.holds_cache(KV_CODECS["f16"], *size) for size in sizes):
        return None, "the library has no block store for heads of this size"
    return packing, ""
