"""The lines that a growing answer has ahead: many where it is fast, none where it is slow."""

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from localrun_testing.chat_app import ENDS, chat_app, live_view, ready, send
from localrun_testing.pilots import drive, until_text
from textual.pilot import Pilot

from localrun_tui.screens.chat import growing_height, live_answer
from localrun_tui.screens.chat.growing_height import GrowingHeight


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(growing_height, "time", SimpleNamespace(monotonic=lambda: self.now))


@pytest.mark.parametrize(
    ("seconds", "rate", "spare", "per_second"),
    [(0.0, 5.0, 0, 5.0), (1.25, 0.5, 0, 0.5), (1.25, 2.7, 3, 0.8), (1.25, 50.0, 6, 7.2)],
)
def test_what_is_spared_follows_the_rate(
    seconds: float, rate: float, spare: int, per_second: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    given = GrowingHeight(seconds)
    heights = []
    for n_lines in range(1, 200):
        clock.now += 1 / rate
        heights.append(given.height(n_lines, 6))
        assert n_lines <= heights[-1] <= n_lines + spare
    assert max(height - n_lines for n_lines, height in enumerate(heights, 1)) == spare
    layouts = sum(before != after for before, after in pairwise(heights))
    assert layouts <= per_second * 200 / rate + 1


def test_an_answer_that_becomes_much_shorter_leaves_no_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    given = GrowingHeight(1.25)
    given.height(40, 6)
    clock.now += 1
    assert given.height(38, 6) == given.height(40, 6), "not for a line or two"
    assert given.height(10, 6) == 10
    exact = GrowingHeight()
    assert [exact.height(n, 6) for n in (40, 38, 10)] == [40, 38, 10]


@pytest.mark.parametrize(("seconds", "spare"), [(5.0, 0), (0.1, 4)], ids=["slow", "fast"])
def test_a_slow_answer_has_no_empty_lines_below_it(seconds: float, spare: int, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    monkeypatch.setattr(live_answer, "_AHEAD", 1.25)
    app, _ = chat_app(ENDS)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await send(pilot, "hi")
        view = await live_view(pilot)
        assert view.growing_height.seconds == 1.25
        await until_text(pilot, "Hello!")
        view.growing_height = GrowingHeight(view.growing_height.seconds)  # so far no time went by
        empty = []
        for n in range(8):
            view.document.feed(f"\n\nline {n}")
            clock.now += seconds
            view.changed()
            await pilot.pause()
            empty.append(view.size.height - len(view.lines(view.size.width)))
        assert min(empty) >= 0
        assert max(empty) == spare

    drive(app, steps)
