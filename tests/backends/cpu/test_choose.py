"""Tokens chosen by the CPU library against the plain chain on the whole row, sorted."""

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from localrun_testing.instruction_sets import pairwise
from localrun_testing.native_ops import Guarded, library

from localrun.backends.cpu import abi_step
from localrun.backends.cpu.logits import LogitsMemory
from localrun.base.errors import EngineError
from localrun.ops.largest_step import MAX_CANDIDATES
from localrun.ops.sampling import Draw, choose

NEARLY_1 = 1 - 2**-53
CHAINS = [  # top_k, temperature, top_p, min_p
    (0, 1.5, 0.99, 0.0),
    (0, 1.0, 1.0, 0.0),
    (40, 0.8, 0.95, 0.05),
    (0, 0.7, 1.0, 0.02),
    (0, 2.0, 0.5, 0.0),
    (300, 1.2, 0.9, 0.0),
    (5000, 1.0, 1.0, 0.001),
    (1 << 24, 1.0, 0.8, 1.0),
]


class Rows:
    """Rows of logits in memory that ends where they end, with their candidates: f32 [L, vocab]."""

    def __init__(self, logits: np.ndarray, temperatures: Sequence[float]) -> None:
        self.logits, (count, self.vocab) = logits, logits.shape
        self.memory = Guarded(logits.nbytes)
        ctypes.memmove(self.memory.address, np.ascontiguousarray(logits).ctypes.data, logits.nbytes)
        self.candidates = (abi_step.Candidates * count)()
        self.order = np.argsort(-logits, axis=1, kind="stable").astype(np.int32)
        for row, temperature in enumerate(temperatures):
            self.fill(self.candidates[row], row, temperature)

    def fill(self, place: Any, row: int, temperature: float) -> None:
        n = place.n_candidates = min(MAX_CANDIDATES, self.vocab)
        place.ids[:n] = self.order[row, :n].tolist()
        place.values[:n] = self.logits[row, self.order[row, :n]].tolist()
        scaled = self.logits[row].astype(np.float64) / (temperature or 1.0)
        place.logsumexp = scaled.max() + np.log(np.exp(scaled - scaled.max()).sum())
        place.finite = 1

    def native(self, draws: Sequence[Draw], n_threads: int = 2) -> list[int]:
        calls = library()
        threads = calls.threads_create(n_threads)
        try:
            count = len(self.logits)
            return calls.choose(threads, self.memory.address, count, self.vocab, self.candidates, draws)
        finally:
            calls.threads_destroy(threads)

    def plain(self, draw: Draw) -> int:
        """The token that the chain on the whole row gives."""
        ids, values = self.order[draw.row], self.logits[draw.row, self.order[draw.row]]
        if draw.temperature <= 0:
            return int(ids[0])
        token = choose(ids, values, self.candidates[draw.row].logsumexp, True, draw)
        assert token is not None
        return token

    def check(self, draws: Sequence[Draw]) -> None:
        """Every token is the plain chain's, or that of a draw next to it: last places of exp and of sums differ."""
        for draw, token in zip(draws, self.native(draws), strict=True):
            if token == self.plain(draw):
                continue
            near = [
                draw._replace(u=min(max(draw.u + du, 0.0), NEARLY_1), top_p=draw.top_p * (1 + dp))
                for du in (-1e-11, 0.0, 1e-11)
                for dp in ((-1e-11, 0.0, 1e-11) if draw.top_p < 1 else (0.0,))
            ]
            assert token in {self.plain(other) for other in near}, draw


def random_draws(random: np.random.Generator, count: int, vocab: int) -> list[Draw]:
    """Any settings, and many at their ends."""
    ks = [0, 0, 1, 2, 40, 255, 256, 257, 700, vocab - 1, vocab, vocab + 1, 1 << 24]
    return [
        Draw(
            row,
            int(random.choice([k for k in ks if k >= 0])),
            float(random.choice([0.0, 0.01, 0.3, 0.8, 1.0, 1.5, 2.0])),
            float(random.choice([0.0, 0.05, 0.5, 0.95, 0.99, 0.999999, 1.0, random.random()])),
            float(random.choice([0.0, 0.0, 1e-9, 0.001, 0.05, 0.5, 1.0])),
            float(random.choice([0.0, 1e-300, 0.5, NEARLY_1, random.random(), random.random()])),
        )
        for row in range(count)
    ]


def draws_of(random: np.random.Generator, count: int) -> list[Draw]:
    return [Draw(row, *CHAINS[row % len(CHAINS)], float(random.random())) for row in range(count)]


@pytest.mark.parametrize("vocab", [1, 2, 3, 17, 255, 256, 257, 300, 1000, 4097])
def test_tokens_are_those_of_the_plain_chain(isa: str, vocab: int) -> None:
    """Peaked, flat and banned rows, many logits equal or next to, any settings."""
    random = np.random.default_rng(vocab)
    for spread in (0.0, 1e-6, 0.01, 1.0, 3.0, 30.0):
        for grain in (0.0, 0.5):
            logits = (spread * random.standard_normal((24, vocab)) + random.uniform(-40, 40)).astype(np.float32)
            if grain:
                logits = (np.round(logits / grain) * grain).astype(np.float32)
            logits[::5, 1:][random.random((5, vocab - 1)) < 0.5] = -np.inf
            draws = random_draws(random, 24, vocab)
            Rows(logits, [draw.temperature for draw in draws]).check(draws)


@pairwise(vocab=(32_003, 151_936, 262_144), spread=(0.3, 3.0))
def test_rows_of_real_widths(isa: str, vocab: int, spread: float) -> None:
    random = np.random.default_rng(vocab)
    draws = draws_of(random, len(CHAINS))
    logits = (spread * random.standard_normal((len(draws), vocab))).astype(np.float32)
    Rows(logits, [draw.temperature for draw in draws]).check(draws)


@pytest.mark.parametrize("step", [0.0, 1e-7, 2.0], ids=["equal", "nearly", "two values"])
def test_flat_rows_of_many_tokens(isa: str, step: float) -> None:
    """More tokens than are put in order stand in one bucket, however fine."""
    random = np.random.default_rng(1)
    draws = [Draw(row, *CHAINS[row % 8], float(random.random())) for row in range(8)]
    logits = np.zeros((8, 150_000), np.float32) + 1
    logits += (random.integers(0, 2 if step == 2.0 else 1000, logits.shape) * step).astype(np.float32)
    Rows(logits, [draw.temperature for draw in draws]).check(draws)


def test_zeros_of_both_signs_are_equal(isa: str) -> None:
    random = np.random.default_rng(2)
    logits = np.where(random.random((40, 3000)) < 0.5, 0.0, -0.0).astype(np.float32)
    logits[:, ::7] = np.float32(1e-40)
    logits[:, 1::7] = np.float32(-1e-40)
    draws = [draw._replace(temperature=1.0) for draw in random_draws(random, 40, 3000)]
    Rows(logits, [1.0] * 40).check(draws)


def test_next_to_no_temperature_is_greedy(isa: str) -> None:
    logits = np.random.default_rng(6).permuted(np.tile(np.arange(1000, dtype=np.float32), (9, 1)), axis=1)
    draws = [Draw(row, 300 * (row % 2), 1e-300, 1.0, 0.0, row / 9) for row in range(9)]
    assert Rows(logits, [1e-300] * 9).native(draws) == logits.argmax(1).tolist()


@pytest.mark.parametrize("logsumexp", [np.inf, np.nan])
def test_where_the_temperature_leaves_no_logsumexp_the_best_is_taken(isa: str, logsumexp: float) -> None:
    rows = Rows(np.random.default_rng(6).standard_normal((8, 1000)).astype(np.float32), [1.0] * 8)
    for place in rows.candidates:
        place.logsumexp = logsumexp
    draws = [Draw(row, *CHAINS[row], 0.5)._replace(temperature=1e-310, top_p=0.9) for row in range(8)]
    assert rows.native(draws) == rows.order[:, 0].tolist()


def test_nothing_but_the_kept_is_drawn_at_the_very_end(isa: str) -> None:
    """u next to 1 gives the last token that is left, whatever sums were rounded to."""
    random = np.random.default_rng(3)
    for top_k in (1, 255, 257, 1000, 2999):
        logits = (random.standard_normal((20, 3000)) * random.choice([0.1, 1.0, 3.0])).astype(np.float32)
        rows = Rows(logits, [1.0] * 20)
        draws = [Draw(row, top_k, 1.0, 1.0, 0.0, NEARLY_1) for row in range(20)]
        kept = [set(rows.order[row, :top_k].tolist()) for row in range(20)]
        assert all(token in ids for token, ids in zip(rows.native(draws), kept, strict=True))


def test_neighbours_and_threads_change_no_token(isa: str) -> None:
    random = np.random.default_rng(4)
    draws = draws_of(random, 40)
    logits = (random.choice([0.5, 2.0, 8.0], (40, 1)) * random.standard_normal((40, 9000))).astype(np.float32)
    rows = Rows(logits, [draw.temperature for draw in draws])
    together = rows.native(draws)
    assert [rows.native([draw])[0] for draw in draws] == together
    for n_threads in (1, 3, 8):
        assert rows.native(draws[::-1], n_threads) == together[::-1]


def test_a_row_may_be_drawn_from_more_than_once_or_not_at_all(isa: str) -> None:
    rows = Rows(np.random.default_rng(5).standard_normal((3, 2000)).astype(np.float32), [1.0] * 3)
    draws = [Draw(2, 0, 1.0, 0.99, 0.0, u) for u in (0.1, 0.9)] + [Draw(1, 0, 0.0, 1.0, 0.0, 0.0)]
    rows.check(draws)
    assert rows.native([]) == []


def test_a_row_that_is_no_number_takes_nothing_from_the_others() -> None:
    rows = Rows(np.random.default_rng(7).standard_normal((3, 2000)).astype(np.float32), [1.0] * 3)
    rows.candidates[0] = abi_step.Candidates()
    memory = LogitsMemory(library(), 0, rows.memory.address, 3, 2000)
    ctypes.memmove(memory.candidates, rows.candidates, ctypes.sizeof(rows.candidates))
    logits = memory.logits(3)
    assert logits.finite.tolist() == [0, 1, 1]
    assert logits.argmax[1:].tolist() == rows.order[1:, 0].tolist()
    assert logits.top_ids[2].tolist() == rows.order[2, :256].tolist()


@pytest.mark.parametrize(
    "wrong",
    [
        {"row": -1},
        {"row": 3},
        {"row": 2},  # was not finite
        {"top_k": -1},
        {"temperature": -1.0},
        {"temperature": np.nan},
        {"top_p": -0.1},
        {"min_p": np.nan},
        {"u": 1.0},
        {"u": -0.1},
        {"u": np.nan},
    ],
)
def test_what_cannot_be_chosen_is_refused(wrong: dict[str, Any]) -> None:
    rows = Rows(np.zeros((3, 500), np.float32), [1.0] * 3)
    rows.candidates[2] = abi_step.Candidates()
    right = Draw(0, 0, 1.0, 0.9, 0.0, 0.5)
    assert len(rows.native([right])) == 1
    with pytest.raises(EngineError, match="lr_choose refused"):
        rows.native([right, right._replace(**wrong)])
