"""Topics about bytes: what the cache and the weights take, and what a window saves. Torch-free."""

from dataclasses import replace

from localrun.base.units import gib
from localrun.diagnose.explain.topic_report import Bars, Curve, Figure, TopicReport
from localrun.diagnose.explain.words import WORDS
from localrun.diagnose.predict.textbook import kv_correction, weights_correction
from localrun.diagnose.predict.times import Times
from localrun.diagnose.predict.what_if import HEADS, PRECISIONS, WhatIf, heads_of, latents_formula
from localrun.ops.kv import BLOCK_TOKENS, KV_CODECS

POINTS = 24
CODECS = tuple(name for name in KV_CODECS if name != "f32")


def memory(times: Times) -> TopicReport:
    """The cache by codec and by heads, and the memory left beside the weights."""
    what = times.what
    one = replace(what, cached=True, chats=1)
    figures = [
        Figure(f"a token as {what.codec}", "bytes", token_formula(what), float(what.token_bytes), None),
        Figure(f"the cache of {what.ctx:,} tokens", "bytes", "tokens · a token", float(one.cache_bytes), None),
        Figure("the weights", "bytes", weights_formula(what), float(what.weights_bytes), None),
        Figure("together", "bytes", "weights + chats · cache", float(what.total_bytes), None),
    ]
    if times.free is not None:
        figures.append(Figure("free on this machine", "bytes", "", None, float(times.free)))
    kinds = [replace(one, heads=kind) for kind in (*HEADS, *[None] * bool(what.size.shape.config.latents))]
    pictures = (
        Bars(
            f"The cache of {what.ctx:,} tokens, by codec",
            "bytes",
            {codec: float(replace(one, codec=codec).cache_bytes) for codec in CODECS},
        ),
        Bars(
            f"The same as {what.codec}, by KV heads",
            "bytes",
            {_heads_name(of): float(of.cache_bytes) for of in kinds},
        ),
    )
    off = "" if what.cached else " It is off now: nothing is kept, and every token reads the whole text again."
    return _report("memory", tuple(figures), pictures, _fits(times) + off, kv_correction(what))


def precision(times: Times) -> TopicReport:
    """The same weights in fewer bits: bytes and tokens per second."""
    what = times.what
    loaded = () if what.size.loaded is None else (what.size.loaded[0],)
    each = {name: replace(what, weights=name) for name in dict.fromkeys((*PRECISIONS, *loaded))}
    rates = {name: what.chats / replace(times, what=one).token(what.ctx).longer for name, one in each.items()}
    figures = (
        Figure(f"the weights as {what.weights}", "bytes", weights_formula(what), float(what.weights_bytes), None),
        Figure("tokens a second, answer", "tok/s", "bytes a second / (weights + cache)", rates[what.weights], None),
        Figure("against FP16", "x", "", rates[what.weights] / rates["FP16"], None),
    )
    pictures = (
        Bars("Bytes of the weights", "bytes", {name: float(one.weights_bytes) for name, one in each.items()}),
        Bars(f"Tokens a second after {what.ctx:,} tokens", "tok/s", rates),
    )
    return _report(
        "precision",
        figures,
        pictures,
        "INT8 is hard to tell from FP16, INT4 costs a little, and INT2 is for trying out. How much a model loses shows "
        "only when it is measured.",
        weights_correction(what),
    )


def window(times: Times) -> TopicReport:
    """Growth of the cache with the text, with a window and without."""
    what = times.what
    size = what.window or max(BLOCK_TOKENS, what.ctx // 4 // BLOCK_TOKENS * BLOCK_TOKENS)
    plain, short = replace(what, window=None), replace(what, window=size)
    lengths = [what.ctx * step // POINTS for step in range(1, POINTS + 1)]
    lines = {
        "all tokens": [float(plain.kv_bytes(length)) for length in lengths],
        f"window {size:,}": [float(short.kv_bytes(length)) for length in lengths],
    }
    steps = [1000 * replace(times, what=one).with_cache(what.ctx).longer for one in (plain, short)]
    figures = (
        Figure(f"all of {what.ctx:,} tokens", "bytes", "tokens · a token", lines["all tokens"][-1], None),
        Figure(
            f"with a window of {size:,}",
            "bytes",
            "(window, the block it begins in, and the first) · a token",
            lines[f"window {size:,}"][-1],
            None,
        ),
        Figure("the last token, seeing all", "ms", "(weights + cache) / bytes a second", steps[0], None),
        Figure("the last token with the window", "ms", "(weights + window) / bytes a second", steps[1], None),
    )
    return _report(
        "window",
        figures,
        (Curve("Bytes of the cache by length of the text", "bytes", "tokens", lengths, lines),),
        "A window makes endless chats possible, and what left it is forgotten: of a long document it loses the middle.",
    )


def token_formula(what: WhatIf) -> str:
    """Formula for the bytes of a token, in the numbers of this model where all its layers are alike."""
    if what.config.latents:
        return latents_formula(what.config, what.kv_codec)
    layers = [spec for spec in what.config.layers if spec.has_attention]
    shapes = {(spec.n_kv_heads, spec.head_dim) for spec in layers}
    codec = what.kv_codec
    if len(shapes) > 1 or not shapes:
        return "sum over layers of 2 · KV heads · dims · bytes"
    heads, dims = shapes.pop()
    if codec.native:
        return f"2 · {len(layers)} layers · {heads} KV heads · {dims} dims · {codec.k_bits // 8} bytes"
    return f"{len(layers)} layers · {heads} KV heads · {codec.bytes_per_token(dims)} bytes, scales included"


def weights_formula(what: WhatIf) -> str:
    if what.size.loaded is not None and what.weights == what.size.loaded[0]:
        return "as they are loaded"
    return f"{what.n_params / 1e9:.2f} B parameters · {what.bits:g} bits / 8"


def _heads_name(what: WhatIf) -> str:
    mark = " (its own)" if what.heads == heads_of(what.size.shape.config) else ""
    if what.heads is None:
        return f"latents{mark}"
    found = next((spec.n_kv_heads for spec in what.config.layers if spec.has_attention), 0)
    return f"{what.heads} {found}{mark}"


def _fits(times: Times) -> str:
    what, free = times.what, times.free
    if free is None:
        return f"Weights and cache take {gib(what.total_bytes)}."
    left = free - what.total_bytes
    if left < 0:
        return f"That is {gib(-left)} more than is free here: fewer bits, a shorter context or a smaller model."
    longest = left // max(what.token_bytes, 1)
    return f"It fits, and {gib(left)} are left: room for {longest:,} more tokens, minus what other programs need."


def _report(
    topic: str, figures: tuple[Figure, ...], pictures: tuple[Bars | Curve, ...], conclusion: str, correction: str = ""
) -> TopicReport:
    words = WORDS[topic]
    return TopicReport(topic, words.title, words.text, figures, pictures, conclusion, correction)
