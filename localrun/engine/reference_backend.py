"""The reference operations as a backend: any model and type, on main memory, CUDA or an Apple GPU."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from localrun.base.errors import DoesNotFitError
from localrun.engine.runner import cache_layers
from localrun.fit.machine import peak_rss
from localrun.model.decoder import Model
from localrun.ops.kv import KVPlan
from localrun.ops.layouts import F32, FILE, Layout
from localrun.ops.memory import ran_out
from localrun.ops.reference import ReferenceOps
from localrun.ops.reference_executor import ReferenceExecutor
from localrun.ops.reference_rows import RowReferenceOps

DENSE_SHARE = 0.5  # of free memory that weights decoded to f32 may take
GPUS = {"cuda": "CUDA device", "mps": "Apple GPU"}


@dataclass(frozen=True, slots=True)
class ReferenceBackend:
    """Plain torch on `device`: any model, any type, slowly."""

    device: torch.device
    threads: int
    notes: tuple[str, ...] = ()

    @classmethod
    def on(cls, device: str, threads: int, notes: tuple[str, ...]) -> "ReferenceBackend":
        torch.set_num_threads(threads)
        return cls(torch.device(device), threads, notes)

    @property
    def in_main_memory(self) -> bool:
        return self.device.type == "cpu"

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

    def executor(
        self, model: Model, plan: KVPlan, blocks: Sequence[int], ring_blocks: Sequence[int]
    ) -> ReferenceExecutor:
        ops = RowReferenceOps if os.environ.get("LOCALRUN_REFERENCE") == "rows" else ReferenceOps
        layers = cache_layers(model.config, plan.codecs)
        torch.set_float32_matmul_precision("highest")  # no TF32: the reference defines what correct means
        try:
            return ReferenceExecutor(model.forward, layers, plan, blocks, ring_blocks, self.device, ops)
        except RuntimeError as error:
            if not ran_out(error):
                raise
        raise DoesNotFitError("memory ran out while making room for the KV cache", "try a smaller context with --ctx")


def why_no_device(name: str) -> str:
    """Why torch cannot compute on `cuda` or `mps` here; empty where it can, as on `cpu`."""
    if name == "cpu":
        return ""
    there = torch.cuda.is_available() if name == "cuda" else torch.backends.mps.is_available()
    if not there:
        return f"this machine has no {GPUS[name]} that torch can use"
    try:
        torch.ones(1, device=name).sum().item()
    except RuntimeError as error:  # too old for this torch, all of its memory taken, or kept by another program
        return f"torch cannot use the {GPUS[name]}: {str(error).partition(chr(10))[0]}"
    return ""
