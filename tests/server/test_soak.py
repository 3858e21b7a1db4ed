"""A server after a minute of clients that behave badly."""

import pytest

from benchmarks.server_soak import soak


@pytest.mark.slow
@pytest.mark.process
def test_a_minute_of_everything_leaves_nothing_behind() -> None:
    report = soak(seconds=60, n_clients=24, seed=1)
    assert report.wrong == []
    assert report.statuses["200"] > 0
    assert {"whole", "stream", "leave", "half", "look"} <= set(report.acts)
