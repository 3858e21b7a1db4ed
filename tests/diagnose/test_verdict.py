"""What held up an answer: memory, arithmetic, or neither of them; and nothing where nobody can tell."""

from dataclasses import asdict, replace
from typing import Any

import pytest

from localrun.base.events import Work
from localrun.diagnose.verdict import Verdict, pace, verdict
from localrun.fit.rates import Rates

RATES = Rates(read_bytes=12.6e9, macs=2e11, wide_macs=5e10)
ONE_B = Work(weight_bytes=800_000_000, macs=1_240_000_000, wide_macs=0, attention_macs=65_536)
BUILTIN = Work(weight_bytes=6_500_000, macs=6_000_000, wide_macs=0, attention_macs=4096)
HEAVY = replace(ONE_B, weight_bytes=2_400_000_000)
WIDE = replace(ONE_B, weight_bytes=2_500_000_000, macs=0, wide_macs=1_240_000_000)


@pytest.mark.parametrize(
    ("phase", "work", "n_tokens", "tps", "bound"),
    [
        ("decode", ONE_B, 64, 11.0, "memory-bound"),
        ("decode", ONE_B, 64, 6.0, "memory-bound"),
        ("decode", ONE_B, 64, 4.4, None),  # between the two: neither is said
        ("decode", ONE_B, 64, 1.0, "overhead-bound"),
        ("decode", BUILTIN, 200, 138.0, "overhead-bound"),  # 0.84 of 12.6 GiB a second
        ("prefill", ONE_B, 2000, 60.0, "compute-bound"),
        ("prefill", ONE_B, 2000, 5.0, "overhead-bound"),
        ("prefill", WIDE, 2000, 12.0, "compute-bound"),  # 16-bit numbers are multiplied more slowly
        ("prefill", HEAVY, 9, 30.0, "memory-bound"),  # few rows: the weights are read for nearly nothing
        ("decode", ONE_B, 7, 11.0, None),  # too few
        ("decode", BUILTIN, 8, 5000.0, None),  # too short
        ("decode", None, 64, 11.0, None),  # remote
    ],
)
def test_the_bound_is_what_the_work_comes_near_to(
    phase: Any, work: Work | None, n_tokens: int, tps: float, bound: str | None
) -> None:
    assert pace(phase, work, n_tokens, n_tokens / tps, RATES).bound == bound


def test_what_a_decode_reads_counts_the_cache() -> None:
    assert pace("decode", BUILTIN, 64, 0.64, RATES).bound == "overhead-bound"
    found = pace("decode", BUILTIN, 64, 0.64, RATES, kv_bytes=90_000_000)
    assert found.bound == "memory-bound"
    assert found.read_bytes == pytest.approx(9.65e9)


def test_a_long_prompt_is_compute_bound_by_its_attention() -> None:
    short, deep = (pace("prefill", BUILTIN, 512, 0.5, RATES, seen=seen) for seen in (0, 4000))
    assert (short.bound, deep.bound) == ("overhead-bound", "compute-bound")


def test_faster_never_moves_away_from_a_limit() -> None:
    shares = [pace("decode", ONE_B, 64, 64 / tps, RATES).share for tps in (1, 2, 4, 8, 16)]
    assert shares == sorted(shares)


def stats(**figures: Any) -> dict[str, Any]:
    return {"work": asdict(ONE_B), "completion_tokens": 65, "decode_ms": 6000.0, "prefill_ms": 100.0, **figures}


def test_the_slowest_phase_of_an_answer() -> None:
    found = verdict(stats(), RATES)
    assert found is not None
    assert (found.phase, found.milliseconds, found.bound) == ("decode", 6000.0, "memory-bound")
    assert (found.read_bytes, found.share) == pytest.approx((64 * 8e8 / 6, 0.967), rel=0.01)
    found = verdict(stats(prefill_ms=9000.0, computed_tokens=500, cached_tokens=0), RATES)
    assert found is not None
    assert (found.phase, found.bound) == ("prefill", "compute-bound")
    found = verdict(stats(prefill_ms=9000.0, computed_tokens=0), RATES)
    assert found is not None
    assert (found.phase, found.bound) == ("prefill", None)
    assert verdict(stats(restore_ms=9000.0), RATES) == Verdict("restore", 9000.0)


@pytest.mark.parametrize("work", [None, {}, {"weight_bytes": "x"}, "x", 3])
def test_an_engine_that_tells_nothing_of_itself_gets_no_verdict(work: Any) -> None:
    found = verdict(stats(work=work), RATES)
    assert found is not None
    assert (found.phase, found.bound) == ("decode", None)


def test_a_machine_that_was_never_measured_gets_none() -> None:
    assert verdict(stats(), None) == Verdict("decode", 6000.0)
    assert verdict({}, RATES) is None
    assert verdict({"decode_ms": None}, RATES) is None
