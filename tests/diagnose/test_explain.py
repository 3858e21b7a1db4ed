"""`localrun explain`: figures obey their own formulas, pictures fit a terminal."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from localrun_testing import REPOSITORY
from localrun_testing.schemas import check

from localrun.base.request import LoadOptions
from localrun.cli.app import run_command_line
from localrun.client.local import LocalClient
from localrun.client.measure import ask
from localrun.diagnose.explain.drafts import never_less
from localrun.diagnose.explain.draw import bars, curve, drawn
from localrun.diagnose.explain.topic_report import Bars, Curve
from localrun.diagnose.explain.topics import TOPICS
from localrun.diagnose.explain.words import WORDS
from localrun.diagnose.predict.topics import PREDICTED

BUILTIN = REPOSITORY / "localrun" / "builtin" / "localrun-tiny.gguf"


@pytest.fixture(scope="module")
def client() -> Iterator[LocalClient]:
    with LocalClient(LoadOptions(path=Path(BUILTIN), ctx=512)) as opened:
        yield opened


@pytest.mark.parametrize("topic", TOPICS)
def test_counted_figures_equal_their_formulas(client: LocalClient, topic: str) -> None:
    report = TOPICS[topic](client.model, partial(ask, client))
    assert report.topic == topic
    assert report.figures
    for figure in report.figures:
        assert figure.expected is not None or figure.measured is not None
        if figure.at_best:
            assert figure.measured is not None
            assert figure.measured > 0
        elif figure.expected is not None and figure.measured is not None:
            assert figure.measured == pytest.approx(figure.expected), figure.name
    assert all(len(line) <= 80 for line in drawn(report)), [line for line in drawn(report) if len(line) > 80]


def test_topics_are_measured_in_the_order_of_their_words() -> None:
    assert [*TOPICS] == [*PREDICTED] == [*WORDS]


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["explain", "memory", "--ctx", "256", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    check(found, "explain")
    assert [topic["topic"] for topic in found["topics"]] == ["memory"]


def test_an_unknown_topic_names_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["explain", "caches"]) == 2
    assert "cache, phases" in capsys.readouterr().err


def test_bars_are_as_long_as_their_numbers() -> None:
    title, *lines = bars(Bars("Speed", "tok/s", {"a": 10.0, "bb": 5.0, "c": 0.0}))
    lengths = [sum(character in "▏▎▍▌▋▊▉█" for character in line) for line in lines]
    assert title == "Speed"
    assert lengths == [36, 18, 0]


def test_curves_have_one_scale() -> None:
    lines = list(curve(Curve("Time", "ms", "token", [1, 2, 3, 4], {"low": [1, 1, 1, 1], "high": [1, 2, 3, 4]})))
    assert lines[-1].endswith("token 1 to 4")
    low, high = lines[4], lines[8]  # the lowest row of each
    assert low.endswith("████")
    assert high.endswith("████")
    assert lines[1].endswith("│")  # nothing of the low line reaches the top
    assert lines[5].endswith("█")


def test_what_is_little_beside_the_rest_is_drawn_all_the_same() -> None:
    lines = list(curve(Curve("Time", "ms", "token", [1, 2], {"with": [1, 1], "without": [1, 900]})))
    assert lines[4].endswith("with │▁▁")
    assert "▏" in list(bars(Bars("Speed", "tok/s", {"a": 1000.0, "b": 0.5})))[2]


def test_a_step_with_more_guesses_never_takes_less() -> None:
    measured = {0: 1.4, 1: 1.0, 3: 9.5, 7: 6.5, 15: 16.0}
    assert never_less(measured) == {0: 1.0, 1: 1.0, 3: 6.5, 7: 6.5, 15: 16.0}
