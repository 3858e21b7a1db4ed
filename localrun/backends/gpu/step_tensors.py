"""Tensors that change from step to step, on the device: filled in main memory and copied in one go.

Launches are bound to a bucket of rows, so each bucket has places of its own for everything, all in the same memory.
Rows that pad a bucket have position -1 and store nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from localrun.backends.gpu.device import Device
from localrun.backends.gpu.scratch import SPLIT_ROWS
from localrun.backends.gpu.staging import Staging
from localrun.base.dataclass import dataclass
from localrun.ops.interface import Angles, SequenceInput, StepInput
from localrun.ops.kv import BLOCK_TOKENS
from localrun.ops.sampling import Draw

Places: TypeAlias = "np.ndarray | slice"  # rows of a bucket, for the rows of a step in their order
PADDING = -1
NEIGHBOURS = 8  # rows of one text that are worth going through its keys together
PER_GROUP = ("slots", "table_at", "first", "sink")
OF_RINGS = ("ring_slots", "ring_sink")  # of every group too, where keys and values are kept in a ring of 16-bit blocks
OF_STATES = ("state_before", "state_after")  # of every group too, where layers are recurrent
SINGLE = ("token_ids", "positions", "row_sequence", "alone", "is_alone", "query_scale", "first_row", "n_rows")
OF_LOGITS = ("logits_rows", "logits_places")
PADDED = ("positions", "alone", "logits_places", "slots", "ring_slots", *OF_STATES)  # with -1; the others with 0
DRAW = np.dtype([("top_k", "<i4"), ("temperature", "<f4"), ("top_p", "<f4"), ("min_p", "<f4"), ("u", "<f8")])


@dataclass(frozen=True, slots=True)
class StepTensors:
    """A step of R rows, padding included, at most S = R sequences and L = 2 R rows of logits; int32 but for angles.

    Logical block n of a sequence, in a group, is block table[table_at + n].
    """

    token_ids: Tensor  # [R]
    positions: Tensor  # [R]; -1: a row of padding
    row_sequence: Tensor  # [R]
    alone: Tensor  # [R]: the rows that are alone (rows_alone), then -1; of more than SPLIT_ROWS rows
    is_alone: Tensor  # [R]: 1 for those, else 0
    logits_rows: Tensor  # [L]; 0 beyond those that are wanted
    logits_places: Tensor  # [L]: where they go among those of the whole step, of which this may be a part; then -1
    draws: Tensor  # [L · 6]: how each row's next token is drawn (Draw in logits.cu)
    slots: tuple[Tensor, ...]  # [groups] of [R]: block · 64 + position % 64, or -1 where the row stores nothing
    table_at: tuple[Tensor, ...]  # [groups] of [S]
    first: tuple[Tensor, ...]  # [groups] of [S]: the first logical block that is there, but for block 0
    sink: tuple[Tensor, ...]  # [groups] of [S]: the block of logical block 0; -1 where there is none
    ring_slots: tuple[Tensor, ...]  # [groups] of [R]: likewise among 16-bit blocks; empty without rings
    ring_sink: tuple[Tensor, ...]  # [groups] of [S]
    first_row: Tensor  # [S]: of each sequence, whose rows follow each other; without states 0
    n_rows: Tensor  # [S]; 0 where there is no sequence, or without states
    state_before: tuple[
        Tensor, ...
    ]  # [groups] of [S]: the block of the state to go on from, or -1; empty without states
    state_after: tuple[
        Tensor, ...
    ]  # [groups] of [R]: the block of the state after the row, or -1 where it is not wanted
    cos: tuple[Tensor, ...]  # [rope kinds] of f32 [R, dims / 2]
    sin: tuple[Tensor, ...]
    sink_cos: tuple[Tensor, ...]  # likewise, of the positions that queries take towards block 0
    sink_sin: tuple[Tensor, ...]
    query_scale: Tensor  # f32 [R]
    table: Tensor  # [as many as there are]


@dataclass(frozen=True, slots=True)
class StepShape:
    """Sizes that decide where the parts of a step lie: the same in every step of a model."""

    n_groups: int
    rope_halves: tuple[int, ...]  # [rope kinds]: pairs that turn
    sinks: bool  # queries turn twice
    rings: bool = False  # a codec is quantised
    states: bool = False  # layers are recurrent

    def sizes(self, rows: int) -> dict[str, tuple[int, int]]:
        """How many parts of a name there are in a bucket, and the numbers of each."""
        counts = (
            dict.fromkeys(SINGLE, (1, rows))
            | dict.fromkeys(OF_LOGITS, (1, 2 * rows))
            | {"draws": (1, 2 * rows * DRAW.itemsize // 4)}
            | dict.fromkeys(PER_GROUP, (self.n_groups, rows))
        )
        return (
            counts
            | dict.fromkeys(OF_RINGS, (self.n_groups * self.rings, rows))
            | dict.fromkeys(OF_STATES, (self.n_groups * self.states, rows))
        )

    def plain_numbers(self, rows: int) -> int:
        """Numbers of 4 bytes of a step, but for its angles and tables, which follow."""
        return sum(count * size for count, size in self.sizes(rows).values())

    def numbers(self, rows: int) -> int:
        """Numbers of 4 bytes of a step, but for its tables."""
        return self.plain_numbers(rows) + 2 * (1 + self.sinks) * rows * sum(self.rope_halves)


class HostStep(NamedTuple):
    """A bucket's steps in main memory."""

    parts: dict[str, Any]  # arrays, named as in StepTensors
    blank: np.ndarray  # int32: the plain numbers of a step that is nothing but padding
    numbers: int  # of a step, but for its tables


class StepBuffer:
    """One step after another, in the same memory of the device."""

    def __init__(self, shape: StepShape, max_rows: int, table_numbers: int, device: Device) -> None:
        """`table_numbers`: of all block tables of a step together, at most."""
        self.shape, self.table_numbers = shape, table_numbers
        self.memory = Staging(shape.numbers(max_rows) + table_numbers, device)
        self.host: dict[int, HostStep] = {}  # by bucket

    @property
    def nbytes(self) -> int:
        return self.memory.on_device.nbytes

    def tensors(self, rows: int) -> StepTensors:
        """Where launches of a bucket find the parts of its steps."""
        return StepTensors(**self.parts(self.memory.on_device, rows))

    def parts(self, memory: Tensor, rows: int) -> dict[str, Any]:
        """`memory` cut into the parts of a step."""
        at = 0

        def take(n: int, is_float: bool = False) -> Tensor:
            nonlocal at
            part, at = memory[at : at + n], at + n
            return part.view(torch.float32) if is_float else part

        parts: dict[str, Any] = {}
        for name, (count, size) in self.shape.sizes(rows).items():
            taken = tuple(take(size, is_float=name == "query_scale") for _ in range(count))
            parts[name] = taken if name in (*PER_GROUP, *OF_RINGS, *OF_STATES) else taken[0]
        for name in ("cos", "sin", "sink_cos", "sink_sin"):
            halves = self.shape.rope_halves if self.shape.sinks or not name.startswith("sink") else ()
            parts[name] = tuple(take(rows * half, is_float=True).view(rows, half) for half in halves)
        return parts | {"table": memory[at:]}

    def host_step(self, rows: int) -> HostStep:
        """A bucket's steps in main memory."""
        if rows not in self.host:
            parts: dict[str, Any] = {
                name: [each.numpy() for each in part] if isinstance(part, tuple) else part.numpy()
                for name, part in self.parts(self.memory.staged, rows).items()
            }
            blank = self.memory.numbers[: self.shape.plain_numbers(rows)]
            blank[:], parts["query_scale"][:] = 0, 1.0
            for name in PADDED:
                for part in parts[name] if isinstance(parts[name], list) else [parts[name]]:
                    part[:] = PADDING
            parts["draws"] = parts["draws"].view(DRAW)
            self.host[rows] = HostStep(parts, blank.copy(), self.shape.numbers(rows))
        return self.host[rows]

    def fill(self, step: StepInput, rows: int, places: Places | None = None, wanted: np.ndarray | None = None) -> None:
        """Copy a step to the device, as one of `rows` rows. `places`: where its rows lie among those; None: they come
        first. `wanted`: which of the logits of a whole step its own are; None: all."""
        self.memory.send(self.write(step, rows, places, wanted))

    def write(self, step: StepInput, rows: int, places: Places | None = None, wanted: np.ndarray | None = None) -> int:
        """Write a step as the device reads it -> its numbers, the first of `memory`."""
        self.memory.wait()
        host, blank, n_numbers = self.host_step(rows)
        at = slice(0, step.n_rows) if places is None else places
        self.memory.numbers[: len(blank)] = blank
        host["token_ids"][at], host["positions"][at] = step.token_ids, step.positions
        host["row_sequence"][at] = step.row_sequence
        if rows > SPLIT_ROWS:  # in smaller steps all are
            alone = np.arange(rows)[at][rows_alone(step)]
            host["alone"][: len(alone)], host["is_alone"][alone] = alone, 1
        n_logits = len(step.logits_rows)
        host["logits_rows"][:n_logits] = np.arange(rows)[at][np.asarray(step.logits_rows, dtype=np.int64)]
        host["logits_places"][:n_logits] = np.arange(n_logits) if wanted is None else wanted
        self.fill_angles(host, "", step.cos_sin, at)
        self.fill_angles(host, "sink_", step.sink_cos_sin, at)
        if step.query_scale is not None:
            host["query_scale"][at] = step.query_scale
        n_table = self.fill_tables(host, step.sequences)
        fill_slots(host, step, at)
        fill_ring_slots(host, step, at)
        fill_states(host, step, at)
        fill_draws(host["draws"], step.draws)
        return n_numbers + n_table

    def fill_angles(self, host: dict[str, Any], prefix: str, kinds: Sequence[Angles], at: Places) -> None:
        for kind, (cos, sin) in enumerate(kinds):
            host[prefix + "cos"][kind][at] = cos
            host[prefix + "sin"][kind][at] = sin

    def fill_tables(self, host: dict[str, Any], sequences: Sequence[SequenceInput]) -> int:
        """Where every sequence's blocks are -> the numbers of all tables."""
        table, at = host["table"], 0
        for index, sequence in enumerate(sequences):
            for group, (blocks, first) in enumerate(zip(sequence.table, sequence.first, strict=True)):
                table[at : at + len(blocks)] = blocks
                host["table_at"][group][index] = at - first
                host["first"][group][index] = first
                host["sink"][group][index] = block_0(sequence, group)
                at += len(blocks)
            for group, sinks in enumerate(host["ring_sink"]):
                sinks[index] = ring_block_0(sequence, group)
        return at


def n_table(step: StepInput) -> int:
    """Numbers of all block tables of a step."""
    return sum(len(blocks) for sequence in step.sequences for blocks in sequence.table)


def rows_alone(step: StepInput) -> np.ndarray:
    """Rows whose text has few others in the step, ascending, as many as split their keys at most."""
    of_text = np.bincount(step.row_sequence, minlength=len(step.sequences))
    return np.flatnonzero(of_text[np.asarray(step.row_sequence)] < NEIGHBOURS)[:SPLIT_ROWS]


def block_0(sequence: SequenceInput, group: int) -> int:
    """The block of logical block 0; -1 where it is gone."""
    if sequence.first[group] == 0:
        return sequence.table[group][0] if sequence.table[group] else PADDING
    return sequence.sink[group] if sequence.sink else PADDING


def ring_block_0(sequence: SequenceInput, group: int) -> int:
    """The 16-bit block of logical block 0; -1 where there is none."""
    if sequence.ring_first == 0:
        return sequence.ring[group][0] if sequence.ring and sequence.ring[group] else PADDING
    return sequence.ring_sink[group] if sequence.ring_sink else PADDING


def fill_slots(host: dict[str, Any], step: StepInput, at: Places) -> None:
    """Where the keys and values of every row go; row i of the step is row at[i] here."""
    positions, rows, table = host["positions"][at], host["row_sequence"][at], host["table"]
    numbers, offsets = np.divmod(positions, BLOCK_TOKENS)
    write_from = [sequence.write_from for sequence in step.sequences]
    for group, slots in enumerate(host["slots"]):
        found = table[host["table_at"][group][rows] + numbers] * BLOCK_TOKENS + offsets
        if any(write_from):
            least = np.array([each[group] if each else 0 for each in write_from])
            found[positions < least[rows]] = PADDING
        slots[at] = np.maximum(found, PADDING)  # blocks that are not there are negative


def fill_ring_slots(host: dict[str, Any], step: StepInput, at: Places) -> None:
    """Where they go in 16 bits."""
    positions, rows = host["positions"][at], host["row_sequence"][at]
    for group, slots in enumerate(host["ring_slots"]):
        found = slots[at]  # a view or a copy
        for index, sequence in enumerate(step.sequences):
            blocks = np.asarray(sequence.ring[group], np.int32) if sequence.ring else np.empty(0, np.int32)
            if len(blocks):
                mine = rows == index
                numbers, offsets = np.divmod(positions[mine], BLOCK_TOKENS)
                found[mine] = blocks[numbers - sequence.ring_first] * BLOCK_TOKENS + offsets
        slots[at] = found


def fill_states(host: dict[str, Any], step: StepInput, at: Places) -> None:
    """Where each sequence's rows are, one after the other, the state before them, and those that they leave: at ends of
    blocks and of the step, which may be a part of another."""
    if not host["state_before"]:
        return
    positions, rows, table = host["positions"][at], host["row_sequence"][at], host["table"]
    counts = np.bincount(rows, minlength=len(host["n_rows"]))
    ends = np.cumsum(counts)
    places = np.arange(len(host["positions"]))[at]
    host["n_rows"][:], host["first_row"][:] = counts, np.append(places, 0)[ends - counts]
    whole = (positions + 1) % BLOCK_TOKENS == 0
    for group, (before, after) in enumerate(zip(host["state_before"], host["state_after"], strict=True)):
        after[at] = np.where(whole, table[host["table_at"][group][rows] + positions // BLOCK_TOKENS], PADDING)
        for index, sequence in enumerate(step.sequences):
            before[index] = sequence.state[group] if sequence.state else PADDING
            if counts[index]:
                last = ends[index] - 1
                after[places[last]] = state_block(sequence, group, int(positions[last]))


def state_block(sequence: SequenceInput, group: int, position: int) -> int:
    """The block for the state after a row that is the last of its text in a pass: that of the end of a block where that
    is wanted, else that of the end of the step, which later rows overwrite."""
    table = sequence.table[group]
    block = table[position // BLOCK_TOKENS - sequence.first[group]]
    return table[-1] if block < 0 else block


def fill_draws(host: np.ndarray, draws: Sequence[Draw]) -> None:
    """How tokens are drawn: the best where nothing is said."""
    for draw in draws:
        host[draw.row] = draw[1:]  # in this order
