"""Words of an answer wait for the next where these come in time, and are sent together."""

import pytest

from localrun.client.rpc.gathering import Gathering


def sent_at(times: list[float], gather_ms: int) -> dict[float, float]:
    """When words that come at `times` are sent, each with a later one that does not wait."""
    gathering, sent, waiting = Gathering(gather_ms), dict[float, float](), list[float]()
    for now in times:
        waiting.append(now)
        if not gathering.can_wait(now, waiting[0]):
            sent |= dict.fromkeys(waiting, now)
            waiting.clear()
    return sent


@pytest.mark.parametrize("pace_ms", [1.3, 7, 13, 19, 29, 31, 80])
@pytest.mark.parametrize("gather_ms", [0, 15, 30, 120])
def test_words_wait_no_longer_than_allowed_and_as_few_are_sent_as_that_allows(pace_ms: float, gather_ms: int) -> None:
    times = [(1 + number) * pace_ms / 1000 for number in range(200)]
    sent = sent_at(times, gather_ms)
    assert all(moment - now <= gather_ms / 1000 + 1e-9 for now, moment in sent.items())
    assert sent[times[0]] == times[0], "the first words do not wait"
    together = 1 + int(gather_ms // pace_ms)
    assert len(set(sent.values())) == 1 + len(sent.keys() - {times[0]}) // together


def test_words_after_a_pause_do_not_wait_for_the_next_pause() -> None:
    gathering = Gathering(30)
    gathering.can_wait(0.0, 0.0)
    assert gathering.can_wait(0.01, 0.01)
    assert not gathering.can_wait(0.5, 0.5)


def test_words_whose_next_do_not_come_are_sent_in_time() -> None:
    gathering = Gathering(30)
    gathering.can_wait(0.0, 0.0)
    gathering.can_wait(0.02, 0.02)
    assert gathering.limit == pytest.approx(0.02 + 0.03), "they came 20 ms after what was sent"
    gathering.can_wait(1.0, 1.0)
    assert gathering.limit == pytest.approx(0.06), "and no later after a pause"
