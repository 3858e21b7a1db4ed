"""Which backend runs a model: the native CPU library, or the reference operations on some torch device."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from localrun.base.errors import UsageError
from localrun.base.request import Backend as BackendName
from localrun.engine.runner import cache_layers
from localrun.engine.scheduler import MAX_CHUNK, MAX_RUNNING
from localrun.fit.machine import cpu_limit
from localrun.model.config import ModelConfig
from localrun.model.decoder import Model
from localrun.ops.cpu import CpuExecutor, CpuLayout
from localrun.ops.cpu_calls import calls_of
from localrun.ops.executor import Executor, ReferenceExecutor
from localrun.ops.kv import KV_CODECS, KVPlan
from localrun.ops.layouts import F32, FILE, Layout
from localrun.ops.library import NUMERICS_VERSION, load_library, why_no_library
from localrun.ops.reference import ReferenceOps
from localrun.ops.reference_rows import RowReferenceOps

HINT = "leave --backend away, or see what `localrun doctor` says"
DENSE_SHARE = 0.5  # of free memory that weights decoded to f32 may take
MAX_LOGITS = 64  # rows of logits a step may ask for: perplexity wants many, sampling one a sequence


class Backend(Protocol):
    """How weights are held and steps are run. `notes` are for the user."""

    @property
    def name(self) -> str: ...
    @property
    def device(self) -> torch.device: ...
    @property
    def threads(self) -> int: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    @property
    def rounding(self) -> str:
        """Names everything of this backend that the bits of a result depend on."""
        ...

    def free_bytes(self, main_memory: int) -> int:
        """Memory that is free where this backend computes."""
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

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    @property
    def rounding(self) -> str:
        return f"cpu {self.packing.calls.library.isa} {NUMERICS_VERSION}"

    def free_bytes(self, main_memory: int) -> int:
        return main_memory

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


@dataclass(frozen=True, slots=True)
class ReferenceBackend:
    """Plain torch on `device`: any model, any type, slowly."""

    device: torch.device
    threads: int
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return "reference" if self.device.type == "cpu" else self.device.type

    @property
    def rounding(self) -> str:
        return f"reference {self.device.type} {torch.__version__} {os.environ.get('LOCALRUN_REFERENCE')}"

    def free_bytes(self, main_memory: int) -> int:
        if self.device.type == "cuda":
            return int(torch.cuda.mem_get_info(self.device)[0])
        if self.device.type == "mps":
            return min(main_memory, torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory())
        return main_memory

    def layout(self, dense_bytes: int, budget: int) -> Layout:
        """Decoded once to f32 where memory is plentiful, otherwise as the file has them."""
        return F32 if dense_bytes <= DENSE_SHARE * budget else FILE

    def executor(self, model: Model, plan: KVPlan, blocks: Sequence[int], ring_blocks: Sequence[int]) -> Executor:
        ops = RowReferenceOps if os.environ.get("LOCALRUN_REFERENCE") == "rows" else ReferenceOps
        layers = cache_layers(model.config, plan.codecs)
        return ReferenceExecutor(model.forward, layers, plan, blocks, ring_blocks, self.device, ops)


def choose_backend(wish: BackendName, threads: int | None, config: ModelConfig, matrix_types: Iterable[str]) -> Backend:
    """The backend that was asked for, else the fastest that can run this model. Raises UsageError."""
    threads = threads or cpu_limit()
    if wish in ("auto", "cpu"):
        packing, reason = native_layout(threads, config, matrix_types)
        if packing is not None:
            return CpuBackend(packing, threads)
        if wish == "cpu":
            raise UsageError(f"the native CPU backend cannot run this: {reason}", HINT)
        return ReferenceBackend(torch.device("cpu"), threads, (f"slow: the reference runs, because {reason}",))
    if wish == "cuda" and not torch.cuda.is_available():
        raise UsageError("this machine has no CUDA device that torch can use", HINT)
    if wish == "mps" and not torch.backends.mps.is_available():
        raise UsageError("this machine has no Apple GPU that torch can use", HINT)
    if wish == "reference":
        return ReferenceBackend(torch.device("cpu"), threads)
    note = f"the reference operations run on {wish}, with weights decoded"
    return ReferenceBackend(torch.device(wish), threads, (note,))


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
