"""Perplexity by the method of llama-perplexity: consecutive chunks, the second half of each scored.

With a baseline every chunk is computed twice, on the same weights with two KV codecs, and what the model believes of
each next token is compared over the whole vocabulary.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np

from localrun.base.errors import ModelFileError, UsageError
from localrun.base.machine import memory, resident
from localrun.cache.store import CacheStore
from localrun.engine.load import LoadedModel, start_executor
from localrun.engine.runner import Runner
from localrun.engine.scratch_runs import ScratchRuns
from localrun.fit.plan import plan_load
from localrun.ops.interface import Logits

PREFILL_ROWS = 512
SCORED_ROWS = 64  # rows of logits at a time: 64 rows of a 152k vocabulary are 39 MB


@dataclass(frozen=True, slots=True)
class Comparison:
    """How far a KV codec moves the model from a baseline: mean KL divergence in nats, and the share of equal tops."""

    kld_mean: float
    same_top1: float


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
    comparison: Comparison | None = None


def perplexity(
    model: LoadedModel,
    text: str,
    ctx: int = 512,
    max_chunks: int | None = None,
    baseline: str | None = None,
    progress: Callable[[int, int, float], None] = lambda done, total, ppl: None,
) -> Perplexity:
    """Score `text`, and compare with the KV codec `baseline` where one is named.

    Raises UsageError when the text is shorter than two chunks of `ctx` tokens, or ctx does not fit.
    """
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
    divergences: list[float] = []
    n_same = 0
    with ExitStack() as stack:
        engines = [(model.engine.runner, model.engine.store)]
        if baseline is not None:
            engines.append(stack.enter_context(SecondCache(model, baseline)))
        for chunk in range(n_chunks):
            part = ids[chunk * ctx : (chunk + 1) * ctx]
            if first_id is not None:
                part[0] = first_id
            for targets, (logits, *others) in scored_rows(engines, part, first=ctx // 2):
                losses.extend(losses_of(logits, targets))
                for other in others:
                    divergences.extend(divergence(other.row(n), logits.row(n)) for n in range(len(targets)))
                    n_same += int((other.argmax == logits.argmax).sum())
            progress(chunk + 1, n_chunks, math.exp(math.fsum(losses) / len(losses)))
    mean = math.fsum(losses) / len(losses)
    variance = math.fsum((loss - mean) ** 2 for loss in losses) / (len(losses) - 1)
    error = math.sqrt(variance / len(losses))
    ppl = math.exp(mean)
    compared = Comparison(math.fsum(divergences) / len(losses), n_same / len(losses)) if baseline else None
    seconds = time.perf_counter() - started
    return Perplexity(ppl, ppl * error, mean, len(losses), n_chunks, ctx, seconds, compared)


class SecondCache:
    """The same weights with a cache of another codec beside the engine's. Raises DoesNotFitError, UsageError."""

    def __init__(self, model: LoadedModel, codec: str) -> None:
        plan = plan_load(
            model.plan.config,
            0,  # they are resident already
            model.backend.free_bytes(memory().available),
            backend=model.backend,
            ctx=model.plan.ctx,
            kv=codec,
            resident=resident() if model.backend.in_main_memory else 0,
            threads=model.threads,
        )
        executor = start_executor(model.backend, model.model, plan, model.threads)
        self.runner = Runner(model.plan.config, executor, plan.codecs)
        self.store = CacheStore(self.runner.groups, plan.blocks, plan.ring_blocks, self.runner.copy, False)

    def __enter__(self) -> tuple[Runner, CacheStore]:
        return self.runner, self.store

    def __exit__(self, *_: object) -> None:
        self.runner.executor.close()


def scored_rows(
    engines: Sequence[tuple[Runner, CacheStore]], ids: Sequence[int], first: int
) -> Iterator[tuple[list[int], list[Logits]]]:
    """The logits of positions first … len(ids)-2 given all ids before, some at a time, and the ids that came next.

    One Logits for each engine; they hold until the next are asked for.
    """
    with ExitStack() as stack:
        runs = [stack.enter_context(ScratchRuns(runner, store)) for runner, store in engines]
        for start, stop in spans(first, len(ids)):
            scored = range(max(start, first), min(stop, len(ids) - 1))
            rows = [position - start for position in scored]
            found = [run.feed(ids[start:stop], start, rows) for run in runs]
            if not rows:
                continue
            if not all(bool(logits.finite.all()) for logits in found):
                raise ModelFileError("NONFINITE", "the model computed values that are not numbers")
            yield [ids[position + 1] for position in scored], found


def losses_of(logits: Logits, targets: Sequence[int]) -> list[float]:
    """-ln p of each target."""
    return [float(logits.logsumexp[row] - logits.row(row)[target]) for row, target in enumerate(targets)]


def divergence(baseline: np.ndarray, found: np.ndarray) -> float:
    """KL(baseline || found) of two rows of logits, in nats, over the whole vocabulary, in float64."""
    expected, given = log_softmax(baseline), log_softmax(found)
    possible = expected > -math.inf
    return float(np.exp(expected[possible]) @ (expected[possible] - given[possible]))


def log_softmax(row: np.ndarray) -> np.ndarray:
    shifted = row.astype(np.float64) - float(row.max())
    return np.asarray(shifted - np.log(np.exp(shifted).sum()))


def spans(first: int, n_tokens: int) -> Iterator[tuple[int, int]]:
    """Steps over a chunk: large ones up to `first`, whose logits nobody asks for, then few rows at a time."""
    for start in range(0, first, PREFILL_ROWS):
        yield start, min(start + PREFILL_ROWS, first)
    for start in range(first, n_tokens, SCORED_ROWS):
        yield start, min(start + SCORED_ROWS, n_tokens)
