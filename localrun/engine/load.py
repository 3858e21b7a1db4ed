"""From a path to a running engine: open, check, plan, load."""

import time
from collections import Counter
from dataclasses import dataclass
from math import prod
from typing import Any

from localrun.backends.executor import Executor
from localrun.backends.interface import Backend
from localrun.backends.registry import choose_backend
from localrun.base.check import check_load
from localrun.base.errors import ModelFileError
from localrun.base.events import ModelInfo, Work
from localrun.base.machine import cpu_limit, memory, resident
from localrun.base.paths import writable_folder
from localrun.base.request import LoadOptions, Sampling
from localrun.cache.chat_codec import ChatCodec, codec_of
from localrun.cache.disk import DISK_FOLDER, DiskTier
from localrun.cache.label import Label
from localrun.cache.store import CacheStore
from localrun.engine.disk_cache import DiskCache
from localrun.engine.engine import Engine
from localrun.engine.fingerprint import fingerprint, without_sinks
from localrun.engine.identity import Identity
from localrun.engine.runner import Runner, cache_layers
from localrun.fit.plan import MemoryPlan, plan_load
from localrun.formats.detect import open_model_file
from localrun.formats.requantize import PRECISIONS, RequantizedSource, encode_on_one_thread_each
from localrun.formats.source import TensorSource
from localrun.model.config import ModelConfig
from localrun.model.decoder import LayerWeights, Model, ModelWeights
from localrun.model.load import (
    Progress,
    held_bytes,
    load_model,
    matrices_of_a_token,
    read_config,
    read_weight_refs,
    work_per_token,
)
from localrun.model.weights import WeightRef
from localrun.ops.kv import KVCodec
from localrun.ops.layouts import F32, FILE, Layout
from localrun.ops.numerics import NUMERICS_VERSION
from localrun.text.model_text import ModelText, load_text

WIDE = ("F32", "F16", "BF16")  # types whose numbers are multiplied as they are


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """Everything a face needs: the engine, the model's text side, and what was decided on the way."""

    engine: Engine
    model: Model
    backend: Backend
    text: ModelText
    config: ModelConfig
    codec: KVCodec
    plan: MemoryPlan
    info: ModelInfo
    sampling: Sampling  # the model's own settings
    threads: int
    file_bytes_per_token: int  # of weights, in the file's own encoding
    macs_per_token: int


def load(options: LoadOptions, progress: Progress = lambda done, total: None) -> LoadedModel:
    """Open, check and load a model. Raises ModelFileError, DoesNotFitError, NotFoundError or UsageError."""
    started = time.perf_counter()
    check_load(options)
    source: TensorSource = open_model_file(options.path)
    identity = Identity(source) if options.disk_cache and options.prefix_cache else None
    text = load_text(source)
    if options.precision in PRECISIONS and source.format == "safetensors":
        source = RequantizedSource(source, PRECISIONS[options.precision])
    config = read_config(source)
    refs = read_weight_refs(source, config)
    check_vocabulary(source, config, text)
    types = [source.tensors[ref.name].qtype for ref in refs.values() if len(ref.shape) == 2]
    backend, backend_notes = choose_backend(options.backend, config, types)
    threads = options.threads or cpu_limit()
    main = memory()
    budget = backend.free_bytes(main.available)
    layout = backend.layout(held_bytes(source, refs, F32), budget, threads)
    plan = plan_load(
        config,
        held_bytes(source, refs, layout),
        budget,
        backend=backend,
        ctx=options.ctx,
        kv=options.kv,
        window=options.window,
        resident=resident() if backend.in_main_memory else 0,
        threads=threads,
        keep_chats=options.prefix_cache,
        limit=main.limit if backend.in_main_memory else "",
        before=codec_before(options) if identity else None,
    )
    config = plan.config
    if isinstance(source, RequantizedSource) and backend.name == "cpu":
        encode_on_one_thread_each()
    model = load_model(source, layout, backend.device, config, progress)
    executor = start_executor(backend, model, plan, threads)
    runner = Runner(config, executor, plan.codecs)
    store = CacheStore(runner.groups, plan.blocks, plan.ring_blocks, runner.copy, options.prefix_cache)
    disk = None
    if identity is not None and (weights := identity.result()):
        kept = without_sinks(config), plan.codecs, options.precision, backend.rounding, layout.name
        name = options.name or options.path.stem
        label = Label(name, str(options.path), options.precision, plan.codec.name, weights, NUMERICS_VERSION)
        disk = open_disk_cache(store, runner, fingerprint(weights, *kept), label, options.disk_cache)
    slow = ("weights are decoded each time they are used: memory is short, and this is slow",) if layout is FILE else ()
    lost = ("nothing is kept on disk: the model's files cannot be read twice",) if identity and disk is None else ()
    engine = Engine(runner, store, plan.ctx, endless=all(rope.endless for rope in config.ropes), disk=disk)
    info = ModelInfo(
        name=options.name or options.path.stem,
        path=str(options.path),
        arch=config.arch,
        precision=options.precision or commonest_type(source),
        backend=backend.name,
        kv_codec=plan.codec.name,
        ctx=plan.ctx,
        weights_bytes=plan.weights_bytes,
        load_ms=1000 * (time.perf_counter() - started),
        notes=(*source.warnings, *text.notes, *backend_notes, *plan.notes, *slow, *lost),
        work=work_of(source, refs, layout, config) if backend.name == "cpu" else None,
        can_roll=engine.can_roll,
    )
    return LoadedModel(
        engine,
        model,
        backend,
        text,
        config,
        plan.codec,
        plan,
        info,
        text.sampling,
        threads,
        *work_per_token(source, refs),
    )


def start_executor(backend: Backend, model: Model, plan: MemoryPlan, threads: int) -> Executor:
    """The model on a backend, with the cache that was planned."""
    layers = cache_layers(model.config, plan.codecs)
    return backend.executor(model.forward, layers, plan.kv_plan, plan.blocks, plan.ring_blocks, threads)


def work_of(source: TensorSource, refs: dict[str, WeightRef], layout: Layout, config: ModelConfig) -> Work:
    """What a token takes of the native library."""
    matrices = matrices_of_a_token(refs)
    seeing_all = [spec for spec in config.layers if spec.window is None]
    return Work(
        weight_bytes=sum(layout.nbytes(source.tensors[ref.name].qtype, *ref.shape) for ref in matrices),
        macs=sum(prod(ref.shape) for ref in matrices if source.tensors[ref.name].qtype not in WIDE),
        wide_macs=sum(prod(ref.shape) for ref in matrices if source.tensors[ref.name].qtype in WIDE),
        attention_macs=2 * sum(spec.n_heads * spec.head_dim for spec in seeing_all),
    )


def codec_before(options: LoadOptions) -> ChatCodec | None:
    """What the chat that is gone on with is kept in."""
    home = writable_folder("cache") if options.chat_id else None
    if home is None:
        return None
    return codec_of(home / DISK_FOLDER, options.chat_id, options.path, options.precision, NUMERICS_VERSION)


def open_disk_cache(store: CacheStore, runner: Runner, identity: str, label: Label, budget: int) -> DiskCache | None:
    """Where blocks are kept between runs; None where nothing can be written."""
    home = writable_folder("cache")
    if home is None:
        return None
    tier = DiskTier(home / DISK_FOLDER, identity, runner.block_sizes, label, runner.sink_window)
    return DiskCache(store, tier, runner.read, runner.write, budget)


def allocated_bytes(weights: ModelWeights) -> int:
    """Bytes that weights take in memory; tied ones once."""
    found: dict[int, int] = {}

    def visit(part: Any) -> None:
        if isinstance(part, tuple):
            for item in part:
                visit(item)
        elif isinstance(part, LayerWeights):
            for name in part.__dataclass_fields__:
                visit(getattr(part, name))
        elif part is not None:
            found[id(part)] = part.nbytes

    visit((weights.embed, weights.output, weights.output_norm, weights.layers))
    return sum(found.values())


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
