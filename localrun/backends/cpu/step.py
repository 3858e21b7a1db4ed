"""Steps as the native library reads them: one structure and its buffers, refilled for every step. Torch-free."""

import ctypes
from array import array
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from localrun.backends.cpu import abi_step
from localrun.ops.interface import Angles, ImageBuffer, LogitAdjust, SequenceInput, StepInput


class NativeStep:
    """The C view of one step after another; each is valid until the next is translated."""

    def __init__(self, candidates: Any, n_groups: int, max_rows: int) -> None:
        """`candidates`: abi_step.Candidates [max_rows]"""
        self.token, self.position, self.row_sequence = ((ctypes.c_int32 * max_rows)() for _ in range(3))
        self.logits_row = (ctypes.c_int32 * max_rows)()
        self.sequences = (abi_step.SequenceC * max_rows)()
        self.n_groups = n_groups
        self.views: list[SequenceView] = []  # for as many sequences as a step has had
        self.rope_half: ctypes.Array[ctypes.c_int32] | None = None  # [rope kinds], the same in every step
        self.cos: Any  # [rope kinds] of pointers, as the three below
        self.sin: Any
        self.sink_cos: Any
        self.sink_sin: Any
        self.keep: list[Any] = []  # what the step points to, beside the buffers above
        self.c = abi_step.Step(
            token=ctypes.addressof(self.token),
            position=ctypes.addressof(self.position),
            row_sequence=ctypes.addressof(self.row_sequence),
            sequence=self.sequences,
            logits_row=ctypes.addressof(self.logits_row),
            candidates=candidates,
        )

    def translate(self, step: StepInput) -> abi_step.Step:
        c, n_rows, n_logits = self.c, step.n_rows, len(step.logits_rows)
        self.keep.clear()
        self.token[:n_rows], self.position[:n_rows] = list(step.token_ids), list(step.positions)
        self.row_sequence[:n_rows], self.logits_row[:n_logits] = list(step.row_sequence), list(step.logits_rows)
        c.n_rows, c.n_logits, c.n_sequences = n_rows, n_logits, len(step.sequences)
        for place in self.sequences[len(self.views) : len(step.sequences)]:
            self.views.append(SequenceView(place, self.n_groups))
        for view, sequence in zip(self.views, step.sequences, strict=False):
            view.fill(sequence, self.address)
        c.adjust = None
        if any(step.adjust):
            c.adjust = (abi_step.Adjust * n_logits)(*map(self.adjustment, step.adjust))
        if self.rope_half is None:
            self.make_room_for_angles(step.cos_sin)
        fill_angles(self.cos, self.sin, step.cos_sin)
        fill_angles(self.sink_cos, self.sink_sin, step.sink_cos_sin)
        c.sink_cos, c.sink_sin = (self.sink_cos, self.sink_sin) if step.sink_cos_sin else (None, None)
        c.query_scale = None if step.query_scale is None else address_of(step.query_scale)
        self.fill_images(step.images)
        c.reach = self.address(step.reach)
        c.cancel = step.cancel.address
        return c

    def make_room_for_angles(self, cos_sin: Sequence[Angles]) -> None:
        """Pointers for every rope kind, of which all steps have as many as the first."""
        self.rope_half = (ctypes.c_int32 * len(cos_sin))(*[cos.shape[-1] for cos, _ in cos_sin])
        n = max(1, len(cos_sin))
        self.cos, self.sin, self.sink_cos, self.sink_sin = ((ctypes.c_void_p * n)() for _ in range(4))
        self.c.rope_half, self.c.cos, self.c.sin = ctypes.addressof(self.rope_half), self.cos, self.sin

    def fill_images(self, images: ImageBuffer | None) -> None:
        c = self.c
        c.buffer_row = c.buffer = c.added = None
        if images is not None:
            c.buffer_row, c.n_buffer, c.n_added = self.address(images.buffer_row), len(images.rows), len(images.added)
            c.buffer = address_of(images.rows)
            added = (ctypes.c_void_p * len(images.added))(*map(address_of, images.added))
            self.keep.append(added)
            c.added = ctypes.addressof(added)

    def adjustment(self, change: LogitAdjust | None) -> abi_step.Adjust:
        """A LogitAdjust as C sees it; what would change nothing is left out."""
        change = change or LogitAdjust()
        out = abi_step.Adjust(
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


class SequenceView:
    """One place for a sequence of a step, with the numbers of its groups beside it."""

    def __init__(self, place: abi_step.SequenceC, n_groups: int) -> None:
        self.place = place
        self.table, self.ring = ((ctypes.c_void_p * n_groups)() for _ in range(2))
        self.first, self.sink, self.ring_sink, self.write_from, self.state = (
            (ctypes.c_int32 * n_groups)() for _ in range(5)
        )
        place.table = self.table

    def fill(self, sequence: SequenceInput, address: Callable[[Collection[int]], int | None]) -> None:
        """`address`: where numbers lie until the step is over."""
        place = self.place
        place.length, place.ring_first = sequence.length, sequence.ring_first
        self.table[:] = [*map(address, sequence.table)]
        place.first = numbers_at(self.first, sequence.first)
        place.ring = self.ring if any(sequence.ring) else None
        if place.ring:
            self.ring[:] = [*map(address, sequence.ring)]
        place.sink = numbers_at(self.sink, sequence.sink)
        place.ring_sink = numbers_at(self.ring_sink, sequence.ring_sink)
        place.write_from = numbers_at(self.write_from, sequence.write_from)
        place.state = numbers_at(self.state, sequence.state)


def numbers_at(place: Any, values: Sequence[int]) -> int | None:
    """The address of a place, filled with these numbers; None where there are none."""
    if not values:
        return None
    place[:] = values
    return ctypes.addressof(place)


def fill_angles(cos_at: Any, sin_at: Any, cos_sin: Sequence[Angles]) -> None:
    """Point to the cosines and to the sines of every rope kind."""
    for kind, (cos, sin) in enumerate(cos_sin):
        cos_at[kind], sin_at[kind] = address_of(cos), address_of(sin)


def address_of(values: np.ndarray) -> int:
    """Where numbers begin; `values.ctypes` makes objects of its own for that."""
    return ctypes.addressof(ctypes.c_float.from_buffer(values.data))
