"""A step as passes over a model: rows that are read in bulk have launches of their own, and so a pass.

Rows do not depend on their neighbours, so a step may be cut anywhere; those in bulk come first, for later rows of a
text read what they leave in the cache. Rows of a text follow each other in a pass, and its last one leaves a state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from localrun.backends.gpu.step_tensors import Places, state_block
from localrun.base.dataclass import dataclass
from localrun.ops.interface import Angles, StepInput

FEW_ROWS = (1, 2, 4, 8, 16, 32)  # of small buckets; those of larger ones are multiples of ROW_TILE
ROW_TILE = 64


@dataclass(frozen=True, slots=True)
class Pass:
    """Some rows of a step, as a step: rows lie at `places` of `rows`. `wanted`: which of the logits of the whole
    step it gives, in order. `span`: 0 where it is not in bulk."""

    step: StepInput
    rows: int
    places: Places
    wanted: np.ndarray
    span: int = 0


def passes(step: StepInput, span: int, most_rows: int) -> list[Pass]:
    """The passes of a step, in order; bulk passes have at most `most_rows` rows."""
    if not any(sequence.n_bulk for sequence in step.sequences):
        return [one_by_one(step, np.arange(len(step.logits_rows)))]
    n_bulk = np.array([sequence.n_bulk for sequence in step.sequences])[np.asarray(step.row_sequence)]
    positions = np.asarray(step.positions)
    in_bulk, found = positions < n_bulk, list[Pass]()
    left = np.flatnonzero(in_bulk)
    while len(left):
        places = bulk_places(positions[left], np.asarray(step.row_sequence)[left], span, most_rows)
        part, wanted = only(step, left[: len(places)])
        found.append(Pass(part, (int(places[-1]) // span + 1) * span, places, wanted, span))
        step, left = after(step, part), left[len(places) :]
    if not in_bulk.all():
        found.append(one_by_one(*only(step, np.flatnonzero(~in_bulk))))
    return found


def one_by_one(step: StepInput, wanted: np.ndarray) -> Pass:
    """Rows in their order, at the beginning of a bucket."""
    return Pass(step, bucket_rows(step.n_rows), slice(0, step.n_rows), wanted)


def bucket_rows(n_rows: int) -> int:
    """The smallest bucket that holds this many rows."""
    few = next((rows for rows in FEW_ROWS if rows >= n_rows), 0)
    return few or -(-n_rows // ROW_TILE) * ROW_TILE


def bulk_places(positions: np.ndarray, row_sequence: np.ndarray, span: int, most_rows: int) -> np.ndarray:
    """Where rows at these positions lie, ascending, for as many of the first as find room: one text after the other, a
    row at position p in a row p modulo the span."""
    firsts, counts = np.unique(row_sequence, return_index=True, return_counts=True)[1:]
    begins, at = list[int](), 0
    for first, n in zip(firsts.tolist(), counts.tolist(), strict=True):
        begins.append(at + (int(positions[first]) - at) % span)
        at = begins[-1] + n
    places: np.ndarray = np.repeat(np.array(begins) - firsts, counts) + np.arange(len(positions))
    return places[places < most_rows]


def after(step: StepInput, part: StepInput) -> StepInput:
    """The rest of a step as it is once a part of its rows has been computed: texts go on from the states it left."""
    last = dict(zip(part.row_sequence, part.positions, strict=True))  # position of every text
    sequences = [*step.sequences]
    for index, position in last.items():
        sequence = sequences[index]
        left = tuple(state_block(sequence, group, position) for group in range(len(sequence.state)))
        sequences[index] = replace(sequence, state=left)
    return replace(step, sequences=sequences)


def only(step: StepInput, rows: np.ndarray) -> tuple[StepInput, np.ndarray]:
    """A step of these rows alone, ascending, and which of the logits are theirs."""
    logits_rows = np.asarray(step.logits_rows, dtype=np.int64)
    wanted = np.flatnonzero(np.isin(logits_rows, rows))

    def picked(angles: Sequence[Angles]) -> list[Angles]:
        return [(cos[rows], sin[rows]) for cos, sin in angles]

    part = replace(
        step,
        token_ids=np.asarray(step.token_ids)[rows].tolist(),
        positions=np.asarray(step.positions)[rows].tolist(),
        row_sequence=np.asarray(step.row_sequence)[rows].tolist(),
        logits_rows=np.searchsorted(rows, logits_rows[wanted]).tolist(),
        cos_sin=picked(step.cos_sin),
        sink_cos_sin=picked(step.sink_cos_sin),
        query_scale=None if step.query_scale is None else np.asarray(step.query_scale)[rows],
    )
    return part, wanted
