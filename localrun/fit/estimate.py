"""Which precision and context fit a machine, and how fast they will be: a table of rows, one of them recommended.

Memory is counted as the plan of a load counts it. Speed is the roofline: decoding reads every active weight and the
cache once a token, a prefill multiplies every active weight once a token; both at a usual share of the peak.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from localrun.cache.groups import BLOCK_TOKENS
from localrun.fit.bytes import kv_bytes, kv_bytes_per_token
from localrun.fit.plan import MARGIN, OVERHEAD, largest_context, scratch_bytes
from localrun.fit.rates import Rates
from localrun.model.config import ModelConfig
from localrun.ops.kv import KV_CODECS, KVCodec

Verdict = Literal["fits", "tight", "no"]

CONTEXTS = (4096, 8192, 16384, 32768, 65536, 131072)
CODECS = tuple(codec for codec in KV_CODECS.values() if codec.name != "f32")
USUAL_CONTEXT = 8192
FLUENT_TPS = 8.0  # about as fast as one reads
READ_SHARE, MAC_SHARE = 0.7, 0.4  # of the peak that is reached in practice
PROMPT_TOKENS = 512  # of the prompt whose first token est_ttft_ms is about
_ENOUGH_BITS = 8.6  # bits a weight beyond which nobody sees a difference
_FEWEST_BITS = 4.0  # bits a weight below which answers suffer visibly


@dataclass(frozen=True, slots=True)
class Candidate:
    """One precision of a model: bytes of all weights, and of those that a token uses (fewer in a mixture)."""

    precision: str
    weights_bytes: int
    active_bytes: int
    bits: float  # a weight
    approximate: bool = False


@dataclass(frozen=True, slots=True)
class FitRow:
    """One row of `fit --json`. Bytes, tokens, tokens a second, milliseconds."""

    precision: str
    ctx: int
    kv_codec: str
    weights_bytes: int
    kv_bytes: int
    scratch_bytes: int
    total_bytes: int
    budget_bytes: int
    verdict: Verdict
    max_ctx: int
    max_sequences: int
    est_decode_tps: float
    est_ttft_ms: float
    approximate: bool
    recommended: bool = False


@dataclass(frozen=True, slots=True)
class Fit:
    """The table, and why the recommended row is the one; `reason` says what is in the way when none is."""

    rows: tuple[FitRow, ...]
    reason: str

    @property
    def recommended(self) -> FitRow | None:
        return next((row for row in self.rows if row.recommended), None)


def fit_table(
    config: ModelConfig,
    candidates: Sequence[Candidate],
    active_params: float,
    budget: int,
    rates: Rates,
    ctx: int | None = None,
    parallel: int = 1,
) -> Fit:
    """Every candidate × context × codec against `budget` bytes; `ctx` asks for one context, `parallel` sequences."""
    usual = [n for n in CONTEXTS if n < config.max_context] + [min(config.max_context, CONTEXTS[-1])]
    contexts = [min(ctx, config.max_context)] if ctx else usual
    rows = [
        _row(config, candidate, n, codec, active_params, budget, rates, parallel)
        for candidate in candidates
        for n in contexts
        for codec in CODECS
    ]
    wanted = contexts[0] if ctx else max(n for n in contexts if n <= max(USUAL_CONTEXT, contexts[0]))
    bits = {candidate.precision: candidate.bits for candidate in candidates}
    best, reason = _recommend([row for row in rows if row.ctx == wanted], bits)
    return Fit(tuple(replace(row, recommended=True) if row is best else row for row in rows), reason)


def _row(
    config: ModelConfig,
    candidate: Candidate,
    ctx: int,
    codec: KVCodec,
    active_params: float,
    budget: int,
    rates: Rates,
    parallel: int,
) -> FitRow:
    per_block = kv_bytes_per_token(config, codec) * BLOCK_TOKENS
    one = kv_bytes(config, codec, ctx)
    cache = parallel * one + per_block
    scratch = scratch_bytes(config, ctx)
    fixed = candidate.weights_bytes + scratch + OVERHEAD
    total = fixed + cache
    free = budget - MARGIN - OVERHEAD - candidate.weights_bytes
    seconds_a_token = (candidate.active_bytes + one) / (rates.read_bytes * READ_SHARE)
    return FitRow(
        precision=candidate.precision,
        ctx=ctx,
        kv_codec=codec.name,
        weights_bytes=candidate.weights_bytes,
        kv_bytes=cache,
        scratch_bytes=scratch,
        total_bytes=total,
        budget_bytes=budget,
        verdict="fits" if total <= budget - MARGIN else "tight" if total <= budget else "no",
        max_ctx=max(0, largest_context(config, per_block, free)),
        max_sequences=max(0, (budget - MARGIN - fixed - per_block) // one),
        est_decode_tps=round(1 / seconds_a_token, 1),
        est_ttft_ms=round(1000 * min(PROMPT_TOKENS, ctx) * active_params / (rates.macs * MAC_SHARE), 0),
        approximate=candidate.approximate,
    )


def _recommend(rows: Sequence[FitRow], bits: dict[str, float]) -> tuple[FitRow | None, str]:
    """The most precise that fits and reads fluently; else the fastest that is still good; else the least bad."""
    runnable = [row for row in rows if KV_CODECS[row.kv_codec].executable]
    fitting = [row for row in runnable if row.verdict == "fits"]
    if not fitting:
        tight = [row for row in runnable if row.verdict == "tight"]
        if tight:
            return min(tight, key=lambda row: row.total_bytes), "the smallest; it fits only with everything else closed"
        return None, "none of its precisions fits the free memory: close programs, or choose a smaller model"
    fewest = min(bits[row.precision] for row in fitting)
    useful = [row for row in fitting if bits[row.precision] <= max(_ENOUGH_BITS, fewest)]
    good = [row for row in useful if bits[row.precision] >= _FEWEST_BITS]
    fluent = [row for row in good if row.est_decode_tps >= FLUENT_TPS]
    if fluent:
        best = max(fluent, key=lambda row: (bits[row.precision], row.kv_codec == "f16"))
        return best, f"the most precise that fits {best.ctx:,} tokens and answers faster than one reads"
    if good:
        best = max(good, key=lambda row: (row.est_decode_tps, row.kv_codec == "f16"))
        return best, f"the fastest of 4 bits and more that fits {best.ctx:,} tokens"
    best = max(useful, key=lambda row: bits[row.precision])
    return best, "the most precise that fits; below 4 bits answers suffer"
