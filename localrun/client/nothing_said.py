"""The end of an answer that never began."""

from localrun.base.events import Completion, ModelInfo


def nothing_said(info: ModelInfo) -> Completion:
    """An answer that was cancelled before the engine had heard of it."""
    return Completion(
        model=info.name,
        precision=info.precision,
        backend=info.backend,
        text="",
        thinking="",
        stop_reason="cancelled",
        prompt_tokens=None,
        cached_tokens=None,
        completion_tokens=0,
        token_ids=(),
        load_ms=info.load_ms,
        ttft_ms=0.0,
        itl_ms_p50=0.0,
        itl_ms_p95=0.0,
        prefill_tps=None,
        decode_tps=None,
        peak_rss=None,
        kv_bytes=None,
        kv_codec=info.kv_codec,
        ctx=info.ctx,
        seed=0,
        path=info.path,
        notes=info.notes,
    )
