"""Engines on the emulated GPU that serve a tiny model of any architecture, with weights and a cache of any type."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from localrun.backends.cuda.translator import CudaTranslator
from localrun.backends.executor import CachePlan, ExecutorRequest
from localrun.backends.gpu.executor import GpuExecutor
from localrun.backends.gpu.layouts import GpuLayout
from localrun.cache.store import CacheStore
from localrun.engine.engine import Engine
from localrun.engine.runner import Runner, cache_layers
from localrun.formats.safetensors import open_safetensors
from localrun.model.config import group_layers
from localrun.model.decoder import Model
from localrun.model.headers import read_config
from localrun.model.load import load_model
from localrun.ops.kv import KV_CODECS, KVPlan
from localrun.ops.layouts import F32
from localrun_testing import tiny_models
from localrun_testing.cache_engine import packed_model
from localrun_testing.emulated_cuda import emulated_device

CTX, N_BLOCKS = 512, 24
# Sizes that kernels and quantised types have, where a recipe is odder: heads of 16, rows of 32 columns.
_SIZES = {"head_dim": 32, "moe_intermediate_size": 64}
_EXPERTS_INSIDE = {"granite-hybrid-moe": {"intermediate_size": 64}}


@cache
def tiny_model(name: str, qtype: str) -> Model:
    """A recipe of tiny_models, its matrices as a GPU holds those of a type."""
    recipe = tiny_models.TINY_MODELS[name]
    sizes: dict[str, Any] = {key: value for key, value in _SIZES.items() if key in recipe.config}
    changed = replace(recipe, config={**recipe.config, **sizes, **_EXPERTS_INSIDE.get(name, {})})
    with TemporaryDirectory() as folder, patch.dict(tiny_models.TINY_MODELS, {name: changed}):
        source = open_safetensors(tiny_models.save(name, Path(folder)))
        model = load_model(source, F32, config=read_config(source).for_context(CTX))
        return packed_model(model, GpuLayout(), qtype)


def gpu_engine(model: Model, codec: str, span: int = 0, keep_prefixes: bool = True) -> Engine:
    """An engine, all layers' keys and values in `codec`; close it. span: tokens that prompts are read in bulk by."""
    plan = KVPlan(tuple(spec.cache.codec(KV_CODECS[codec]) for spec in model.config.layers))
    groups = group_layers(model.config.layers, plan.codecs)
    counts, rings = [N_BLOCKS] * len(groups), [0 if group.codec.native else N_BLOCKS for group in groups]
    cache = CachePlan(cache_layers(model.config, plan.codecs), plan, counts, rings)
    executor = GpuExecutor(CudaTranslator, emulated_device(), ExecutorRequest.of(model.forward, cache), span)
    runner = Runner(model.config, executor, plan.codecs)
    return Engine(runner, CacheStore(groups, counts, rings, runner.copy, keep_prefixes), CTX)
