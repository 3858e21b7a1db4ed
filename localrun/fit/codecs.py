"""Choice of the KV codec of a load: the one that was asked for, or the best that fits. Torch-free."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from localrun.base.dataclass import dataclass
from localrun.base.errors import DoesNotFitError, UsageError
from localrun.fit.shape import make_shape
from localrun.model.config import ModelConfig
from localrun.ops.kv import BLOCK_TOKENS, KV_CODECS, KVCodec
from localrun.storage.inventory import CodecTokens

BEST_FIRST = ("f16", "q8", "k8v4", "q4")
LOSSLESS = ("f16", "q8")  # without a visible difference
WIDE = ("f32", "f16")  # those that latents are kept in
ENOUGH = 8192  # tokens of context for which precision is given up
SMALL = 3e9  # parameters below which 4-bit keys have been seen to break a model
# Models with learned sinks whose layers are not known: the first scores are outliers that 4 bits lose.
SINK_ARCHS = ("deepseek4", "deepseek_v4")


@dataclass(frozen=True, slots=True)
class ChosenCodec:
    """A codec, its context in tokens, and a note for the user ("" for none)."""

    codec: KVCodec
    ctx: int
    note: str = ""


def q4_objection(config: ModelConfig) -> str:
    """Why q4 is known to break this model; empty where it is not."""
    if config.arch in SINK_ARCHS or any(spec.sinks for spec in config.layers):
        return "4-bit keys break models with attention sinks"
    if make_shape(config, tied=True).n_params < SMALL:
        return "4-bit keys break models of fewer than 3 billion parameters"
    return ""


def choose_codec(
    wish: str,
    config: ModelConfig,
    ctx: int | None,
    longest: Callable[[KVCodec], int | None],
    before: CodecTokens | None = None,
) -> ChosenCodec:
    """Choose the codec of a load. `longest`: tokens that fit with a codec, None where it cannot be used.

    A named codec is used. `auto` with a context takes the best codec that holds it; without one f16 or q8 where the
    model's whole context fits, else q8, and smaller codecs only where q8 holds fewer than 8192 tokens. `auto` never
    takes q4 where it is known to break. Latents stay in 16 bits, unless f32 is asked for. A chat that is stored in
    another codec, `before`, stays in that while it holds the context or, without one, the chat and 8192 tokens: its
    blocks on disk are useless in other codecs. Raises UsageError for a codec that cannot be used, DoesNotFitError.
    """
    if config.latents and wish not in ("auto", *WIDE):
        chosen = choose_codec("f16", config, ctx, longest)
        return replace(chosen, note=f"latents stay in 16 bits: --kv {wish} is for keys and values")
    usable = WIDE if config.latents else KV_CODECS
    fitting = {name: n for name in usable if (n := longest(KV_CODECS[name])) is not None}
    objection = q4_objection(config)
    safe = [name for name in BEST_FIRST if name in fitting and not (name == "q4" and objection)]
    if wish != "auto":
        if wish not in fitting:
            raise UsageError(f"the KV cache cannot be kept as {wish!r}", f"choose one of: auto, {', '.join(fitting)}")
        if fitting[wish] < (ctx or 1):
            raise _too_long(ctx, wish, {name: fitting[name] for name in {*safe, wish}})
        warn = f"{objection}: expect worse answers; --kv k8v4 and --kv q8 are safer"
        return ChosenCodec(KV_CODECS[wish], ctx or fitting[wish], warn if wish == "q4" and objection else "")
    name = _best(safe, fitting, ctx, config.max_context)
    told = ""
    if before is not None and before.name != name:
        wanted = ctx or min(max(ENOUGH, before.n_tokens), config.max_context)
        if before.name in (*safe, "f32") and fitting.get(before.name, 0) >= wanted:
            told = f"as before in this chat; --kv {name} fits best now, but the chat would have to be recomputed"
            name = before.name
        else:
            told = f"{before.name}, as before in this chat, does not fit: what was cached of it cannot be used"
    if fitting[name] < (ctx or 1):
        forced = f" ({objection}; --kv q4 uses it anyway)" if "q4" in fitting and "q4" not in safe else ""
        raise _too_long(ctx, name, {name: fitting[name] for name in safe}, forced if fitting.get("q4", 0) > 0 else "")
    if not told and name not in LOSSLESS:
        told = "which costs a little quality: memory is short"
    note = f"the KV cache is kept as {name}, {told}" if told else ""
    return ChosenCodec(KV_CODECS[name], ctx or fitting[name], note)


def _best(safe: Sequence[str], fitting: Mapping[str, int], ctx: int | None, most: int) -> str:
    """The first codec for `auto` that holds enough; where none does, the one that holds the most."""
    wanted = [name for name in safe if fitting[name] >= (ctx or most) and (ctx or name in LOSSLESS)]
    smaller = [name for name in safe if name != "f16" or "q8" not in safe]  # half the precision, twice the context
    enough = [name for name in smaller if fitting[name] >= min(ENOUGH, most)] if ctx is None else []
    return [*wanted, *enough, max(safe, key=lambda name: fitting[name])][0]


def _too_long(ctx: int | None, name: str, fitting: Mapping[str, int], note: str = "") -> DoesNotFitError:
    """The error for `name` with the nearest choice that fits: another codec, or a smaller context."""
    others = [f"--kv {other}" for other in BEST_FIRST if ctx and ctx <= fitting.get(other, 0)]
    if fitting[name] > 0:
        others.append(f"--ctx {fitting[name]}" + (f" --kv {name}" if note or name != "f16" else ""))
    hint = f"it fits with {' or '.join(others)}{note}" if others else ""
    return DoesNotFitError(f"a context of {ctx or BLOCK_TOKENS:,} tokens does not fit the free memory", hint)
