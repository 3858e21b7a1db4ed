"""Launches from raw logits to a step's result, and their other buffers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from localrun.backends.gpu.device import Device, Launch
from localrun.backends.gpu.staging import Arrival, Readback, Staging
from localrun.ops.interface import LogitAdjust, Logits
from localrun.ops.largest_step import MAX_CANDIDATES

BEST, THREADS = MAX_CANDIDATES, 512  # of the kernels
PARTS = (4096, 2048)  # numbers that a block of threads puts in order, 8 bytes each: as many as it has memory for
LAST = 2 * BEST  # the best of two parts, which a block puts in order in a seventh of the steps
ADJUST = np.dtype(
    [(name, "<i4") for name in ("begin", "n_seen", "n_counts", "n_bias")]
    + [(name, "<f4") for name in ("repeat", "presence", "frequency", "temperature")]
)  # one row; Adjust in logits.cu


class AdjustTensors:
    """How requests change their rows of logits, on the device. `rows` and `entries` point into one memory."""

    temperatures: list[float] | None = None  # of the rows, where nothing else is changed

    def __init__(self, max_rows: int, device: Device) -> None:
        self.max_rows, self.device = max_rows, device
        self.make_room(1024)
        self.fill((), 0)

    def make_room(self, n_entries: int) -> None:
        n_rows = self.max_rows * ADJUST.itemsize // 4
        self.memory = Staging(n_rows + n_entries, self.device)
        self.rows, self.entries = self.memory.on_device.split((n_rows, n_entries))
        self.sent = np.empty(0, np.int32)

    def fill(self, adjust: Sequence[LogitAdjust | None], n_rows: int) -> bool:
        """Take in the changes of a step with these rows of logits -> whether entries have moved: launches that
        were bound before read those of the step before. What is there already is not copied again."""
        numbers, self.temperatures = self.numbers(adjust[:n_rows]), temperatures(adjust[:n_rows])
        grows = len(numbers) > len(self.memory.numbers)
        if grows:
            self.make_room(2 * len(numbers))
        if not self.has(numbers):
            self.memory.wait()
            self.memory.numbers[: len(numbers)] = numbers
            self.memory.send(len(numbers))
            self.sent = numbers
        return grows

    def numbers(self, adjust: Sequence[LogitAdjust | None]) -> np.ndarray:
        """The changes as the device reads them, int32."""
        rows = np.zeros(self.max_rows, ADJUST)
        rows["temperature"] = 1.0
        lists: list[np.ndarray] = []
        for row, change in zip(rows, adjust, strict=False):
            if change is not None:
                row["begin"] = sum(map(len, lists))
                lists += take(row, change)
        return np.concatenate([rows.view(np.int32), *lists])

    def has(self, numbers: np.ndarray) -> bool:
        """Whether these are there already."""
        return np.array_equal(numbers, self.sent)

    def holds(self, adjust: Sequence[LogitAdjust | None]) -> bool:
        """Whether the device knows these changes already."""
        if (plain := temperatures(adjust)) is not None:
            return plain == self.temperatures
        return self.has(self.numbers(adjust))


def temperatures(adjust: Sequence[LogitAdjust | None]) -> list[float] | None:
    """Temperatures of rows that nothing else changes; None where something does."""
    found = [1.0 if change is None else change.temperature or 1.0 for change in adjust]
    return None if any(change is not None and change.counts_tokens for change in adjust) else found


def take(row: np.void, change: LogitAdjust) -> list[np.ndarray]:
    """Write one request's numbers -> its entries, int32."""
    repeats, counts = change.repeat != 1.0, bool(change.presence or change.frequency)
    seen = np.asarray(change.seen.ids if repeats else (), np.int32)
    ids, numbers = (np.asarray(x if counts else (), np.int32) for x in (change.counts.ids, change.counts.counts))
    biased, bias = np.array([*change.bias], np.int32), np.array([*change.bias.values()], np.float32)
    row["n_seen"], row["n_counts"], row["n_bias"] = len(seen), len(ids), len(biased)
    row["repeat"], row["presence"], row["frequency"] = change.repeat, change.presence, change.frequency
    row["temperature"] = change.temperature or 1.0
    return [seen, ids, numbers, biased, bias.view(np.int32)]


class FoundCandidates(Readback):
    """Candidates of the logits: int32 [rows, 2 · 256 + 3], ids, values, logsumexp, whether all is finite, and the token
    that the device has drawn."""

    def __init__(self, max_rows: int, device: Device) -> None:
        super().__init__(max_rows, 2 * BEST + 3, device)

    def read(self, rows: Tensor) -> Logits:
        """Logits of `rows`, f32 [n, vocab]; waits for the device."""
        return logits_of(self.begin(len(rows)), rows, len(rows))


def logits_of(arrival: Arrival, rows: Tensor, n_rows: int) -> Logits:
    """Logits of rows whose candidates arrive. `rows`: f32 [n_rows, vocab], or [0, vocab] where they are gone."""
    numbers, n = arrival.wait()[:n_rows], min(BEST, rows.shape[-1])
    floats = numbers.view(np.float32)
    ids, values = numbers[:, :n], floats[:, BEST : BEST + n]
    return Logits(rows, ids, values, floats[:, 2 * BEST], numbers[:, 2 * BEST + 1] != 0)


def draw_next(device: Device, draws: Tensor, found: FoundCandidates, n_rows: int, vocab: int) -> Launch:
    """Draw the next token of every row from what was found. draws: int32 [n_rows or more, 6]"""
    kernel = device.kernel("logits" + device.ending, "draw_next", PART=part_of(device))
    return kernel.bind((n_rows, 1, 1), (BEST, 1, 1), draws, found.on_device, vocab)


def take_drawn(device: Device, found: FoundCandidates, token_ids: Tensor) -> Launch:
    """Have the tokens of a step be those that were drawn before. token_ids: int32 [rows], 32 at most"""
    kernel = device.kernel("logits" + device.ending, "take_drawn", PART=part_of(device))
    return kernel.bind((1, 1, 1), (32, 1, 1), found.on_device, token_ids, len(token_ids))


def part_of(device: Device) -> int:
    """Numbers that a block of threads puts in order on this device."""
    return next(part for part in PARTS if 8 * part < device.shared_bytes)


def finish(
    device: Device,
    rows: Tensor,
    adjust: AdjustTensors,
    found: FoundCandidates,
    n_rows: int,
    *,
    scale: float = 1.0,
    softcap: float | None = None,
) -> list[Launch]:
    """Scale, softcap, check and adjust raw logits, f32 [n_rows, vocab], in place, and pick the best of each row."""
    vocab, where = rows.shape[-1], device.torch_device
    part = part_of(device)
    n_parts = -(-vocab // part)
    finite = torch.empty(n_rows, n_parts, dtype=torch.int32, device=where)
    sums = torch.empty(n_rows, n_parts, 2, device=where)
    best = torch.empty(n_rows, n_parts, BEST, dtype=torch.int64, device=where)

    def launch(name: str, n: int, *arguments: Tensor | int | float, threads: int = THREADS, part: int = part) -> Launch:
        """n blocks for every row."""
        kernel = device.kernel("logits" + device.ending, name, PART=part)
        return kernel.bind((n, n_rows, 1), (threads, 1, 1), *arguments)

    launches = [
        launch("scale_logits", n_parts, rows, finite, vocab, scale, softcap or 0.0),
        launch("adjust_logits", 1, rows, adjust.rows, adjust.entries, vocab),
        launch("best_of_logits", n_parts, rows, adjust.rows, best, sums, vocab),
    ]
    while best.shape[1] > 1:
        n = best.shape[1] * BEST
        rest = torch.empty(n_rows, -(-n // part), BEST, dtype=torch.int64, device=where)
        launches.append(launch("best_of_best", rest.shape[1], best, rest, n, part=part if n > LAST else LAST))
        best = rest
    return [*launches, launch("write_found", 1, best, sums, finite, found.on_device, n_parts, threads=BEST)]
