"""Perplexity by the method of llama-perplexity: consecutive chunks, the second half of each scored."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

from localrun.base.errors import ModelFileError, UsageError
from localrun.engine.load import LoadedModel
from localrun.engine.track import Tracks

PREFILL_ROWS = 512
SCORED_ROWS = 64  # rows of logits at a time: 64 rows of a 152k vocabulary are 39 MB


@dataclass(frozen=True, slots=True)
class Perplexity:
    """exp(nll) and its standard error; `tokens` were scored, in `chunks` of `ctx`."""

    ppl: float
    ppl_stderr: float
    nll: float
    tokens: int
    chunks: int
    ctx: int
    seconds: float


def perplexity(
    model: LoadedModel,
    text: str,
    ctx: int = 512,
    max_chunks: int | None = None,
    progress: Callable[[int, int, float], None] = lambda done, total, ppl: None,
) -> Perplexity:
    """Score `text`. Raises UsageError when it is shorter than two chunks of `ctx` tokens, or ctx does not fit."""
    if not 8 <= ctx <= model.plan.ctx:
        raise UsageError(f"a chunk of {ctx} tokens is not possible", f"choose --ctx between 8 and {model.plan.ctx}")
    started = time.perf_counter()
    tokenizer = model.text.tokenizer
    ids = tokenizer.encode(text, bos=True)
    n_chunks = len(ids) // ctx
    if n_chunks < 2:
        raise UsageError(f"the text has {len(ids):,} tokens, fewer than two chunks of {ctx}", "use a longer text")
    n_chunks = min(n_chunks, max_chunks or n_chunks)
    first_id = tokenizer.bos_id if tokenizer.add_bos else None
    losses: list[float] = []
    for chunk in range(n_chunks):
        part = ids[chunk * ctx : (chunk + 1) * ctx]
        if first_id is not None:
            part[0] = first_id
        with Tracks(model.engine.runner, model.engine.store) as track:
            losses.extend(chunk_losses(track, part, first=ctx // 2))
        progress(chunk + 1, n_chunks, math.exp(math.fsum(losses) / len(losses)))
    mean = math.fsum(losses) / len(losses)
    variance = math.fsum((loss - mean) ** 2 for loss in losses) / (len(losses) - 1)
    error = math.sqrt(variance / len(losses))
    ppl = math.exp(mean)
    return Perplexity(ppl, ppl * error, mean, len(losses), n_chunks, ctx, time.perf_counter() - started)


def chunk_losses(track: Tracks, ids: Sequence[int], first: int) -> Iterator[float]:
    """-ln p of ids[first+1] … ids[-1], each given all ids before it, on a track of its own."""
    for start, stop in spans(first, len(ids)):
        scored = range(max(start, first), min(stop, len(ids) - 1))
        logits = track.feed(ids[start:stop], start, [position - start for position in scored])
        if len(scored) == 0:
            continue
        if not bool(logits.finite.all()):
            raise ModelFileError("NONFINITE", "the model computed values that are not numbers")
        targets = torch.tensor([ids[position + 1] for position in scored], device=track.runner.device)
        chosen = logits.rows.gather(-1, targets[:, None])[:, 0]
        yield from (logits.logsumexp - chosen).tolist()


def spans(first: int, n_tokens: int) -> Iterator[tuple[int, int]]:
    """Steps over a chunk: large ones up to `first`, whose logits nobody asks for, then few rows at a time."""
    for start in range(0, first, PREFILL_ROWS):
        yield start, min(start + PREFILL_ROWS, first)
    for start in range(first, n_tokens, SCORED_ROWS):
        yield start, min(start + SCORED_ROWS, n_tokens)
