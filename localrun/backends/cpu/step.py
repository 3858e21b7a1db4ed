"""Steps as the native library reads them: one structure with its buffers, filled anew for every step. Torch-free."""

import ctypes
from array import array
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from localrun.backends.cpu import abi
from localrun.ops.interface import Angles, LogitAdjust, SequenceInput, StepInput


class NativeStep:
    """The C view of one step after another; each is valid until the next is translated."""

    def __init__(self, candidates: Any, n_groups: int, max_rows: int) -> None:
        """`candidates`: abi.Candidates [max_rows]"""
        self.token, self.position, self.row_sequence = ((ctypes.c_int32 * max_rows)() for _ in range(3))
        self.logits_row = (ctypes.c_int32 * max_rows)()
        self.sequences = (abi.SequenceC * max_rows)()
        self.tables = ctypes.c_void_p * n_groups
        self.keep: list[Any] = []  # what the step points to, beside the buffers above
        rows = (self.token, self.position, self.row_sequence)
        self.c = abi.Step(*map(ctypes.addressof, rows), self.sequences, ctypes.addressof(self.logits_row))
        self.c.candidates = candidates

    def translate(self, step: StepInput) -> abi.Step:
        c, n_rows, n_logits = self.c, step.n_rows, len(step.logits_rows)
        self.keep.clear()
        self.token[:n_rows], self.position[:n_rows] = list(step.token_ids), list(step.positions)
        self.row_sequence[:n_rows], self.logits_row[:n_logits] = list(step.row_sequence), list(step.logits_rows)
        c.n_rows, c.n_logits, c.n_sequences = n_rows, n_logits, len(step.sequences)
        for index, sequence in enumerate(step.sequences):
            self.fill_sequence(self.sequences[index], sequence)
        c.adjust = None
        if any(step.adjust):
            c.adjust = (abi.Adjust * n_logits)(*map(self.adjustment, step.adjust))
        c.cos, c.sin = angle_pointers(step.cos_sin)
        c.sink_cos, c.sink_sin = angle_pointers(step.sink_cos_sin) if step.sink_cos_sin else (None, None)
        c.rope_half = self.address([cos.shape[-1] for cos, _ in step.cos_sin])
        c.query_scale = None if step.query_scale is None else address_of(step.query_scale)
        c.cancel = step.cancel.address
        return c

    def fill_sequence(self, place: abi.SequenceC, sequence: SequenceInput) -> None:
        place.length, place.ring_first = sequence.length, sequence.ring_first
        place.table = self.tables(*map(self.address, sequence.table))
        place.first = self.address(sequence.first)
        place.sink = self.address(sequence.sink)
        place.ring = self.tables(*map(self.address, sequence.ring)) if any(sequence.ring) else None
        place.ring_sink = self.address(sequence.ring_sink)
        place.write_from = self.address(sequence.write_from)
        place.state = self.address(sequence.state)

    def adjustment(self, change: LogitAdjust | None) -> abi.Adjust:
        """A LogitAdjust as C sees it; what would change nothing is left out."""
        change = change or LogitAdjust()
        out = abi.Adjust(
            repeat=change.repeat,
            presence=change.presence,
            frequency=change.frequency,
            inv_temperature=1.0 / (change.temperature or 1.0),
        )
        if change.repeat != 1.0 and change.seen:
            out.seen, out.n_seen = change.seen.ids.buffer_info()
        if change.counts and (change.presence or change.frequency):
            out.ids, out.n_ids = change.counts.ids.buffer_info()
            out.counts, _ = change.counts.counts.buffer_info()
        if change.bias:
            values = (ctypes.c_float * len(change.bias))(*change.bias.values())
            self.keep.append(values)
            out.bias_ids, out.bias = self.address(change.bias), ctypes.addressof(values)
            out.n_bias = len(change.bias)
        return out

    def address(self, values: Collection[int]) -> int | None:
        """Where `values` lie as int32 for the length of a step; None where there are none. An array is not copied."""
        if not values:
            return None
        self.keep.append(values if isinstance(values, array) else array("i", values))
        address: int = self.keep[-1].buffer_info()[0]
        return address


def angle_pointers(cos_sin: Sequence[Angles]) -> tuple[Any, Any]:
    """Pointers to the cosines and to the sines of every rope kind."""
    pointers = ctypes.c_void_p * max(1, len(cos_sin))
    return pointers(*[address_of(cos) for cos, _ in cos_sin]), pointers(*[address_of(sin) for _, sin in cos_sin])


def address_of(values: np.ndarray) -> int:
    """Where numbers begin; `values.ctypes` makes objects of its own for that."""
    return ctypes.addressof(ctypes.c_float.from_buffer(values.data))
