"""The end of an answer that never began."""

from localrun.base.events import Completion, ModelInfo, Timings


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
        kv_codec=info.kv_codec,
        ctx=info.ctx,
        seed=0,
        path=info.path,
        notes=info.notes,
        timings=Timings(load_ms=info.load_ms),
    )
