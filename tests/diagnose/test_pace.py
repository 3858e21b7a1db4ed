"""What bounds a phase: memory, arithmetic, or neither of them; and nothing where nobody can tell."""

from dataclasses import replace
from typing import Any

import pytest

from localrun.base.events import Work
from localrun.diagnose.pace import Pace, pace
from localrun.fit.rates import Rates

RATES = Rates(read_bytes=12.6e9, macs=2e11, wide_macs=5e10)
ONE_B = Work(weight_bytes=800_000_000, macs=1_240_000_000, wide_macs=0, attention_macs=65_536)
BUILTIN = Work(weight_bytes=6_500_000, macs=6_000_000, wide_macs=0, attention_macs=4096)
HEAVY = replace(ONE_B, weight_bytes=2_400_000_000)
WIDE = replace(ONE_B, weight_bytes=2_500_000_000, macs=0, wide_macs=1_240_000_000)


@pytest.mark.parametrize(
    ("phase", "work", "n_tokens", "tps", "bound"),
    [
        ("decode", ONE_B, 64, 11.0, "memory"),
        ("decode", ONE_B, 64, 6.0, "memory"),
        ("decode", ONE_B, 64, 4.4, None),  # between the two: neither is said
        ("decode", ONE_B, 64, 1.0, "overhead"),
        ("decode", BUILTIN, 200, 138.0, "overhead"),  # 0.84 of 12.6 GiB a second
        ("prefill", ONE_B, 2000, 60.0, "arithmetic"),
        ("prefill", ONE_B, 2000, 5.0, "overhead"),
        ("prefill", WIDE, 2000, 12.0, "arithmetic"),  # 16-bit numbers are multiplied more slowly
        ("prefill", HEAVY, 9, 30.0, "memory"),  # few rows: the weights are read for nearly nothing
        ("decode", ONE_B, 7, 11.0, None),  # too few
        ("decode", BUILTIN, 8, 5000.0, None),  # too short
        ("decode", None, 64, 11.0, None),  # remote
    ],
)
def test_the_bound_is_what_the_work_comes_near_to(
    phase: Any, work: Work | None, n_tokens: int, tps: float, bound: str | None
) -> None:
    found = pace(phase, work, n_tokens, n_tokens / tps, RATES)
    assert (found and found.bound) == bound


def told(*args: Any, **more: Any) -> Pace:
    found = pace(*args, **more)
    assert found is not None
    return found


def test_decode_reads_include_the_cache() -> None:
    assert told("decode", BUILTIN, 64, 0.64, RATES).bound == "overhead"
    found = told("decode", BUILTIN, 64, 0.64, RATES, kv_bytes=90_000_000)
    assert found.bound == "memory"
    assert found.read_bytes == pytest.approx(9.65e9)
    assert found.share == pytest.approx(9.65 / 12.6)
    assert found.extra == pytest.approx(90 / 96.5)


def test_a_long_prompt_is_bound_by_the_arithmetic_of_its_attention() -> None:
    short, deep = (told("prefill", BUILTIN, 512, 0.5, RATES, seen=seen) for seen in (0, 4000))
    assert (short.bound, short.extra, deep.bound) == ("overhead", 0, "arithmetic")
    weights, attention = 6e6 / RATES.macs, 4000 * 4096 / RATES.wide_macs
    assert deep.extra == pytest.approx(attention / (weights + attention))
    assert deep.share == pytest.approx(512 * (weights + attention) / 0.5)


def test_faster_never_moves_away_from_a_limit() -> None:
    shares = [told("decode", ONE_B, 64, 64 / tps, RATES).share for tps in (1, 2, 4, 8, 16)]
    assert shares == sorted(shares)


def test_a_machine_that_was_never_measured_has_no_limits() -> None:
    assert pace("decode", ONE_B, 64, 6.0, None) is None
