"""Runs steps: turns a plan into a StepInput, replays the program, hands back logits."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from localrun.backends.executor import Executor
from localrun.base.errors import UsageError
from localrun.cache.blocks import NO_BLOCK
from localrun.cache.groups import Group, ring_pools
from localrun.cache.sequence_cache import SequenceCache
from localrun.engine.generation import GenerationState
from localrun.engine.images import PromptImages, image_buffer
from localrun.engine.next_tokens import NextRow, draws_of
from localrun.engine.step_plan import StepPlan
from localrun.model.config import ModelConfig, group_layers
from localrun.ops.cache_layer import NOWHERE, CacheLayer
from localrun.ops.interface import Angles, CancelFlag, ImageBuffer, LogitAdjust, Logits, SequenceInput, StepInput
from localrun.ops.kv import BLOCK_TOKENS, KVCodec
from localrun.ops.program import Handle
from localrun.ops.rope import Positions, RopeKind, query_scales


class RowSpan(NamedTuple):
    """Rows of one sequence in a step: token ids at positions from `first` on; `images`: those of the sequence."""

    ids: Sequence[int]
    first: int
    images: PromptImages | None = None
    ahead: int = 0  # positions that the rows are turned further by
    last: int | None = None  # position that all of them see up to, where attention has spans; None: up to their own

    def angles(self) -> np.ndarray:
        """[n, 3]: time, height, width; all three of text are equal."""
        if self.images is not None:
            return self.images.angles(self.first, len(self.ids))
        return np.repeat(np.arange(self.first, self.first + len(self.ids))[:, None], 3, axis=1)

    def reach(self) -> Sequence[int]:
        """[n]: the last position that each row sees in layers whose attention has spans."""
        if self.images is not None:
            return self.images.reach(self.first, len(self.ids))
        if self.last is not None:
            return [self.last] * len(self.ids)
        return range(self.first, self.first + len(self.ids))


class Runner:
    """A model's program and cache on one backend."""

    def __init__(
        self,
        config: ModelConfig,
        executor: Executor,
        codecs: Sequence[KVCodec] | None = None,
        groups: Sequence[Group] | None = None,
    ) -> None:
        """`codecs`: of every layer, as the executor has them. `groups`: of the model whose cache is read, where that is
        another's."""
        self.executor = executor
        self.bulk_span = executor.bulk_span
        self.vocab_size = config.vocab_size
        self.groups = group_layers(config.layers, codecs) if groups is None else groups
        self.ropes = [RopeKind.of(r.theta, r.dims, r.divisors, r.magnitude, r.axes) for r in config.ropes]
        self.query_scale = config.query_scale
        self.has_spans = config.image_spans
        self.at_step_end: Callable[[], None] = lambda: None  # called before tokens are chosen
        self.sink_window = next((spec.sink_window for spec in config.layers if spec.sink_window is not None), None)

    def run(self, plan: StepPlan, cancel: CancelFlag | None = None) -> Logits:
        """One step -> the rows of logits that the plan says. Raises StepCancelled."""
        before = self.executor.device_steps
        logits = self.submit(plan, cancel).result()
        self.at_step_end()
        if (now := self.executor.device_steps) is not before:  # on a processor it is
            for work in plan.work:
                work.sequence.figures.count_steps(now.since(before))
        if any(work.sequence.request.take_hidden for work in plan.work):
            self._hand_out_hidden(plan)
        return logits

    def _hand_out_hidden(self, plan: StepPlan) -> None:
        """Give the hidden rows of prompts to those who asked for them. Raises UsageError where they are on a device."""
        hidden, row = self.executor.hidden(plan.n_rows), 0
        if hidden is None:
            raise UsageError("hidden rows stay on the device here", "load the model with backend cpu")
        for work in plan.work:
            take, n = work.sequence.request.take_hidden, work.sequence.n_prompt - work.sequence.n_computed
            if take is not None and n > 0:
                take(hidden[row : row + min(n, work.n)].copy())
            row += work.n_rows

    def submit(self, plan: StepPlan, cancel: CancelFlag | None = None) -> Handle:
        """Begin a step; its result may be read later, and is valid until the next one is submitted.

        Rows after drafts are adjusted as if the drafts before had been answered. Commit what is accepted, no more: the
        rest is overwritten. The plan's sequences must not change before the result is read.
        """
        spans: list[RowSpan] = []
        views, adjust, end = [], [], 0
        rows: list[int] = []
        scored: list[int] = []
        for work in plan.work:
            s, drafts = work.sequence, work.drafts
            assert s.cache is not None
            ids = [*s.token_ids[s.n_computed : s.n_computed + work.n], *drafts]
            spans.append(RowSpan(ids, s.n_computed, s.images))
            views.append(cache_input(self.groups, s.cache, s.n_computed, len(ids), s.n_bulk))
            if work.scored:
                scored += [end + position - s.n_computed for position in work.scored]
            end += len(ids)
            rows += range(end - 1 - len(drafts), end)
            adjust += [adjust_of(s, drafts[:n_before]) for n_before in range(1 + len(drafts))]
        step = self.step_input(spans, views, rows + scored, adjust + [None] * len(scored), cancel)
        if plan.goes_on:
            step.draws = draws_of([NextRow(row, work.sequence) for row, work in enumerate(plan.work)])
            step.ahead = self.step_after(plan, step)
        return self.begin(step)

    def begin(self, step: StepInput) -> Handle:
        """Begin a step: every one goes through here."""
        return self.executor.run(step)

    def step_after(self, plan: StepPlan, step: StepInput) -> StepInput:
        """The step after one in which all go on by a token, which is not known yet."""
        spans, views = [], []
        for work in plan.work:
            s, first = work.sequence, work.sequence.n_computed + 1
            assert s.cache is not None
            spans.append(RowSpan([0], first))
            views.append(cache_input(self.groups, s.cache, first, 1, s.n_bulk, ahead=True))
        after = self.step_input(spans, views, step.logits_rows, step.adjust, step.cancel)
        after.draws = draws_of([NextRow(row, work.sequence, 1) for row, work in enumerate(plan.work)])
        return after

    def compute(
        self,
        spans: Sequence[RowSpan | tuple[Sequence[int], int]],
        views: Sequence[SequenceInput],
        logits_rows: Sequence[int],
        adjust: Sequence[LogitAdjust | None] = (),
        cancel: CancelFlag | None = None,
        given: np.ndarray | None = None,
    ) -> Logits:
        """A step over `spans` (token ids, first position), one a sequence; `given`: f32 [R, hidden], where the model
        reads hidden rows."""
        wanted = [RowSpan(*span) for span in spans]
        return self.begin(self.step_input(wanted, views, logits_rows, adjust, cancel, given)).result()

    def step_input(
        self,
        spans: Sequence[RowSpan],
        views: Sequence[SequenceInput],
        logits_rows: Sequence[int],
        adjust: Sequence[LogitAdjust | None] = (),
        cancel: CancelFlag | None = None,
        given: np.ndarray | None = None,
    ) -> StepInput:
        """A step over `spans`, as backends take it."""
        token_ids: list[int] = []
        positions: list[int] = []
        turned: list[int] = []
        row_sequence: list[int] = []
        for index, span in enumerate(spans):
            n, turn = len(span.ids), span.first + span.ahead
            token_ids += span.ids
            positions += range(span.first, span.first + n)
            turned += range(turn, turn + n)
            row_sequence += [index] * n
        turns: Positions = turned
        images: ImageBuffer | None = None
        reach: list[int] = []
        if any(span.images for span in spans):
            turns = np.concatenate([span.angles() for span in spans])
            images = image_buffer([(span.images, span.first, len(span.ids)) for span in spans])
        if self.has_spans and (images is not None or any(span.last is not None for span in spans)):
            reach = [last for span in spans for last in span.reach()]
        return StepInput(
            token_ids=token_ids,
            positions=positions,
            row_sequence=row_sequence,
            sequences=views,
            logits_rows=logits_rows,
            adjust=adjust,
            cos_sin=[rope.cos_sin(turns) for rope in self.ropes],
            sink_cos_sin=self.sink_cos_sin(turns),
            query_scale=query_scales(turns, scale.beta, scale.floor) if (scale := self.query_scale) else None,
            images=images,
            given=given,
            reach=reach,
            cancel=cancel or CancelFlag(),
        )

    def sink_cos_sin(self, positions: Positions) -> list[Angles]:
        """Angles of the positions that queries take towards block 0: at most a window away from it, on every axis."""
        if self.sink_window is None:
            return []
        most = self.sink_window + BLOCK_TOKENS - 1
        if isinstance(positions, np.ndarray):
            return [rope.cos_sin(np.minimum(positions, most)) for rope in self.ropes]
        capped = [min(position, most) for position in positions]
        return [rope.cos_sin(capped) for rope in self.ropes]

    def copy(self, pool: int, source: int, target: int) -> None:
        """Copy on write, in one of the pools a CacheStore counts."""
        if pool < len(self.groups):
            self.executor.copy_block(pool, source, target)
        else:
            self.executor.copy_ring(ring_pools(self.groups).index(pool), source, target)

    def read(self, pool: int, block: int) -> bytes:
        """A block of one of the pools a CacheStore counts, in the backend's private layout."""
        if pool < len(self.groups):
            return self.executor.read_block(pool, block)
        return self.executor.read_ring(ring_pools(self.groups).index(pool), block)

    def write(self, pool: int, block: int, data: bytes | memoryview) -> None:
        """Put back what `read` gave."""
        if pool < len(self.groups):
            self.executor.write_block(pool, block, data)
        else:
            self.executor.write_ring(ring_pools(self.groups).index(pool), block, data)

    @property
    def block_sizes(self) -> list[int]:
        """Bytes of a block of every pool."""
        rings = [group for group, pool in enumerate(ring_pools(self.groups)) if pool is not None]
        coded = [self.executor.block_bytes(group) for group in range(len(self.groups))]
        return coded + [self.executor.ring_bytes(group) for group in rings]


def cache_input(
    groups: Sequence[Group], cache: SequenceCache, start: int, n: int, n_bulk: int = 0, ahead: bool = False
) -> SequenceInput:
    """Where a sequence's blocks are in a step over its tokens start … start+n-1; the tables are the cache's own.

    `n_bulk` of its tokens are read in bulk. `ahead`: the step begins while the one before is under way.
    """
    coded = cache.tables[: len(groups)]
    if ahead:
        coded = [table.ahead() for table in coded]
    n_reused = cache.reuse.n_tokens
    ring, ring_first, ring_sink = ring_input(groups, cache) if len(cache.tables) > len(groups) else ((), 0, ())
    return SequenceInput(
        length=start + n,
        table=tuple([table.blocks for table in coded]),
        first=tuple([table.first for table in coded]),
        sink=tuple([table.sink for table in coded]),
        ring=ring,
        ring_first=ring_first,
        ring_sink=ring_sink,
        state=tuple([table.before for table in coded]),
        write_from=tuple([0 if g.replayable else n_reused for g in groups]) if start < n_reused else (),
        n_bulk=n_bulk,
    )


def ring_input(groups: Sequence[Group], cache: SequenceCache) -> tuple[tuple[Sequence[int], ...], int, tuple[int, ...]]:
    """Where its 16-bit blocks are, which it has beside quantised ones: the three fields of SequenceInput."""
    rings = [None if pool is None else cache.tables[pool] for pool in ring_pools(groups)]
    return (
        tuple([() if table is None else table.blocks for table in rings]),
        next((table.first for table in rings if table is not None), 0),
        tuple([NO_BLOCK if table is None else table.at(0) for table in rings]),
    )


def cache_layers(config: ModelConfig, codecs: Sequence[KVCodec] | None = None) -> list[CacheLayer]:
    """Where each layer of a model keeps what it keeps; one that keeps nothing may read where another does."""
    places: dict[int, CacheLayer] = {}
    for number, group in enumerate(group_layers(config.layers, codecs)):
        for index, layer in enumerate(group.layers):
            places[layer] = group.kind.layer(number, index, config.layers[layer].n_heads)
    sources = (spec.shares_cache for spec in config.layers)
    return [places.get(layer if source is None else source, NOWHERE) for layer, source in enumerate(sources)]


def adjust_of(sequence: GenerationState, draft: Sequence[int] = ()) -> LogitAdjust | None:
    """The changes a request makes to its logits, once the tokens of `draft` have been answered, too; None: nothing."""
    settings = sequence.request.settings
    if not settings.adjusts_logits and not sequence.request.logit_bias:
        return None
    is_counted = settings.presence_penalty or settings.frequency_penalty
    return LogitAdjust(
        seen=sequence.seen.plus(draft) if draft and settings.repeat_penalty != 1.0 else sequence.seen,
        counts=sequence.counts.plus(draft) if draft and is_counted else sequence.counts,
        repeat=settings.repeat_penalty,
        presence=settings.presence_penalty,
        frequency=settings.frequency_penalty,
        bias=sequence.request.logit_bias,
        temperature=settings.temperature or 1.0,
    )
