"""The roofline: reading and multiplying side by side, token by token as a brute force counts them."""

import pytest

from localrun.base.events import Work
from localrun.fit.rates import MAC_SHARE, READ_SHARE, Rates
from localrun.fit.roofline import Seconds, roofline, usual_roofline

WORK = Work(weight_bytes=4_000_000_000, macs=7_000_000_000, wide_macs=1_000_000, attention_macs=65_536)
RATES = Rates(read_bytes=40e9, macs=200e9, wide_macs=80e9)


def test_the_longer_of_two_is_the_limit() -> None:
    assert (Seconds(2.0, 1.0).longer, Seconds(2.0, 1.0).limit) == (2.0, "memory")
    assert (Seconds(1.0, 2.0).longer, Seconds(1.0, 2.0).limit) == (2.0, "arithmetic")


def test_a_prompt_is_the_sum_of_its_tokens_and_of_its_steps() -> None:
    """Each token multiplies all weights and sees those before it; each step of 512 reads the weights and the cache."""
    n, start = 1100, 300
    line = usual_roofline(RATES)
    macs = [WORK.macs / (200e9 * MAC_SHARE)] * n
    wide = [(WORK.wide_macs + (start + i + 0.5) * WORK.attention_macs) / (80e9 * MAC_SHARE) for i in range(n)]
    steps = [WORK.weight_bytes + 5_000_000 for first in range(0, n, 512)]
    found = line.prefill(WORK, n, start + n / 2, 5_000_000)
    assert found.arithmetic == pytest.approx(sum(macs) + sum(wide))
    assert found.memory == pytest.approx(sum(steps) / (40e9 * READ_SHARE))


def test_weights_are_read_once_for_all_chats() -> None:
    line = usual_roofline(RATES)
    one, four = line.decode(WORK, 1000, 10_000_000), line.decode(WORK, 1000, 10_000_000, chats=4)
    assert four.arithmetic == pytest.approx(4 * one.arithmetic)
    assert four.memory - one.memory == pytest.approx(3 * 10_000_000 / (40e9 * READ_SHARE))


def test_reached_shares_override_the_usual_share() -> None:
    known = Rates(40e9, 200e9, reached={"decode 3": 0.9})
    assert known.share("decode", 4e9) == (0.9, True)
    line, measured = roofline(known, 4e9)
    assert measured
    assert line.reading(36e9) == pytest.approx(1.0)
    assert line.multiplying(0, 100e9 * MAC_SHARE) == pytest.approx(1.0), (
        "wider numbers at half the pace, unless measured"
    )
    assert not roofline(RATES, 4e9)[1]
