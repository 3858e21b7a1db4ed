"""Plan of a model on the GPUs of another engine: how it is split, what each GPU holds, and how much context fits.

Bytes of weights and cache are those of `fit`. What an engine takes beside them, and its speed, are estimates.
"""

from dataclasses import replace
from math import gcd
from typing import Literal

from localrun.base.dataclass import dataclass
from localrun.fit.bytes import cache_bytes
from localrun.fit.gpus import MOST_NODES, Gpus
from localrun.fit.rates import Rates
from localrun.fit.roofline import usual_roofline
from localrun.fit.shape import ModelShape
from localrun.ops.kv import KV_CODECS

GPU_SHARE = 0.92  # of a GPU's memory that vLLM takes, as it does by default
OTHER_BYTES = 3 << 30  # of each GPU: the engine's graphs and its largest step; an estimate
SHORT_CONTEXT = 8192  # where bf16 leaves less than this, the cache is held in fp8
CONTEXT_STEP = 1024
USUAL_EACH = 8  # GPUs of a machine

CacheType = Literal["auto", "fp8"]
CACHE_TYPES: tuple[CacheType, ...] = ("auto", "fp8")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The checkpoint that an engine loads: its repository, its shape, and the bytes of its weights as they are."""

    repo: str
    shape: ModelShape
    weight_bytes: int
    approximate: bool = False  # the bytes follow from the shape alone

    @property
    def active_bytes(self) -> int:
        """Bytes of the weights that a token reads."""
        return self.weight_bytes * self.shape.active_params // self.shape.n_params

    def kv_bytes(self, ctx: int, kind: CacheType, chats: int = 1) -> int:
        """Bytes of the cache of `chats` chats of `ctx` tokens: 16 bits a value, or 8 of them."""
        caches = self.shape.caches or [spec.cache for spec in self.shape.config.layers]
        return chats * cache_bytes(caches, ctx, KV_CODECS["f16"]) // (2 if kind == "fp8" else 1)


@dataclass(frozen=True, slots=True)
class HandoverRow:
    """A context and a type of cache; bytes are those of one GPU. `max_ctx`: the longest that fits, 0 for none."""

    kv_cache_dtype: CacheType
    ctx: int
    gpu_weight_bytes: int
    gpu_kv_bytes: int
    gpu_other_bytes: int
    gpu_total_bytes: int
    gpu_usable_bytes: int
    fits: bool
    max_ctx: int
    est_decode_tps: float | None  # of one chat, at most; None where the speed of the memory is not known


@dataclass(frozen=True, slots=True)
class Handover:
    """The split over GPUs, a row for each type of cache, and the row to take; None where there is no room."""

    checkpoint: Checkpoint
    gpus: Gpus
    tensor_parallel: int
    pipeline_parallel: int
    chats: int
    rows: tuple[HandoverRow, ...]
    chosen: HandoverRow | None


def hand_over(checkpoint: Checkpoint, gpus: Gpus, ctx: int | None = None, chats: int = 1) -> Handover:
    """Plan `checkpoint` on `gpus` for `chats` chats of `ctx` tokens at once; None: as many as fit."""
    tensor, pipeline = _split(checkpoint.shape, gpus)
    plan = Handover(checkpoint, gpus, tensor, pipeline, chats, (), None)
    rows = tuple(_row(plan, kind, ctx) for kind in CACHE_TYPES)
    least = ctx or min(SHORT_CONTEXT, checkpoint.shape.config.max_context)
    fitting = [row for row in rows if row.fits]
    chosen = next((row for row in fitting if row.max_ctx >= least), max(fitting, key=_longest, default=None))
    return replace(plan, rows=rows, chosen=chosen)


def gpus_needed(checkpoint: Checkpoint, nbytes: int, ctx: int, chats: int = 1) -> Gpus | None:
    """The fewest GPUs of `nbytes` that have room, on machines of USUAL_EACH where one is not enough; None for none."""
    counts = [Gpus(each, nbytes) for each in (1, 2, 4, USUAL_EACH)]
    counts += [Gpus(USUAL_EACH, nbytes, nodes) for nodes in (2, 4, 8, 16, 32, 64)]
    return next((gpus for gpus in counts if hand_over(checkpoint, gpus, ctx, chats).chosen), None)


def _split(shape: ModelShape, gpus: Gpus) -> tuple[int, int]:
    """Tensor and pipeline parallelism: within a machine as far as the heads divide, the rest by layers."""
    layers = [spec for spec in shape.config.layers if spec.kind in ("full", "window")] or list(shape.config.layers)
    heads = gcd(*(spec.n_heads for spec in layers))
    tensor = max(n for n in range(1, gpus.each + 1) if gpus.each % n == 0 and heads % n == 0)
    return tensor, min(gpus.count // tensor, len(shape.config.layers), MOST_NODES)


def _row(plan: Handover, kind: CacheType, asked: int | None) -> HandoverRow:
    checkpoint, gpus = plan.checkpoint, plan.gpus
    weights = -(-checkpoint.weight_bytes // (plan.tensor_parallel * plan.pipeline_parallel))
    usable = int(gpus.nbytes * GPU_SHARE)
    longest = _longest_context(plan, kind, usable - weights - OTHER_BYTES)
    ctx = asked or longest or min(SHORT_CONTEXT, checkpoint.shape.config.max_context)
    cache = _gpu_kv_bytes(plan, kind, ctx)
    return HandoverRow(
        kv_cache_dtype=kind,
        ctx=ctx,
        gpu_weight_bytes=weights,
        gpu_kv_bytes=cache,
        gpu_other_bytes=OTHER_BYTES,
        gpu_total_bytes=weights + cache + OTHER_BYTES,
        gpu_usable_bytes=usable,
        fits=0 < ctx <= longest,
        max_ctx=longest,
        est_decode_tps=_decode_tps(plan, kind, ctx),
    )


def _longest_context(plan: Handover, kind: CacheType, room: int) -> int:
    """The longest context whose cache takes `room` bytes of each GPU, in whole steps below the model's own."""
    most = plan.checkpoint.shape.config.max_context
    if _gpu_kv_bytes(plan, kind, most) <= room:
        return most
    low, high = 0, most // CONTEXT_STEP
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _gpu_kv_bytes(plan, kind, middle * CONTEXT_STEP) <= room else (low, middle - 1)
    return low * CONTEXT_STEP


def _gpu_kv_bytes(plan: Handover, kind: CacheType, ctx: int) -> int:
    """Bytes of the cache on one GPU: beyond the number of KV heads, tensor parallelism holds them twice."""
    layers = [spec for spec in plan.checkpoint.shape.config.layers if spec.kind in ("full", "window")]
    heads = min((spec.n_kv_heads for spec in layers), default=1)
    shared = min(plan.tensor_parallel, heads) * plan.pipeline_parallel
    return -(-plan.checkpoint.kv_bytes(ctx, kind, plan.chats) // shared)


def _decode_tps(plan: Handover, kind: CacheType, ctx: int) -> float | None:
    """Tokens a second of one chat, if the links between GPUs took no time: its weights and its cache are read once."""
    if not plan.gpus.read_bytes:
        return None
    limits = usual_roofline(Rates(plan.gpus.read_bytes * plan.tensor_parallel, macs=1.0))  # stages follow each other
    read = plan.checkpoint.active_bytes + plan.checkpoint.kv_bytes(ctx, kind)
    return round(1 / limits.reading(read), 1)


def _longest(row: HandoverRow) -> int:
    return row.max_ctx
