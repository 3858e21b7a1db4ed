"""Perplexity by the method of llama-perplexity: consecutive chunks, the second half of each scored.

With a baseline every chunk is computed twice, on the same weights with two KV codecs, and the probabilities of each
next token are compared over the whole vocabulary.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import field

import numpy as np

from localrun.base.dataclass import dataclass
from localrun.base.errors import ModelFileError, UsageError
from localrun.base.machine import memory, resident
from localrun.cache.store import CacheStore
from localrun.engine.load import LoadedModel, start_executor
from localrun.engine.runner import Runner
from localrun.engine.scratch_runs import ScratchRuns
from localrun.fit.plan import LoadRequest, plan_load
from localrun.ops.interface import Logits
from localrun.ops.largest_step import SCORED_ROWS
from localrun.text.tokenizer import Tokenizer

PREFILL_ROWS = 512


@dataclass(frozen=True, slots=True)
class CodecComparison:
    """Distance of a KV codec from a baseline: mean KL divergence in nats, and the share of equal first choices."""

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
    comparison: CodecComparison | None = None


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
    chunks = chunks_of(model.text.tokenizer, text, ctx)[:max_chunks]
    score = Score()
    with ExitStack() as stack:
        engines = [(model.engine.runner, model.engine.store)]
        if baseline is not None:
            engines.append(stack.enter_context(SecondCache(model, baseline)))
        for done, ids in enumerate(chunks, 1):
            for targets, (logits, *others) in scored_rows(engines, ids, first=ctx // 2):
                score.add(targets, logits)
                for other in others:
                    score.compare(other, logits)
            progress(done, len(chunks), math.exp(score.nll))
    compared = score.comparison() if baseline is not None else None
    n_tokens, seconds, ppl = len(score.losses), time.perf_counter() - started, math.exp(score.nll)
    return Perplexity(ppl, ppl * score.error(), score.nll, n_tokens, len(chunks), ctx, seconds, compared)


def chunks_of(tokenizer: Tokenizer, text: str, ctx: int) -> list[list[int]]:
    """Token ids, [n, ctx], each chunk with BOS first. UsageError for fewer than two."""
    ids = tokenizer.encode(text, bos=True)
    chunks = [list(ids[start : start + ctx]) for start in range(0, len(ids) - ctx + 1, ctx)]
    if len(chunks) < 2:
        raise UsageError(f"the text has {len(ids):,} tokens, fewer than two chunks of {ctx}", "use a longer text")
    if tokenizer.add_bos and tokenizer.bos_id is not None:
        for chunk in chunks:
            chunk[0] = tokenizer.bos_id
    return chunks


@dataclass(slots=True)
class Score:
    """-ln p of every scored token, and the distance of a second engine from the first."""

    losses: list[float] = field(default_factory=list)
    divergences: list[float] = field(default_factory=list)
    n_same: int = 0

    def add(self, targets: Sequence[int], logits: Logits) -> None:
        self.losses += losses_of(logits, targets)

    def compare(self, baseline: Logits, found: Logits) -> None:
        self.divergences += [divergence(baseline.row(n), found.row(n)) for n in range(len(found.logsumexp))]
        self.n_same += int((baseline.argmax == found.argmax).sum())

    @property
    def nll(self) -> float:
        """Mean of the losses."""
        return math.fsum(self.losses) / len(self.losses)

    def error(self) -> float:
        """Standard error of the mean."""
        mean, n = self.nll, len(self.losses)
        return math.sqrt(math.fsum((loss - mean) ** 2 for loss in self.losses) / (n - 1) / n)

    def comparison(self) -> CodecComparison:
        n = len(self.losses)
        return CodecComparison(math.fsum(self.divergences) / n, self.n_same / n)


class SecondCache:
    """The same weights with a cache of another codec beside the engine's. Raises DoesNotFitError, UsageError."""

    def __init__(self, model: LoadedModel, codec: str) -> None:
        request = LoadRequest(
            model.plan.config,
            0,  # they are resident already
            model.backend.memory(memory()).available,
            model.backend,
            ctx=model.plan.ctx,
            kv=codec,
            resident=resident() if model.backend.in_main_memory else 0,
            threads=model.threads,
        )
        plan = plan_load(request)
        executor = start_executor(model.backend, model.model, plan, model.threads)
        self.runner = Runner(model.plan.config, executor, plan.codecs)
        self.store = CacheStore(self.runner.groups, plan.blocks, plan.ring_blocks, self.runner.copy, False)

    def __enter__(self) -> tuple[Runner, CacheStore]:
        return self.runner, self.store

    def __exit__(self, *_: object) -> None:
        self.runner.executor.close()


def scored_rows(
    engines: Sequence[tuple[Runner, CacheStore]], ids: Sequence[int], first: int, n_rows: int = SCORED_ROWS
) -> Iterator[tuple[list[int], list[Logits]]]:
    """Logits of positions first … len(ids)-2 given all ids before, `n_rows` at a time, and the next ids.

    One Logits for each engine; they are valid until the next step.
    """
    with ExitStack() as stack:
        runs = [stack.enter_context(ScratchRuns(runner, store)) for runner, store in engines]
        for start, stop in spans(first, len(ids), n_rows):
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
    return [-logits.logprob(row, target) for row, target in enumerate(targets)]


def divergence(baseline: np.ndarray, found: np.ndarray) -> float:
    """KL(baseline ∥ found) of two rows of logits, in nats, over the whole vocabulary, in float64."""
    expected, given = log_softmax(baseline), log_softmax(found)
    possible = expected > -math.inf
    return float(np.exp(expected[possible]) @ (expected[possible] - given[possible]))


def log_softmax(row: np.ndarray) -> np.ndarray:
    shifted = row.astype(np.float64) - float(row.max())
    return np.asarray(shifted - np.log(np.exp(shifted).sum()))


def spans(first: int, n_tokens: int, n_rows: int = SCORED_ROWS) -> Iterator[tuple[int, int]]:
    """Steps over a chunk: large ones up to `first`, whose logits are not needed, then few rows at a time."""
    for start in range(0, first, PREFILL_ROWS):
        yield start, min(start + PREFILL_ROWS, first)
    for start in range(first, n_tokens, n_rows):
        yield start, min(start + n_rows, n_tokens)
