"""Table of the precisions and contexts that fit a machine, with their speed and a recommendation.

Memory is counted as the plan of a load counts it. Speed follows the roofline: decoding reads every active weight and
the cache once per token, a prefill multiplies every active weight once per token, both at a typical share of the peak.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from localrun.base.dataclass import dataclass
from localrun.base.units import gib
from localrun.fit.adapters import NO_ADAPTERS, AddedByAdapters
from localrun.fit.codecs import BEST_FIRST, LOSSLESS, q4_objection
from localrun.fit.decode_time import torch_seconds
from localrun.fit.mapped import Mappable, first_of, missed_bytes, total_bytes, within
from localrun.fit.plan import USUAL_THREADS, CacheSizes, longest_context, margin_of, most_sequences, spare_share
from localrun.fit.rates import Rates
from localrun.fit.roofline import Roofline, roofline
from localrun.fit.shape import ModelShape
from localrun.fit.usual_sizes import UnsupportedSizes, usual_sizes
from localrun.model.config import ModelConfig
from localrun.ops.kv import KV_CODECS, KVCodec

Verdict = Literal["fits", "tight", "disk", "no"]

CONTEXTS = (4096, 8192, 16384, 32768, 65536, 131072)
CODECS = tuple(KV_CODECS[name] for name in BEST_FIRST)
USUAL_CONTEXT = 8192
FLUENT_TPS = 8.0  # about as fast as one reads
PROMPT_TOKENS = 512  # of the prompt whose first token est_ttft_ms is about
USUAL_DISK = 1e9  # bytes a second, where it was not measured
FLOOR_MEANING = "; ≥ is at least: other programs computed while that was measured, and it is measured again later"
_ENOUGH_BITS = 8.6  # bits a weight beyond which there is no visible difference
_FEWEST_BITS = 4.0  # bits a weight below which answers suffer visibly


@dataclass(frozen=True, slots=True)
class Candidate:
    """One precision of a model.

    `weights_bytes` are all weights as held in memory, `active_bytes` those that a token uses (fewer in a mixture),
    `file_bytes` those to download where they differ.
    """

    precision: str
    weights_bytes: int
    active_bytes: int
    bits: float  # a weight
    approximate: bool = False
    file_bytes: int = 0
    mappable: tuple[Mappable, ...] = ()  # of weights_bytes, what may stay on disk, in the order in which it goes
    disk_room: int | None = None  # bytes that the disk has for these; None: enough


@dataclass(frozen=True, slots=True)
class FitRow:
    """One row of `fit --json`: bytes, tokens, tokens per second, milliseconds.

    `kept_kv_bytes` comes on top of `total_bytes`: memory for cached chats. `mapped_bytes` of the total are not needed
    in memory: a load leaves those weights on disk.
    """

    precision: str
    ctx: int
    kv_codec: str
    weights_bytes: int
    kv_bytes: int
    kept_kv_bytes: int
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
    file_bytes: int = 0  # to download; `weights_bytes` are as they are held in memory
    mapped_bytes: int = 0
    adapter_bytes: int = 0  # of `weights_bytes`
    est_is_measured: bool = False  # answers of models of this size here say how fast it is; else the machine's limits
    est_is_floor: bool = False  # other programs computed while the limits were measured: it is at least as fast
    images_fit: bool | None = None  # whether a load has room for images, too; None: the model sees none


@dataclass(frozen=True, slots=True)
class Fit:
    """The table. `reason` explains the recommended row, or why there is none; `backend` computes the model, and
    `elsewhere` says why that is another one than usual."""

    rows: tuple[FitRow, ...]
    reason: str
    backend: str = ""
    elsewhere: str = ""

    @property
    def recommended(self) -> FitRow | None:
        return next((row for row in self.rows if row.recommended), None)

    @property
    def lacks_room(self) -> bool:
        """Whether memory is what is missing, if only for some of the weights."""
        found = self.recommended
        none_fits = bool(self.rows) and all(row.verdict == "no" for row in self.rows)
        return found.verdict == "disk" if found else none_fits


@dataclass(frozen=True, slots=True)
class Question:
    """The machine and the wish of a fit: free bytes, rates, context and number of chats.

    `disk` tells the bytes a second of weights that stay on disk, 0 where that is not known; None: none may. `added` is
    what adapters beside the weights take.
    """

    budget: int
    rates: Rates
    ctx: int | None = None
    parallel: int = 1
    disk: Callable[[], float] | None = None
    added: AddedByAdapters = NO_ADAPTERS
    sight_bytes: int = 0  # that a load keeps free for images; 0: the model sees none
    drafting: ModelConfig | None = None  # of a program that drafts beside it, whose weights the candidates count


def speed_mark(row: FitRow) -> str:
    """The sign before its speed: ≥ for at least, ~ for estimated, none for measured."""
    return "≥" if row.est_is_floor else "" if row.est_is_measured else "~"


def fit_table(shape: ModelShape, candidates: Sequence[Candidate], question: Question) -> Fit:
    """Compare every candidate × context × codec that this machine can hold with the free memory."""
    most, ctx = shape.config.max_context, question.ctx
    usual = [n for n in CONTEXTS if n < most] + [min(most, CONTEXTS[-1])]
    contexts = [min(ctx, most)] if ctx else usual
    sizes = (
        UnsupportedSizes(shape) if shape.caches else usual_sizes(shape.config, question.added.ranks, question.drafting)
    )
    codecs = [codec for codec in different_codecs(shape) if sizes.holds(codec)]
    rows = [
        row
        for candidate in candidates
        for codec in codecs
        for row in _rows(sizes, _with_adapters(candidate, question), codec, contexts, shape.active_params, question)
    ]
    wanted = contexts[0] if ctx else max(n for n in contexts if n <= max(USUAL_CONTEXT, contexts[0]))
    best, reason = _recommend([row for row in rows if row.ctx == wanted], candidates, shape.config)
    if best is None and (short := _short_of_disk(shape, candidates, question)):
        reason = short
    return Fit(tuple(replace(row, recommended=True) if row is best else row for row in rows), reason)


def different_codecs(shape: ModelShape) -> list[KVCodec]:
    """Codecs to choose from, the finest first, without those in which nothing is kept otherwise: latents stay in 16
    bits."""
    kinds = shape.caches or [spec.cache for spec in shape.config.layers]
    found = dict[tuple[KVCodec, ...], KVCodec]()
    for codec in CODECS:
        found.setdefault(tuple(kind.codec(codec) for kind in kinds), codec)
    return [*found.values()]


def _with_adapters(candidate: Candidate, question: Question) -> Candidate:
    """A candidate with adapters beside its weights: every token reads them whole."""
    weights, active = candidate.weights_bytes, candidate.active_bytes
    return replace(
        candidate,
        weights_bytes=weights + question.added.nbytes,
        active_bytes=active + question.added.nbytes,
        file_bytes=candidate.file_bytes or weights,
    )


def _rows(
    sizes: CacheSizes,
    candidate: Candidate,
    codec: KVCodec,
    contexts: Sequence[int],
    active_params: float,
    question: Question,
) -> list[FitRow]:
    """Rows of one precision and codec, one per context."""
    budget, parallel = question.budget, question.parallel
    parts = within(candidate.mappable, candidate.disk_room) if question.disk else ()
    room = budget - margin_of(budget) - sizes.program_bytes - candidate.weights_bytes
    movable = total_bytes(parts)
    longest, seeing = 0, room
    for more in dict.fromkeys((-question.sight_bytes, 0, movable)):  # with room for images, without, and from disk
        if not longest:
            longest, seeing = longest_context(sizes, codec, room + more, parallel=parallel) or 0, room + min(more, 0)
    limits, is_measured = roofline(question.rates, candidate.active_bytes)
    by_torch = 0.0 if is_measured else torch_seconds(sizes.decode_cost(), question.rates)
    rows = []
    for ctx in contexts:
        cache, scratch = sizes.nbytes(ctx, codec, parallel), sizes.scratch_bytes(ctx, codec, USUAL_THREADS)
        total = candidate.weights_bytes + cache + scratch + sizes.program_bytes
        verdict, mapped = _placed(parts, total, budget)
        sees = verdict == "fits" and total + question.sight_bytes <= budget - margin_of(budget)
        left = (seeing if sees else room) - scratch
        missed = missed_bytes(mapped, budget - (total - total_bytes(mapped)))
        seconds = limits.reading(candidate.active_bytes + sizes.nbytes(ctx, codec) - missed) + by_torch
        first_seconds = _reading_prompt(limits, min(PROMPT_TOKENS, ctx), active_params, question)
        if missed:
            assert question.disk is not None
            disk = question.disk() or USUAL_DISK
            seconds += missed / disk
            first_seconds += total_bytes(mapped) / disk  # many tokens read all
        rows.append(
            FitRow(
                precision=candidate.precision,
                ctx=ctx,
                kv_codec=codec.name,
                weights_bytes=candidate.weights_bytes,
                kv_bytes=cache,
                kept_kv_bytes=int(cache * spare_share(left, cache)) if cache else 0,
                scratch_bytes=scratch,
                total_bytes=total,
                budget_bytes=budget,
                verdict=verdict,
                max_ctx=longest,
                max_sequences=most_sequences(sizes, ctx, codec, room - scratch + (total_bytes(parts) if mapped else 0)),
                est_decode_tps=round(1 / seconds, 1 if seconds < 1 else 3),
                est_ttft_ms=round(1000 * first_seconds, 0),
                mapped_bytes=total_bytes(mapped),
                adapter_bytes=question.added.nbytes,
                approximate=candidate.approximate,
                file_bytes=candidate.file_bytes or candidate.weights_bytes,
                est_is_measured=is_measured,
                est_is_floor=not question.rates.idle,
                images_fit=sees if question.sight_bytes else None,
            )
        )
    return rows


def _placed(parts: tuple[Mappable, ...], total: int, budget: int) -> tuple[Verdict, tuple[Mappable, ...]]:
    """Whether `total` bytes fit, and the weights of `parts` that a load leaves on disk."""
    usable = budget - margin_of(budget)
    mapped = first_of(parts, total - usable)
    if total - total_bytes(mapped) > usable:
        mapped = ()
    if total <= budget:
        return "fits" if total <= usable else "tight", mapped
    return "disk" if mapped else "no", mapped


def _reading_prompt(limits: Roofline, n_tokens: int, active_params: float, question: Question) -> float:
    """Seconds until a prompt is read, adapters included."""
    return limits.multiplying(n_tokens * active_params, n_tokens * question.added.macs)


def _short_of_disk(shape: ModelShape, candidates: Sequence[Candidate], question: Question) -> str:
    """Message where only disk space is missing; empty where more of it would not help."""
    rooms = [candidate.disk_room for candidate in candidates if candidate.disk_room is not None]
    if not rooms:
        return ""
    least = fit_table(shape, [replace(candidate, disk_room=None) for candidate in candidates], question).recommended
    if least is None:
        return ""
    there = gib(max(0, *rooms))
    return f"{gib(least.mapped_bytes)} of its weights would have to stay on disk, where there is room for {there}"


def _recommend(
    rows: Sequence[FitRow], candidates: Sequence[Candidate], config: ModelConfig
) -> tuple[FitRow | None, str]:
    """Recommend the most precise row that fits and is fluent, else the fastest good one, else the least bad one."""
    bits = {candidate.precision: candidate.bits for candidate in candidates}
    safe = [row for row in rows if row.kv_codec != "q4" or not q4_objection(config)]
    fitting = [row for row in safe if row.verdict == "fits"]
    if not fitting:
        tight = [row for row in safe if row.verdict == "tight"]
        if tight:
            return min(tight, key=lambda row: row.total_bytes), "the smallest; it fits only with everything else closed"
        from_disk = [row for row in safe if row.verdict == "disk"]
        if from_disk:
            useful = [row for row in from_disk if bits[row.precision] >= _FEWEST_BITS] or from_disk
            best = max(useful, key=lambda row: (row.est_decode_tps, row.kv_codec in LOSSLESS, _rank(row)))
            return best, f"the fastest of what fits only with {gib(best.mapped_bytes)} of the weights left on disk"
        return None, "none of its precisions fits the free memory: close programs, or choose a smaller model"
    fewest = min(bits[row.precision] for row in fitting)
    useful = [row for row in fitting if bits[row.precision] <= max(_ENOUGH_BITS, fewest)]
    good = [row for row in useful if bits[row.precision] >= _FEWEST_BITS]
    fluent = [row for row in good if row.est_decode_tps >= FLUENT_TPS]

    if fluent:
        best = max(fluent, key=lambda row: (row.kv_codec in LOSSLESS, bits[row.precision], _rank(row)))
        return best, f"the most precise that fits {best.ctx:,} tokens and answers faster than people read"
    if good:
        best = max(good, key=lambda row: (row.kv_codec in LOSSLESS, -row.weights_bytes, _rank(row)))
        return best, f"the fastest of 4 bits and more that fits {best.ctx:,} tokens"
    best = max(useful, key=lambda row: (row.kv_codec in LOSSLESS, bits[row.precision], _rank(row)))
    return best, "the most precise that fits; below 4 bits answers suffer"


def _rank(row: FitRow) -> int:
    """Rank of a row's codec, higher for a better one."""
    return -BEST_FIRST.index(row.kv_codec)
