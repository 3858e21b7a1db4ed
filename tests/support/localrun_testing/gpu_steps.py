"""Steps of made-up sequences, with a reference to compare with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from localrun.backends.gpu.step_tensors import StepBuffer, StepShape, StepTensors
from localrun.backends.reference.ops import ReferenceOps
from localrun.backends.reference.pool import KVPool
from localrun.ops.cache_layer import CacheLayer
from localrun.ops.interface import SequenceInput, StepInput
from localrun.ops.kv import KV_CODECS, KVPlan
from localrun.ops.rope import RopeKind, query_scales
from localrun_testing.emulator.cuda import EmulatedDevice

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Heads:
    """Attention of one layer, the second of two in its group."""

    n_heads: int
    n_kv_heads: int
    head_dim: int
    codec: str = "f16"

    def pool(self, n_blocks: int, poison: float) -> KVPool:
        """A pool whose every number is `poison`."""
        layers = [CacheLayer(0, index, self.n_heads, self.n_kv_heads, self.head_dim) for index in range(2)]
        pool = KVPool(layers, KVPlan.uniform(KV_CODECS[self.codec], 2), [n_blocks], [0], CPU)
        for plane in pool.store(0, ring=False).planes:
            plane.fill_(poison)
        return pool


@dataclass(frozen=True)
class Text:
    """A sequence of a step: `length` tokens, of which the last `n_rows` are computed now."""

    length: int
    n_rows: int
    first: int = 0  # logical block that is the first still there
    sink: bool = False  # block 0 is kept beside


def step_of(
    texts: Sequence[Text], kind: RopeKind, *, sink_window: int | None = None, query_scale: bool = False, seed: int = 0
) -> tuple[StepInput, int]:
    """A step and the blocks a pool needs for it; every third of them is nobody's."""
    needed = [-(-text.length // 64) - text.first + text.sink for text in texts]
    n_blocks = sum(needed) * 3 // 2 + 1
    free = np.random.default_rng(seed).permutation(n_blocks).tolist()
    sequences: list[SequenceInput] = []
    positions: list[int] = []
    row_sequence: list[int] = []
    for number, (text, n) in enumerate(zip(texts, needed, strict=True)):
        mine, free = free[:n], free[n:]
        sink = (mine.pop(),) if text.sink else ()
        sequences.append(SequenceInput(text.length, (mine,), (text.first,), sink))
        positions += range(text.length - text.n_rows, text.length)
        row_sequence += [number] * text.n_rows
    step = StepInput([0] * len(positions), positions, row_sequence, sequences, [0], cos_sin=[kind.compute(positions)])
    if sink_window is not None:
        step.sink_cos_sin = [kind.compute([min(p, sink_window + 63) for p in positions])]
    if query_scale:
        step.query_scale = query_scales(positions, 0.3, 16)
    return step, n_blocks


def on_device(step: StepInput, rows: int, *, rings: bool = False) -> StepTensors:
    """A step as kernels see it, in a bucket of `rows`."""
    halves = tuple(cos.shape[-1] for cos, _ in step.cos_sin)
    n_table = sum(len(table) for sequence in step.sequences for table in sequence.table)
    buffer = StepBuffer(StepShape(1, halves, bool(step.sink_cos_sin), rings), rows, n_table, EmulatedDevice())
    buffer.fill(step, rows)
    return buffer.tensors(rows)


def reference(pool: KVPool, step: StepInput) -> ReferenceOps:
    ops = ReferenceOps(pool, CPU)
    ops.begin(step)
    return ops
