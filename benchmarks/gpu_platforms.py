"""What the platforms of GPUs have in common for benchmarks: one backend each, and launches by the same names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from localrun.backends.cuda import availability as cuda_availability
from localrun.backends.cuda import bulk_linears
from localrun.backends.cuda import linears as cuda_linears
from localrun.backends.cuda import norms as cuda_norms
from localrun.backends.cuda import source as cuda_source
from localrun.backends.cuda.backend import CudaBackend
from localrun.backends.cuda.bulk import span_of
from localrun.backends.cuda.bulk_linears import BulkMemory, Multiplies
from localrun.backends.cuda.translator import CudaTranslator
from localrun.backends.gpu import attention
from localrun.backends.gpu.device import Device, Launch
from localrun.backends.gpu.layer_cache import LayerCache
from localrun.backends.gpu.q8 import Q8
from localrun.backends.gpu.step_tensors import StepTensors
from localrun.backends.gpu.translator import Translator
from localrun.backends.metal import availability as metal_availability
from localrun.backends.metal import linears as metal_linears
from localrun.backends.metal import norms as metal_norms
from localrun.backends.metal.backend import MetalBackend
from localrun.backends.metal.source import KERNELS
from localrun.backends.metal.translator import MetalTranslator
from localrun.backends.reference.pool import KVPool
from localrun.ops.cache_layer import CacheLayer
from localrun.ops.instructions import Attention, LinearWeight
from localrun.ops.kv import KV_CODECS, KVPlan
from localrun.ops.layouts import Packed


@dataclass(frozen=True)
class AttentionCase:
    """Attention of many heads over a cache with one layer."""

    op: Attention
    cache: LayerCache
    q: Tensor  # f32 [rows, n_heads · head_dim]
    out: Tensor
    rows: int
    n_units: int
    partial: Tensor

    @classmethod
    def room(cls, place: CacheLayer, n_blocks: int, where: torch.device, codec: str) -> KVPool:
        kept = KV_CODECS[codec]
        return KVPool([place], KVPlan((kept,)), [n_blocks], [0 if kept.native else n_blocks], where)


class Platform(ABC):
    """Kernels of one kind of GPU."""

    title: str
    backend: CudaBackend | MetalBackend
    translator: type[Translator]

    @property
    @abstractmethod
    def is_emulated(self) -> bool: ...
    @property
    def device(self) -> Device:
        return self.backend.kernel_device

    @abstractmethod
    def generation(self) -> str:
        """Of the GPU, as its kernels are chosen."""
        ...

    @abstractmethod
    def sources(self) -> dict[str, str]:
        """Hashes of every file of kernels."""
        ...

    @abstractmethod
    def wait(self) -> None:
        """Until the device has done all it was asked for."""
        ...

    @abstractmethod
    def linear(self, x: Tensor, weights: Sequence[Packed], out: Tensor) -> tuple[list[Launch], Tensor]:
        """A product with each of the matrices -> launches, and the numbers that are multiplied."""
        ...

    @abstractmethod
    def norm(self, x: Tensor, weight: Tensor, out: Tensor) -> Launch: ...
    def attend(self, step: StepTensors, case: AttentionCase) -> list[Launch]:
        operands = (case.q, None, case.out, case.rows, case.n_units, case.partial)
        return list(attention.attend(self.device, step, case.op, case.cache, *operands))

    @property
    def bulk_span(self) -> int:
        """Tokens of a span of a prompt that are read in bulk; 0 where none are."""
        return 0

    def in_bulk(self, x: Tensor, packed: Packed, out: Tensor, span: int) -> list[Launch]:
        """The product as it is read in bulk; none where there is no such way."""
        return []


class Cuda(Platform):
    title = "CUDA"
    translator = CudaTranslator

    def __init__(self) -> None:
        self.backend = CudaBackend()

    @property
    def is_emulated(self) -> bool:
        return cuda_availability.is_emulated()

    def generation(self) -> str:
        return f"sm_{self.device.arch}"

    def sources(self) -> dict[str, str]:
        return cuda_source.file_hashes()

    def wait(self) -> None:
        if not self.is_emulated:
            torch.cuda.synchronize()

    def linear(self, x: Tensor, weights: Sequence[Packed], out: Tensor) -> tuple[list[Launch], Tensor]:
        rows, n_cols = x.shape
        q8 = Q8.of(n_cols, rows, x.device)
        cuda_norms.quantize(self.device, x, rows, q8)()
        every = [
            one
            for packed in weights
            for one in cuda_linears.linear(self.device, x, q8, [LinearWeight(packed)], [out], rows)
        ]
        return every, q8.decoded(n_cols) if cuda_linears.reads_q8(weights[0]) else x

    def norm(self, x: Tensor, weight: Tensor, out: Tensor) -> Launch:
        q8 = Q8.of(x.shape[1], len(x), x.device)
        return cuda_norms.norm(self.device, x, weight, 1e-5, len(x), out=out, q8=q8)

    @property
    def bulk_span(self) -> int:
        return span_of(self.device.arch)

    def in_bulk(self, x: Tensor, packed: Packed, out: Tensor, span: int) -> list[Launch]:
        sizes = (x.numel(), packed.n_rows * packed.n_cols, span * packed.n_rows)
        memory = BulkMemory(*(torch.zeros(size, dtype=torch.bfloat16, device=x.device) for size in sizes))
        device = cast("Multiplies", self.device)
        return [*bulk_linears.linear(device, memory, x, [LinearWeight(packed)], [out], span)]


class Metal(Platform):
    title = "Metal"
    translator = MetalTranslator

    def __init__(self) -> None:
        self.backend = MetalBackend()

    @property
    def is_emulated(self) -> bool:
        return metal_availability.is_emulated()

    def generation(self) -> str:
        return f"Apple{self.device.arch}"

    def sources(self) -> dict[str, str]:
        return KERNELS.file_hashes()

    def wait(self) -> None:
        self.backend.wait()

    def linear(self, x: Tensor, weights: Sequence[Packed], out: Tensor) -> tuple[list[Launch], Tensor]:
        device, rows = self.backend.kernel_device, len(x)
        return [one for w in weights for one in metal_linears.linear(device, x, [LinearWeight(w)], [out], rows)], x

    def norm(self, x: Tensor, weight: Tensor, out: Tensor) -> Launch:
        return metal_norms.norm(self.device, x, weight, 1e-5, len(x), out=out)


def platform(anyway: bool = False) -> Platform:
    """The one of this machine, or of what is emulated; `anyway` also where its self-test fails. LookupError with a
    reason for each where there is none."""
    every: tuple[Callable[[], Platform], ...] = (Cuda, Metal)
    reasons = []
    for make in every:
        one = make()
        reason = one.backend.why_unavailable() or ("" if anyway else one.backend.self_test())
        if not reason:
            return one
        reasons.append(f"{one.title} cannot be used here: {reason}")
    raise LookupError("\n".join(reasons))
