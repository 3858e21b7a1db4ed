"""Topic `memory`: the size of the cache by layers, heads, codec and context, counted and allocated."""

from localrun.diagnose.explain.topic_report import Bars, Figure, TopicReport
from localrun.diagnose.explain.words import WORDS
from localrun.diagnose.predict.what_if import HEADS, Heads, heads_of, latents_formula, with_heads
from localrun.engine.load import LoadedModel
from localrun.engine.scratch_runs import ScratchRuns
from localrun.fit.bytes import kv_bytes, kv_bytes_by_codec, kv_bytes_per_token, layer_codecs
from localrun.model.config import ModelConfig
from localrun.ops.kv import BLOCK_TOKENS, KV_CODECS

PARTS = 4  # of the context that are looked at


def explain(model: LoadedModel) -> TopicReport:
    words = WORDS["memory"]
    config = model.plan.config
    formula, plain = heads_formula(config)
    figures = [Figure("a token in f16", "bytes", formula, plain, kv_bytes_by_codec(config)["f16"])]
    for part in range(1, PARTS + 1):
        n = model.plan.ctx * part // PARTS
        rule = blocks_formula(model) if part == 1 else ""
        figures.append(Figure(f"{n:,} tokens, allocated", "bytes", rule, block_bytes(model, n), allocated(model, n)))
    figures.append(Figure("room for this chat and others", "bytes", "", None, model.plan.kv_bytes))
    by_codec = {name: float(n) for name, n in kv_bytes_by_codec(config).items()}
    heads = {_name(kind, config): float(kv_bytes_by_codec(with_heads(config, kind))["f16"]) for kind in HEADS}
    if config.latents:
        heads[_name(None, config)] = by_codec["f16"]
    return TopicReport(
        "memory",
        words.title,
        words.text,
        tuple(figures),
        (
            Bars("Bytes a token, by codec of the cache", "bytes", by_codec),
            Bars("Bytes a token in f16, by KV heads", "bytes", heads),
        ),
        f"`--kv q8` and `--kv q4` hold about {by_codec['f16'] / by_codec['q8']:.1f} and "
        f"{by_codec['f16'] / by_codec['q4']:.1f} times the context of f16 in the same memory.",
    )


def allocated(model: LoadedModel, n_tokens: int) -> float:
    """Bytes of the blocks that a text of `n_tokens` tokens takes, in every layer group."""
    runner, store = model.engine.runner, model.engine.store
    with ScratchRuns(runner, store, depth=n_tokens) as run:
        held = [len({*table.held()}) for table in run.caches[0].tables[: len(runner.groups)]]
    return float(sum(n * runner.executor.block_bytes(number) for number, n in enumerate(held)))


def block_bytes(model: LoadedModel, n_tokens: int) -> int:
    """Bytes of the blocks for `n_tokens` tokens in the backend's layout."""
    total = 0
    for spec, codec in zip(model.plan.config.layers, layer_codecs(model.plan.config, model.plan.codec), strict=True):
        block, held = spec.cache.block_bytes(codec, BLOCK_TOKENS), model.backend.block_bytes(codec, spec.cache)
        total += spec.cache.nbytes(n_tokens, codec) * (held or 0) // max(block, 1)
    return total


def blocks_formula(model: LoadedModel) -> str:
    config, codec = model.plan.config, model.plan.codec
    scales = (block_bytes(model, BLOCK_TOKENS) - kv_bytes(config, codec, BLOCK_TOKENS)) // BLOCK_TOKENS
    more = f" and {scales:,} of scales" if scales else ""
    return f"tokens · {kv_bytes_per_token(config, codec):,} bytes as {codec.name}{more}, in blocks"


def heads_formula(config: ModelConfig) -> tuple[str, float]:
    """The usual formula for layers that store keys and values or latents, and its result."""
    if config.latents:
        return latents_formula(config, KV_CODECS["f16"]), float(kv_bytes_per_token(config, KV_CODECS["f16"]))
    layers = [spec for spec in config.layers if spec.has_attention and spec.shares_cache is None]
    shapes = {(spec.n_kv_heads, spec.head_dim) for spec in layers}
    total = float(sum(KV_CODECS["f16"].bytes_per_token(spec.head_dim) * spec.n_kv_heads for spec in layers))
    if len(shapes) == 1:
        heads, dim = shapes.pop()
        return f"2 · {len(layers)} layers · {heads} KV heads · {dim} dims · 2 bytes", total
    return "sum over layers of 2 · KV heads · dims · 2 bytes", total


def _name(kind: Heads | None, config: ModelConfig) -> str:
    return f"{kind or 'latents'} (as it is)" if kind == heads_of(config) else str(kind)
