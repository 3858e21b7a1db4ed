"""Engines on small random models with any layers, codecs and pools: on the native library, or row by row."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch

from localrun.backends.cpu.bindings import calls_of
from localrun.backends.cpu.executor import CpuExecutor
from localrun.backends.cpu.layout import CpuLayout
from localrun.backends.cpu.library import load_library
from localrun.backends.executor import CachePlan, Executor, ExecutorRequest
from localrun.backends.reference.executor import ReferenceExecutor
from localrun.backends.reference.ops import ReferenceOps
from localrun.backends.reference.rows import RowReferenceOps
from localrun.cache.store import CacheStore
from localrun.engine.engine import Engine
from localrun.engine.runner import Runner, cache_layers
from localrun.formats.quant import QUANT_TYPES
from localrun.model.config import LayerSpec, group_layers
from localrun.model.decoder import Model
from localrun.ops.kv import KV_CODECS, KVPlan
from localrun.ops.largest_step import MAX_ROWS
from localrun.ops.layouts import MAPPED, Layout, Packed, RowReader
from localrun_testing.small_model import (
    CONV,
    CPU,
    DELTA,
    FULL,
    LATENT,
    MAMBA,
    NETWORK,
    WINDOWED,
    moved,
    small_model,
    with_parts,
)

GEMMA = (WINDOWED, WINDOWED, FULL) * 2  # windows of 20 tokens, a full layer now and then
GEMMA4 = tuple(replace(spec, image_spans=spec.window is not None) for spec in GEMMA)  # rows of images see both ways
MISTRAL = (replace(WINDOWED, window=100),) * 3
LLAMA = (FULL,) * 3
LATENTS = (LATENT,) * 3
GPT_OSS = tuple(replace(spec, sinks=True) for spec in (WINDOWED, FULL) * 2)
HYBRID = (DELTA, DELTA, FULL) * 2  # linear attention, and a full layer now and then
GRANITE_H = (MAMBA, FULL, MAMBA, MAMBA)  # a state space, likewise
NEMOTRON_H = (  # layers of one block
    NETWORK,
    *(replace(spec, ffn_size=0) for spec in (MAMBA, replace(FULL, rope=None))),
    NETWORK,
    *(replace(spec, ffn_size=0) for spec in (MAMBA, MAMBA, replace(FULL, rope=None))),
)
LFM = (CONV, CONV, FULL) * 2  # short convolutions, likewise
SHARING = (  # the last of each kind serve two layers more; values are keys before norm and rope, and normed
    *(replace(spec, v_norm=True, k_is_v=spec is FULL) for spec in (WINDOWED, FULL, WINDOWED, FULL)),
    *(replace(spec, shares_cache=source) for spec, source in ((WINDOWED, 2), (FULL, 3))),
)


@dataclass(frozen=True, slots=True)
class CacheCase:
    """`codec` of full layers; those with a window of their own have `window_codec`. Blocks a group."""

    layers: tuple[LayerSpec, ...]
    codec: str = "f16"
    window_codec: str = "f16"
    ctx: int = 1024
    n_blocks: int = 40
    window_blocks: int = 20
    ring_blocks: int = 20
    user_window: int | None = None
    rolls: bool = False

    def engine(
        self,
        native: bool,
        keep_prefixes: bool = True,
        device: torch.device = CPU,
        ops: type[ReferenceOps] = RowReferenceOps,
    ) -> Engine:
        """An engine, `ops` on `device` where it is not native; close it."""
        small: Model = moved(small_model(self.layers), device)
        config = small.config
        if self.user_window or self.rolls:
            config = config.for_window(self.user_window or self.ctx - 64)
        model = Model(config, small.weights)
        names = [self.window_codec if spec.window is not None else self.codec for spec in config.layers]
        wanted = zip(config.layers, names, strict=True)
        plan = KVPlan(tuple(spec.cache.codec(KV_CODECS[name]) for spec, name in wanted))
        groups = group_layers(config.layers, plan.codecs)
        counts = [self.window_blocks if group.replayable else self.n_blocks for group in groups]
        rings = [0 if group.codec.native else self.ring_blocks for group in groups]
        runner = Runner(config, executor(model, plan, counts, rings, native, device, ops), plan.codecs)
        store = CacheStore(groups, counts, rings, runner.copy, keep_prefixes)
        return Engine(runner, store, self.ctx)


def executor(
    model: Model,
    plan: KVPlan,
    counts: Sequence[int],
    rings: Sequence[int],
    native: bool,
    device: torch.device = CPU,
    ops: type[ReferenceOps] = RowReferenceOps,
) -> Executor:
    cache = CachePlan(cache_layers(model.config, plan.codecs), plan, counts, rings)
    if not native:
        return ReferenceExecutor(ExecutorRequest.of(model.forward, cache), device, ops)
    packing = native_layout()
    packed = packed_model(model, packing)
    return CpuExecutor(packing, ExecutorRequest.of(packed.forward, cache), MAX_ROWS)


@cache
def native_layout() -> CpuLayout:
    library = load_library()
    assert library is not None
    return CpuLayout(calls_of(library), 1)


def packed_model(model: Model, layout: Layout, qtype: str = "F32") -> Model:
    """The same weights in a layout, as a type that they can be encoded in; as F32 where rows are no whole blocks of it.
    Tables that stay in their file stay there."""

    def packed(part: Any) -> Any:
        if isinstance(part, Packed):
            return part if part.layout is MAPPED else packed_matrix(part)
        return with_parts(part, packed)

    def packed_matrix(matrix: Packed) -> Packed:
        held = "F32" if matrix.n_cols % QUANT_TYPES[qtype].block_size else qtype
        rows = QUANT_TYPES[held].encode(matrix.planes[0]).view(matrix.n_rows, -1)
        return layout.pack(
            RowReader(held, matrix.n_rows, matrix.n_cols, lambda first, n: rows[first : first + n].numpy())
        )

    return Model(model.config, packed(model.weights))
