"""Which backend runs a model: the native CPU library, or the reference operations on some torch device."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from localrun.base.errors import DoesNotFitError, UsageError
from localrun.base.request import Backend as BackendName
from localrun.engine.runner import cache_layers
from localrun.engine.scheduler import MAX_CHUNK, MAX_RUNNING
from localrun.fit.machine import cpu_limit, peak_rss
from localrun.model.config import ModelConfig
from localrun.model.decoder import Model
from localrun.ops.cpu import CpuExecutor, CpuLayout
from localrun.ops.cpu_calls import calls_of
from localrun.ops.executor import Executor, ReferenceExecutor
from localrun.ops.kv import KV_CODECS, KVPlan
from localrun.ops.layouts import F32, FILE, Layout
from localrun.ops.library import NUMERICS_VERSION, load_library, why_no_library
from localrun.ops.memory import ran_out
from localrun.ops.reference import ReferenceOps
from localrun.ops.reference_rows import RowReferenceOps

HINT = "leave --backend away, or see what `localrun doctor` says"
DENSE_SHARE = 0.5  # of free memory that weights decoded to f32 may take
GPUS = {"cuda": "CUDA device", "mps": "Apple GPU"}
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

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

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
        chip = torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else self.device.type
        return f"reference {chip} {torch.__version__} {os.environ.get('LOCALRUN_REFERENCE')}"

    def free_bytes(self, main_memory: int) -> int:
        """What torch holds for later use of this process counts as free."""
        if self.device.type == "cuda":
            kept = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
            return int(torch.cuda.mem_get_info(self.device)[0]) + kept
        if self.device.type == "mps":
            return min(main_memory, torch.mps.recommended_max_memory() - torch.mps.current_allocated_memory())
        return main_memory

    def peak_bytes(self) -> int:
        return torch.cuda.max_memory_allocated(self.device) if self.device.type == "cuda" else peak_rss()

    def layout(self, dense_bytes: int, budget: int) -> Layout:
        """Decoded once to f32 where memory is plentiful, otherwise as the file has them."""
        return F32 if dense_bytes <= DENSE_SHARE * budget else FILE

    def executor(self, model: Model, plan: KVPlan, blocks: Sequence[int], ring_blocks: Sequence[int]) -> Executor:
        ops = RowReferenceOps if os.environ.get("LOCALRUN_REFERENCE") == "rows" else ReferenceOps
        layers = cache_layers(model.config, plan.codecs)
        torch.set_float32_matmul_precision("highest")  # no TF32: the reference defines what correct means
        try:
            return ReferenceExecutor(model.forward, layers, plan, blocks, ring_blocks, self.device, ops)
        except RuntimeError as error:
            if not ran_out(error):
                raise
        raise DoesNotFitError("memory ran out while making room for the KV cache", "try a smaller context with --ctx")


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
    if wish == "reference":
        return ReferenceBackend(torch.device("cpu"), threads)
    if reason := why_no_gpu(wish):
        raise UsageError(reason, HINT)
    note = f"the reference operations run on {wish}, with weights decoded"
    return ReferenceBackend(torch.device(wish), threads, (note,))


def why_no_gpu(name: str) -> str:
    """Why torch cannot compute on `cuda` or `mps` here; empty where it can."""
    there = torch.cuda.is_available() if name == "cuda" else torch.backends.mps.is_available()
    if not there:
        return f"this machine has no {GPUS[name]} that torch can use"
    try:
        torch.ones(1, device=name).sum().item()
    except RuntimeError as error:  # too old for this torch, all of its memory taken, or kept by another program
        return f"torch cannot use the {GPUS[name]}: {str(error).partition(chr(10))[0]}"
    return ""


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
