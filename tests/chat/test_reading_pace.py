"""The time that a reading in parts still takes: by the plan, then by what is read."""

import time
from dataclasses import replace

import pytest

from localrun.chat.long_text.in_parts import ReadingPlan
from localrun.chat.long_text.part_reader import PartReader
from localrun.chat.long_text.pieces import TextPiece
from localrun.chat.long_text.reading_pace import ReadingPace
from localrun.chat.long_text.reading_speed import ReadingSpeed

PIECES = tuple(TextPiece(f"line {n}\n", n, n) for n in range(1, 11))
# Ten parts of 100 tokens to read (10 s) and 10 to write (5 s).
PLAN = ReadingPlan("a", "what?", PIECES, 1000, 1000, 10, 1000, ReadingSpeed(10.0, 2.0))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def reader(n_read: int) -> PartReader:
    found = PartReader(PLAN, lambda request: pytest.fail("nothing is asked"))
    found.n_read = n_read
    return found


def test_the_plan_tells_it_until_something_is_read(clock: list[float]) -> None:
    pace = ReadingPace(PLAN)
    assert pace.words(reader(0), 0.0) == "part 1 of 10: 0% · 2 min 30 s left"
    assert pace.words(reader(0), 0.3) == "part 1 of 10: 30% · 2 min 30 s left", "what a cache had is no speed"


def test_a_first_part_that_is_read_slower_than_planned_tells_so(clock: list[float]) -> None:
    pace = ReadingPace(PLAN)
    clock[0] += 20.0
    assert pace.words(reader(0), 0.5) == "part 1 of 10: 50% · 9 min 40 s left"  # 60 s a part, with its note
    clock[0] += 20.0
    assert pace.words(reader(0), 1.0) == "part 1 of 10: its note · 9 min 20 s left"
    clock[0] += 10.0
    assert pace.words(reader(1), 0.0) == "part 2 of 10: 0% · 7 min 30 s left"  # 50 s


def test_without_a_plan_what_is_read_tells_it(clock: list[float]) -> None:
    pace = ReadingPace(replace(PLAN, speed=None))
    assert "left" not in pace.words(reader(0), 0.0)
    clock[0] += 3.0
    assert pace.words(reader(0), 0.3) == "part 1 of 10: 30% · 1 min 37 s left"
