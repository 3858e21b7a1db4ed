"""A model of random weights made in memory, with no file and no tokenizer: for cache, engine and op tests."""

import random
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from math import prod
from typing import Any

import torch

from localrun.backends.executor import CachePlan, ExecutorRequest
from localrun.backends.reference.executor import ReferenceExecutor
from localrun.backends.reference.ops import ReferenceOps
from localrun.cache.store import CacheStore
from localrun.engine.engine import Engine
from localrun.engine.generation import GenerationRequest, GenerationState
from localrun.engine.handle import Finished, GenerationHandle
from localrun.engine.runner import Runner, cache_layers
from localrun.engine.sampler import SamplerSettings
from localrun.model.config import LayerSpec, ModelConfig, RopeSpec, group_layers
from localrun.model.decoder import Model
from localrun.model.delta_net import DeltaNet
from localrun.model.latent_sizes import LatentSizes
from localrun.model.layer_weights import AttentionWeights, LatentWeights, LayerWeights, MixerWeights, ModelWeights
from localrun.model.mamba2 import Mamba2
from localrun.model.shapes import latent_shapes, made_of_a_token
from localrun.model.short_conv import GatedShortConv
from localrun.ops.instructions import LinearWeight
from localrun.ops.kv import KV_CODECS, KVPlan
from localrun.ops.layouts import F32, Packed

VOCAB_SIZE = 97
HIDDEN = 32
CPU = torch.device("cpu")
FULL = LayerSpec("full", None, 0, n_heads=4, n_kv_heads=2, head_dim=8, ffn_size=48, attn_scale=8**-0.5)
WINDOWED = replace(FULL, kind="window", window=20)
DELTA = replace(FULL, kind="recurrent", rope=None, mixer=DeltaNet(2, 4, 16, 32, taps=4, eps=1e-5, tiled=True))
MAMBA = replace(FULL, kind="recurrent", rope=None, mixer=Mamba2(4, 32, 2, 16, taps=4, eps=1e-5))
NETWORK = replace(FULL, kind="none", rope=None, activation="relu_squared")
CONV = replace(FULL, kind="recurrent", rope=None, mixer=GatedShortConv(HIDDEN, taps=3))

LATENT = replace(FULL, n_kv_heads=1, head_dim=40, attn_scale=20**-0.5, latent=LatentSizes(32, 8, 12, 16, 20, 1e-6))


def small_model(layers: tuple[LayerSpec, ...] = (FULL, WINDOWED, FULL), seed: int = 0) -> Model:
    """Random weights for `layers`; greedy answers wander over the vocabulary."""
    generator = torch.Generator().manual_seed(seed)

    def matrix(n_rows: int, n_cols: int, spread: float = 1.5) -> Packed:
        weights = torch.randn(n_rows, n_cols, generator=generator) * spread * n_cols**-0.5
        return Packed(F32, "F32", n_rows, n_cols, (weights,))

    def linear(n_rows: int, n_cols: int) -> LinearWeight:
        return LinearWeight(matrix(n_rows, n_cols))

    def norm(size: int = HIDDEN) -> torch.Tensor:
        return 1 + 0.3 * torch.randn(size, generator=generator)

    def mixing(spec: LayerSpec) -> AttentionWeights | LatentWeights | MixerWeights | None:
        if spec.kind == "none":
            return None
        if spec.mixer is not None:
            matrices = {name: linear(*shape) for name, shape in spec.mixer.matrices(HIDDEN).items()}
            vectors = {name: torch.randn(prod(n), generator=generator) for name, n in spec.mixer.vectors().items()}
            if "decay" in vectors:
                vectors["decay"] = -vectors["decay"].abs()
            return MixerWeights(matrices, vectors)
        if spec.latent is not None:
            shapes = latent_shapes(HIDDEN, spec.n_heads, spec.latent).items()
            parts: dict[str, Any] = {name: (norm if len(shape) == 1 else linear)(*shape) for name, shape in shapes}
            return LatentWeights(**{"q_a": None, "q_a_norm": None} | parts)
        kv = [linear(spec.n_kv_heads * spec.head_dim, HIDDEN) for _ in made_of_a_token(spec)]
        return AttentionWeights(
            q=linear(spec.n_heads * spec.head_dim, HIDDEN),
            k=kv[0] if kv else None,
            v=kv[1] if len(kv) > 1 else None,
            o=linear(HIDDEN, spec.n_heads * spec.head_dim),
            sinks=torch.randn(spec.n_heads, generator=generator) if spec.sinks else None,
        )

    weights = [
        LayerWeights(
            mixing(spec),
            gate=linear(spec.ffn_size, HIDDEN) if spec.ffn_size and spec.has_gate else None,
            up=linear(spec.ffn_size, HIDDEN) if spec.ffn_size else None,
            down=linear(HIDDEN, spec.ffn_size) if spec.ffn_size else None,
            attn_norm=norm(),
            ffn_norm=norm(),
        )
        for spec in layers
    ]
    config = ModelConfig("llama", HIDDEN, VOCAB_SIZE, 4096, 1e-5, layers, (RopeSpec(10000.0, 8),))
    embed, output = (LinearWeight(matrix(VOCAB_SIZE, HIDDEN, 4.0)) for _ in range(2))
    return Model(config, ModelWeights(embed, tuple(weights), norm(), output))


def rolling(model: Model) -> Model:
    """With queries that see a window and the first block, as once a text has outgrown its context."""
    return replace(model, config=model.config.for_window(64))


def moved(part: Any, device: torch.device) -> Any:
    """A model, its weights or any part of them with every tensor on `device`."""
    if isinstance(part, torch.Tensor):
        return part.to(device)
    return with_parts(part, lambda one: moved(one, device))


def with_parts(part: Any, change: Callable[[Any], Any]) -> Any:
    """Whatever holds others, with `change` made to each of them; anything else as it is."""
    if isinstance(part, tuple):
        return tuple(map(change, part))
    if isinstance(part, dict):
        return {name: change(item) for name, item in part.items()}
    if is_dataclass(part) and not isinstance(part, type):
        return replace(part, **{f.name: change(getattr(part, f.name)) for f in fields(part)})
    return part


def small_runner(
    n_blocks: int = 12, codec: str = "f32", ops: type[ReferenceOps] = ReferenceOps, model: Model | None = None
) -> Runner:
    model = model or small_model()
    return Runner(model.config, reference_executor(model, n_blocks, codec, ops))


def reference_executor(
    model: Model,
    n_blocks: int,
    codec: str = "f32",
    ops: type[ReferenceOps] = ReferenceOps,
    device: torch.device = CPU,
) -> ReferenceExecutor:
    """Every group has `n_blocks` coded and, with a quantised codec, as many 16-bit blocks. `model` is on `device`."""
    layers = cache_layers(model.config)
    plan, n_groups = KVPlan.uniform(KV_CODECS[codec], len(layers)), 1 + max(layer.group for layer in layers)
    rings = [0 if KV_CODECS[codec].native else n_blocks] * n_groups
    cache = CachePlan(layers, plan, [n_blocks] * n_groups, rings)
    return ReferenceExecutor(ExecutorRequest.of(model.forward, cache), device, ops)


def small_engine(
    ctx: int = 512,
    n_blocks: int = 12,
    ops: type[ReferenceOps] = ReferenceOps,
    keep_prefixes: bool = True,
    model: Model | None = None,
) -> Engine:
    """An engine on a small model; close it."""
    model = model or small_model()
    groups = group_layers(model.config.layers)
    runner = small_runner(n_blocks, ops=ops, model=model)
    store = CacheStore(groups, [n_blocks] * len(groups), copy=runner.copy, keep_prefixes=keep_prefixes)
    return Engine(runner, store, ctx)


def greedy(prompt: list[int], max_tokens: int = 20, stop_ids: frozenset[int] = frozenset()) -> GenerationRequest:
    return GenerationRequest(tuple(prompt), max_tokens, stop_ids, SamplerSettings(temperature=0.0), seed=0)


def text(n_tokens: int, seed: int = 0) -> list[int]:
    """Random ids; the same seed gives the same."""
    return random.Random(seed).choices(range(VOCAB_SIZE), k=n_tokens)


def finish(handle: GenerationHandle) -> GenerationState:
    """The sequence of a generation, once it has ended."""
    for event in handle:
        if isinstance(event, Finished):
            return event.sequence
    raise AssertionError("no end")
