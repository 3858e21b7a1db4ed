"""From a path to a running engine: open, check, plan, load."""

import time
from collections import Counter
from dataclasses import dataclass

import torch

from localrun.base.errors import ModelFileError, UsageError
from localrun.base.events import ModelInfo
from localrun.base.request import LoadOptions, Sampling
from localrun.cache.groups import BLOCK_TOKENS, group_layers
from localrun.cache.store import CacheStore
from localrun.engine.devices import device_for, free_bytes, reference_ops
from localrun.engine.engine import Engine
from localrun.engine.runner import Runner, cache_layers
from localrun.fit.machine import cpu_limit, memory
from localrun.fit.plan import Plan, plan_context
from localrun.formats.detect import open_model_file
from localrun.formats.source import TensorSource
from localrun.model.config import ModelConfig
from localrun.model.load import Progress, held_bytes, load_model, read_config, read_weight_refs
from localrun.ops.executor import ReferenceExecutor
from localrun.ops.kv import KV_CODECS, KVCodec
from localrun.ops.layouts import F32, FILE, Layout
from localrun.text.model_text import ModelText, load_text

DENSE_SHARE = 0.5  # of free memory that decoded weights may take; beyond it they stay in the file's encoding


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """Everything a face needs: the engine, the model's text side, and what was decided on the way."""

    engine: Engine
    text: ModelText
    config: ModelConfig
    codec: KVCodec
    plan: Plan
    info: ModelInfo
    sampling: Sampling  # the model's own settings


def load(options: LoadOptions, progress: Progress = lambda done, total: None) -> LoadedModel:
    """Open, check and load a model. Raises ModelFileError, DoesNotFitError, NotFoundError or UsageError."""
    started = time.perf_counter()
    source = open_model_file(options.path)
    config = read_config(source)
    refs = read_weight_refs(source, config)
    text = load_text(source)
    check_vocabulary(source, config, text)
    codec = codec_for(options.kv)
    device = device_for(options.backend)
    torch.set_num_threads(options.threads or cpu_limit())
    budget = free_bytes(device, memory().available)
    layout = choose_layout(held_bytes(source, refs, F32), budget)
    plan = plan_context(config, held_bytes(source, refs, layout), codec, budget, options.ctx)
    config = config.for_context(plan.ctx)
    model = load_model(source, layout, device, config, progress)
    executor = ReferenceExecutor(
        model.forward, cache_layers(config), plan.n_blocks, BLOCK_TOKENS, codec, device, reference_ops()
    )
    runner = Runner(config, executor)
    store = CacheStore(group_layers(config.layers), plan.n_blocks, keep_prefixes=options.prefix_cache)
    engine = Engine(runner, store, plan.ctx)
    info = ModelInfo(
        name=options.name or options.path.stem,
        path=str(options.path),
        arch=config.arch,
        precision=options.precision or commonest_type(source),
        backend="reference" if device.type == "cpu" else device.type,
        kv_codec=codec.name,
        ctx=plan.ctx,
        weights_bytes=plan.weights_bytes,
        load_ms=1000 * (time.perf_counter() - started),
        notes=(*text.notes, *notes_for(layout, device)),
    )
    return LoadedModel(engine, text, config, codec, plan, info, text.sampling)


def choose_layout(dense_bytes: int, budget: int) -> Layout:
    """Weights decoded once to f32 where memory is plentiful, otherwise as the file has them."""
    return F32 if dense_bytes <= DENSE_SHARE * budget else FILE


def codec_for(name: str) -> KVCodec:
    """The KV codec by name; `auto` is f16. Raises UsageError for one this build cannot run."""
    codec = KV_CODECS.get("f16" if name == "auto" else name)
    if codec is None or not codec.executable:
        usable = ", ".join(c.name for c in KV_CODECS.values() if c.executable)
        raise UsageError(f"the KV cache cannot be kept as {name!r}", f"choose one of: auto, {usable}")
    return codec


def check_vocabulary(source: TensorSource, config: ModelConfig, text: ModelText) -> None:
    """The tokenizer's ids must have rows in the embedding. A GGUF pads its vocabulary, so there they must agree."""
    n_tokens, n_rows = text.tokenizer.vocab_size, config.vocab_size
    if n_tokens > n_rows or (source.format == "gguf" and n_tokens != n_rows):
        raise ModelFileError(
            "BAD_VOCAB",
            f"the tokenizer has {n_tokens:,} tokens, the embedding {n_rows:,} rows",
            path=str(source.path),
        )


def commonest_type(source: TensorSource) -> str:
    """The type that most of the weights' bytes are stored in."""
    sizes: Counter[str] = Counter()
    for info in source.tensors.values():
        sizes[info.qtype] += info.nbytes
    return sizes.most_common(1)[0][0]


def notes_for(layout: Layout, device: torch.device) -> tuple[str, ...]:
    """What a user should know about how the weights are held."""
    if layout is FILE:
        return ("weights are decoded each time they are used: memory is short, and this is slow",)
    return () if device.type == "cpu" else (f"the reference operations run on {device.type}, with weights as f32",)
