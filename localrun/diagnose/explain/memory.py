"""What the cache takes: by layers, heads, codec and context, counted and allocated."""

from localrun.diagnose.explain.lesson import Bars, Figure, Lesson
from localrun.engine.load import LoadedModel
from localrun.fit.bytes import kv_bytes, kv_bytes_by_codec, kv_bytes_per_token
from localrun.model.config import ModelConfig
from localrun.ops.kv import BLOCK_TOKENS, KV_CODECS


def explain(model: LoadedModel) -> Lesson:
    config, codec = model.plan.config, model.plan.codec
    per_token = kv_bytes_per_token(config, codec)
    runner = model.engine.runner
    allocated = sum(runner.executor.block_bytes(number) for number in range(len(runner.groups))) / BLOCK_TOKENS
    formula, plain = heads_formula(config)
    figures = [
        Figure("a token in halves (f16)", "bytes", formula, plain, kv_bytes_by_codec(config)["f16"]),
        Figure(f"a token as {codec.name}, by layers", "bytes", "allocated / tokens of a block", allocated, per_token),
        Figure(
            f"a whole context of {model.plan.ctx:,}", "bytes", "", None, float(kv_bytes(config, codec, model.plan.ctx))
        ),
        Figure("room for it and for other chats", "bytes", "", None, model.plan.kv_bytes),
    ]
    by_codec = {name: float(n) for name, n in kv_bytes_by_codec(config).items()}
    return Lesson(
        "memory",
        "What the KV cache takes, and what it is made of",
        "Every layer keeps a key and a value of every token: 2 · KV heads · size of a head, for each layer. Fewer KV "
        "heads than query heads (GQA; one alone is MQA) divide that; a codec keeps each number in 8 or 4 bits "
        "instead of 16.",
        tuple(figures),
        (
            Bars("Bytes a token, by codec of the cache", "bytes", by_codec),
            Bars("Bytes a token in f16, if the KV heads were …", "bytes", by_heads(config)),
        ),
        f"`--kv q8` and `--kv q4` hold about {by_codec['f16'] / by_codec['q8']:.1f} and "
        f"{by_codec['f16'] / by_codec['q4']:.1f} times the context of f16 in the same memory.",
    )


def heads_formula(config: ModelConfig) -> tuple[str, float]:
    """The usual formula for layers that keep keys and values, and what it gives."""
    layers = [spec for spec in config.layers if spec.has_attention]
    shapes = {(spec.n_kv_heads, spec.head_dim) for spec in layers}
    total = float(sum(4 * spec.n_kv_heads * spec.head_dim for spec in layers))
    if len(shapes) == 1:
        heads, dim = shapes.pop()
        return f"2 · {len(layers)} layers · {heads} KV heads · {dim} dims · 2 bytes", total
    return "sum over layers of 2 · KV heads · dims · 2 bytes", total


def by_heads(config: ModelConfig) -> dict[str, float]:
    """As many KV heads as query heads, as it is, and one."""
    layers = [spec for spec in config.layers if spec.has_attention]
    two = KV_CODECS["f16"].k_bits // 8 * 2

    def bytes_with(heads: list[int]) -> float:
        return float(sum(two * n * spec.head_dim for n, spec in zip(heads, layers, strict=True)))

    return {
        "MHA: one for each query head": bytes_with([spec.n_heads for spec in layers]),
        "as this model has them": bytes_with([spec.n_kv_heads for spec in layers]),
        "MQA: one": bytes_with([1 for _ in layers]),
    }
