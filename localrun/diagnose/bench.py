"""Benchmark of a loaded model: prefill and decode rates beside the machine's limits."""

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Literal

import psutil

from localrun.backends.limits import Limits
from localrun.base.dataclass import dataclass
from localrun.base.errors import UsageError
from localrun.base.events import Meanwhile
from localrun.cache.blocks import OutOfBlocks
from localrun.cache.bulk import bulk_tokens
from localrun.diagnose.diagnosis import diagnose
from localrun.diagnose.facts import Facts
from localrun.diagnose.words import in_words
from localrun.engine.engine import Engine
from localrun.engine.load import LoadedModel
from localrun.engine.scratch_runs import ScratchRuns
from localrun.fit.bytes import kv_bytes_per_token, state_bytes
from localrun.fit.machine_rates import note_limits
from localrun.fit.probe import Clock, Probed, others
from localrun.fit.rates import Rates
from localrun.ops.kv import BLOCK_TOKENS
from localrun.ops.largest_step import max_rows

PROBED = ("read_gbps", "int8_gmacs", "bf16_gmacs")

Span = tuple[Sequence[int], int]


@dataclass(frozen=True, slots=True)
class BenchRun:
    """One measured case; rates in tokens per second, summed over the batch."""

    kind: str  # "prefill" | "decode"
    n: int
    depth: int
    batch: int
    tps_median: float
    tps_best: float
    tps_all: tuple[float, ...]
    percent_of_limit: float | None  # of read bandwidth (decode) or int8 arithmetic (prefill); None: not measured
    diagnosis: str = ""  # what limits it, and what helps; empty where unknown


@dataclass(frozen=True, slots=True)
class Bench:
    """All cases of one model, and the limits measured between them."""

    model: str
    backend: str
    threads: int
    runs: tuple[BenchRun, ...]
    limits: Limits | None
    weights_bytes: int


@dataclass(frozen=True, slots=True)
class BenchCase:
    kind: Literal["prefill", "decode"]
    n: int
    depth: int
    batch: int = 1


def bench(
    model: LoadedModel, cases: Sequence[BenchCase], repeats: int, progress: Callable[[str], None] = lambda line: None
) -> Bench:
    """Run all cases `repeats` times in turn, with a probe of the limits between.

    UsageError when a case does not fit.
    """
    fitting(model, cases)
    seconds: list[list[float]] = [[] for _ in cases]
    limits: list[Limits] = []
    probe = model.backend.limit_probe(model.threads) if model.backend.measures_limits else None
    before = Clock.now()
    for repeat in range(repeats + 1):  # the first round warms up
        for index, case in enumerate(cases):
            progress(f"round {repeat} of {repeats}: {case.kind} {case.n} at depth {case.depth}, batch {case.batch}")
            elapsed = run_case(model.engine, case, fill=repeat == 0)
            if repeat:
                seconds[index].append(elapsed)
        if repeat and probe is not None:
            limits.append(probe.measure())
    if probe is not None:
        probe.close()
    best = Limits.median(limits) if limits else None
    around = company(before, Clock.now())
    if limits:
        read, int8, wide = (max(getattr(one, name) for one in limits) for name in PROBED)
        note_limits(Probed(1e9 * read, 1e9 * int8, 1e9 * wide, idle=False))
    runs = tuple(summary(model, case, times, best, around) for case, times in zip(cases, seconds, strict=True))
    return Bench(model.info.name, model.info.backend, model.threads, runs, best, model.plan.weights_bytes)


def fitting(model: LoadedModel, cases: Sequence[BenchCase]) -> None:
    """Raise UsageError when a case does not fit the context."""
    for case in cases:
        need = case.depth + case.n
        if need > model.plan.ctx or case.batch * blocks_for(need) > max(model.plan.blocks):
            raise UsageError(
                f"{case.batch} x {need:,} tokens do not fit the context of {model.plan.ctx:,}",
                f"try --ctx {case.batch * blocks_for(need) * BLOCK_TOKENS}",
            )


def run_case(engine: Engine, case: BenchCase, fill: bool) -> float:
    """Seconds of the measured part of a case; `fill` computes the depth before it, which is needed once.

    Raises UsageError when layers with a window have no room for that many sequences.
    """
    span = engine.runner.bulk_span
    chunk = max(1, max_rows(span) // case.batch)

    def feed(runs: ScratchRuns, start: int, stop: int, chunk: int, span: int) -> None:
        for first in range(start, stop, chunk):
            end = min(first + chunk, stop)
            ids = [1 + position % 97 for position in range(first, end)]
            runs.feed(ids, first, [(s + 1) * (end - first) - 1 for s in range(case.batch)], bulk_tokens(stop + 1, span))

    try:
        with ScratchRuns(engine.runner, engine.store, case.batch, depth=0 if fill else case.depth) as runs:
            if fill:
                feed(runs, 0, case.depth, chunk, span)
            started = time.perf_counter()
            feed(runs, case.depth, case.depth + case.n, *((1, 0) if case.kind == "decode" else (chunk, span)))
            return time.perf_counter() - started
    except OutOfBlocks:
        hint = "try a smaller batch (-b), or a larger --ctx"
        raise UsageError(f"the cache has no room for {case.batch} sequences side by side", hint) from None


def summary(
    model: LoadedModel, case: BenchCase, seconds: Sequence[float], limits: Limits | None, around: Meanwhile
) -> BenchRun:
    rates = tuple(case.n * case.batch / elapsed for elapsed in seconds)
    median = statistics.median(rates)
    percent = None if limits is None else 100 * median / best_rate(model, case, limits)
    why = diagnosis_of(model, case, statistics.median(seconds), limits, around)
    return BenchRun(case.kind, case.n, case.depth, case.batch, median, max(rates), rates, percent, why)


def diagnosis_of(model: LoadedModel, case: BenchCase, seconds: float, limits: Limits | None, around: Meanwhile) -> str:
    """Describe what limits a case with one sequence."""
    if limits is None or case.batch > 1:
        return ""
    middle = case.depth + case.n // 2
    cache = middle * kv_bytes_per_token(model.plan.config, model.plan.codec) + 2 * state_bytes(model.plan.config)
    facts = Facts(
        stages={case.kind: 1000 * seconds},
        cached_tokens=case.depth,
        computed_tokens=case.n,
        completion_tokens=case.n + 1,
        held_tokens=middle,
        kv_bytes=cache,
        kv_codec=model.plan.codec.name,
        weights_on_disk=model.plan.mapped_bytes,
        work=model.info.work,
        rates=Rates(1e9 * limits.read_gbps, 1e9 * limits.int8_gmacs, 1e9 * limits.bf16_gmacs),
        meanwhile=around,
    )
    found = diagnose(facts)
    return "" if found is None or found.cause == "unknown" else in_words(found, facts).line


def company(before: Clock, after: Clock) -> Meanwhile:
    """Load by other programs between two clocks, the probes of limits included."""
    n_processors = psutil.cpu_count() or 1
    busy = (after.busy - before.busy) / max((after.wall - before.wall) * n_processors, 1e-9)
    return Meanwhile(others_share=others(before, after, n_processors), idle_share=max(0.0, 1 - busy))


def best_rate(model: LoadedModel, case: BenchCase, limits: Limits) -> float:
    """Tokens per second if only reading memory (decode) or only multiplying (prefill) took time."""
    middle = case.depth + case.n / 2
    if case.kind == "decode":
        config = model.plan.config
        a_chat = middle * kv_bytes_per_token(config, model.plan.codec) + 2 * state_bytes(config)  # read and written
        return case.batch * limits.read_gbps * 1e9 / (model.file_bytes_per_token + case.batch * a_chat)
    heads = sum(spec.n_heads * spec.head_dim for spec in model.plan.config.layers if spec.has_attention)
    rate = limits.bf16_gmacs if model.engine.runner.bulk_span else limits.int8_gmacs
    return rate * 1e9 / (model.macs_per_token + 2 * heads * middle)


def blocks_for(n_tokens: int) -> int:
    return -(-n_tokens // BLOCK_TOKENS)
