"""When a silent process is taken to be stuck: by what it computes, and by waits of ours."""

import itertools

import pytest

from localrun.client.worker import process_stats
from localrun.client.worker.watchdog import STOPPED_SECONDS, STUCK_SECONDS, Watchdog

LONG = [STUCK_SECONDS] * 3


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that does not compute, and is not stopped."""
    monkeypatch.setattr(process_stats, "cpu_seconds", lambda pid: 1.0)
    monkeypatch.setattr(process_stats, "is_stopped", lambda pid: False)


@pytest.mark.usefixtures("still")
def test_one_that_neither_speaks_nor_computes_is_stuck() -> None:
    watchdog = Watchdog(1, 0)
    assert not watchdog.waited(STUCK_SECONDS - 1, 0)
    assert "did nothing" in watchdog.waited(1, 0)


@pytest.mark.usefixtures("still")
def test_one_that_speaks_now_and_then_is_not() -> None:
    watchdog = Watchdog(1, 0)
    assert not any(watchdog.waited(STUCK_SECONDS - 1, n_heard // 2) for n_heard in range(1, 20))


def test_one_that_computes_is_not_and_is_once_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    computed = itertools.chain(range(4), itertools.repeat(3))
    monkeypatch.setattr(process_stats, "cpu_seconds", lambda pid: float(next(computed)))
    monkeypatch.setattr(process_stats, "is_stopped", lambda pid: False)
    watchdog = Watchdog(1, 0)
    assert [bool(watchdog.waited(seconds, 0)) for seconds in (*LONG, STUCK_SECONDS)] == [False, False, False, True]


@pytest.mark.usefixtures("still")
def test_one_that_is_stopped_is_given_up_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_stats, "is_stopped", lambda pid: True)
    watchdog = Watchdog(1, 0)
    assert not watchdog.waited(STOPPED_SECONDS / 2, 0)
    assert not watchdog.waited(STOPPED_SECONDS / 2, 0)
    assert "stopped" in watchdog.waited(STOPPED_SECONDS / 2, 0)


@pytest.mark.usefixtures("still")
def test_one_that_goes_on_a_moment_after_us_is_not_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both were stopped, and it was silent before, too."""
    stopped = itertools.cycle([True, False])
    monkeypatch.setattr(process_stats, "is_stopped", lambda pid: next(stopped))
    watchdog = Watchdog(1, 0)
    assert not any(watchdog.waited(STOPPED_SECONDS, 0) for _ in range(10))
