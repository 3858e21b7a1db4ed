"""The `localrun` object of an answer, in every protocol: where its prompt came from, and where the time went."""

from collections.abc import Sequence

from localrun.base.events import Completion
from localrun.base.request import Json
from localrun.server.cache_break import CacheBreak


def localrun_object(
    completion: Completion, fingerprint: str, broken: CacheBreak | None, ignored: Sequence[str]
) -> Json:
    """The `localrun` object of a response. Counts of tokens, and times in milliseconds; null: unknown. `ignored`:
    fields of the request without effect. `horizon` is null where no turns were dropped: the model saw everything."""
    cache, timings, meanwhile = completion.cache, completion.timings, completion.meanwhile
    figures: Json = {
        "cached": completion.cached_tokens,
        "restored_from_disk": cache.restored_tokens,
        "computed": cache.computed_tokens,
        "replayed": cache.replayed_tokens,
        "cache_note": cache.cache_note or None,
        "drafted": completion.drafts.drafted_tokens,
        "accepted": completion.drafts.accepted_tokens,
        "draft_gain": completion.drafts.draft_gain,
        "horizon": None,
        "cache_break": None if broken is None else broken.as_json(),
        "load_ms": timings.load_ms,
        "render_ms": timings.render_ms,
        "tokenize_ms": timings.tokenize_ms,
        "queue_ms": timings.queue_ms,
        "restore_ms": timings.restore_ms,
        "prefill_ms": timings.prefill_ms,
        "ttft_ms": timings.ttft_ms,
        "decode_ms": timings.decode_ms,
        "ahead": meanwhile.ahead if meanwhile else None,
        "beside_tokens": meanwhile.beside_tokens if meanwhile else None,
        "seed": completion.seed,
        "system_fingerprint": fingerprint or None,
        "kv_codec": completion.kv_codec,
        "ctx": completion.ctx,
        "stop_reason": completion.stop_reason,
    }
    if completion.loop_period:
        figures["loop_period"] = completion.loop_period
    if ignored:
        figures["ignored"] = list(ignored)
    if completion.notes:
        figures["notes"] = list(completion.notes)
    return {name: round(value, 3) if isinstance(value, float) else value for name, value in figures.items()}


def headers_of(completion: Completion) -> dict[str, str]:
    """The main figures as headers, for clients that read no JSON. Of whole answers only: a stream begins earlier."""
    return {
        "x-localrun-prompt": str(completion.prompt_tokens),
        "x-localrun-cached": str(completion.cached_tokens),
        "x-localrun-queue-ms": f"{completion.timings.queue_ms:.0f}",
    }
