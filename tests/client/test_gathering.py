"""Words of an answer wait for the next where these come in time, and are sent together."""

import math

import pytest

from localrun.client.rpc.gathering import Gathering


def sent_at(pace_ms: float, gather_ms: int) -> dict[float, float]:
    """When each of two hundred words is sent, with a pace like this, by somebody who waits as long as he may."""
    gathering, sent, waiting, due = Gathering(gather_ms), dict[float, float](), list[float](), math.inf

    def send(now: float) -> float:
        sent.update(dict.fromkeys(waiting, now))
        waiting.clear()
        return now + gathering.time_left(now)

    for now in [(1 + number) * pace_ms / 1000 for number in range(200)]:
        if due < now and waiting:
            due = send(due)
        waiting.append(now)
        if not gathering.can_wait(now) or due < now:
            due = send(now)
    return sent


@pytest.mark.parametrize("pace_ms", [1.3, 7, 13, 19, 29, 31, 80])
@pytest.mark.parametrize("gather_ms", [0, 15, 30, 120])
def test_as_many_words_are_sent_together_as_come_in_the_time_that_they_may_wait(pace_ms: float, gather_ms: int) -> None:
    sent = sent_at(pace_ms, gather_ms)
    first, *rest = sent
    assert sent[first] == first, "the first do not wait"
    assert all(moment - now <= gather_ms / 1000 + 1e-9 for now, moment in sent.items())
    together = 1 + int(gather_ms // pace_ms)
    assert len({sent[now] for now in rest}) <= 2 + len(rest) // together


def test_words_that_come_more_slowly_than_they_may_wait_do_not_wait() -> None:
    gathering = Gathering(30)
    assert [gathering.can_wait(now) for now in (0.0, 0.01, 0.5, 0.9)] == [False, True, False, False]


def test_answers_without_words_so_far_or_for_long_do_not_hurry_others() -> None:
    gathering = Gathering(30)
    assert gathering.time_left(5.0) == pytest.approx(0.03)
    gathering.can_wait(5.0)
    gathering.can_wait(5.02)
    assert gathering.time_left(5.02) == pytest.approx(0.05), "the next come 20 ms later"
    assert gathering.time_left(99.0) == pytest.approx(0.03)
