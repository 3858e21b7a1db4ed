"""Runs steps: turns a plan into a StepInput, replays the program, hands back logits."""

from collections.abc import Sequence as SequenceOf

from localrun.cache.groups import group_layers
from localrun.engine.scheduler import Plan
from localrun.engine.sequence import Sequence
from localrun.model.config import ModelConfig
from localrun.ops.executor import Executor
from localrun.ops.interface import CacheLayer, CancelFlag, LogitAdjust, Logits, SequenceInput, StepInput
from localrun.ops.rope import RopeKind


class Runner:
    """A model's program and cache on one backend."""

    def __init__(self, config: ModelConfig, executor: Executor) -> None:
        self.executor = executor
        self.device = executor.device
        self.groups = group_layers(config.layers)
        self.ropes = [RopeKind.of(r.theta, r.dims, r.divisors, r.magnitude) for r in config.ropes]

    def run(self, plan: Plan, cancel: CancelFlag | None = None) -> Logits:
        """One step; the logits of the last token of every sequence of the plan. Raises StepCancelled."""
        for sequence, _ in plan.work:
            assert sequence.lease is not None
            for group, source, target in sequence.lease.copies:
                self.executor.copy_block(group, source, target)
            sequence.lease.copies.clear()
        spans = [(s.token_ids[s.n_computed : s.n_computed + n], s.n_computed) for s, n in plan.work]
        views = [self.view(s, s.n_computed + n) for s, n in plan.work]
        last_rows, end = [], 0
        for ids, _ in spans:
            end += len(ids)
            last_rows.append(end - 1)
        return self.compute(spans, views, last_rows, [adjust_of(s) for s, _ in plan.work], cancel)

    def compute(
        self,
        spans: SequenceOf[tuple[SequenceOf[int], int]],
        views: SequenceOf[SequenceInput],
        logits_rows: SequenceOf[int],
        adjust: SequenceOf[LogitAdjust | None] = (),
        cancel: CancelFlag | None = None,
    ) -> Logits:
        """A step over `spans` (token ids, first position), one a sequence."""
        positions = [first + i for ids, first in spans for i in range(len(ids))]
        step = StepInput(
            token_ids=[token for ids, _ in spans for token in ids],
            positions=positions,
            row_sequence=[index for index, (ids, _) in enumerate(spans) for _ in ids],
            sequences=views,
            logits_rows=logits_rows,
            adjust=adjust,
            cos_sin=[rope.cos_sin(positions, self.device) for rope in self.ropes],
            cancel=cancel or CancelFlag(),
        )
        return self.executor.run(step).result()

    def view(self, sequence: Sequence, length: int) -> SequenceInput:
        assert sequence.lease is not None
        return sequence_input(sequence.lease.blocks, length, len(self.groups))


def sequence_input(blocks: SequenceOf[tuple[int, ...]], length: int, n_groups: int) -> SequenceInput:
    """Block tables by group from blocks by position."""
    table = tuple(tuple(block[group] for block in blocks) for group in range(n_groups))
    return SequenceInput(length, table, first=(0,) * n_groups)


def cache_layers(config: ModelConfig) -> list[CacheLayer]:
    """Where each layer of a model keeps its keys and values."""
    places: dict[int, CacheLayer] = {}
    for number, group in enumerate(group_layers(config.layers)):
        for index, layer in enumerate(group.layers):
            n_heads = config.layers[layer].n_heads
            places[layer] = CacheLayer(number, index, n_heads, group.n_kv_heads, group.head_dim)
    return [places[layer] for layer in range(config.n_layers)]


def adjust_of(sequence: Sequence) -> LogitAdjust:
    """What a request does to its logits."""
    settings = sequence.request.settings
    return LogitAdjust(
        seen=sequence.seen,
        counts=sequence.counts,
        repeat=settings.repeat_penalty,
        presence=settings.presence_penalty,
        frequency=settings.frequency_penalty,
        bias=sequence.request.logit_bias,
        temperature=settings.temperature or 1.0,
    )
