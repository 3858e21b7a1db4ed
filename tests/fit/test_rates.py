"""What is known of a machine's speed: the best of quiet probes and of what answers reached, kept whole in a file."""

import json
import subprocess
import sys
import time
from dataclasses import replace
from itertools import chain, count, repeat
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localrun.backends.registry import usual_backend
from localrun.base.events import CacheFigures, MemoryFigures, Work
from localrun.fit import machine_rates as module
from localrun.fit.machine_rates import known_rates, learn, learn_encoding, machine_rates, note_limits
from localrun.fit.probe import MOST_ROUNDS, Clock, Probed, best_of, others, probe
from localrun.fit.rates import MOST_FOUND, READ_SHARE, Rates
from localrun.fit.roofline import roofline

QUIET, BUSY = Probed(30e9, 4e11, 1e11, idle=True), Probed(8e9, 1e11, 3e10, idle=False)
ONE_B = Work(weight_bytes=800_000_000, macs=1_240_000_000, wide_macs=0, attention_macs=65_536)
TINY = replace(ONE_B, weight_bytes=6_500_000)

speeds = st.floats(1e8, 1e13)
known = st.builds(Rates, speeds, speeds, st.one_of(st.just(0.0), speeds), st.booleans())
works = st.builds(
    Work, st.integers(1, 1 << 42), st.integers(0, 1 << 42), st.integers(0, 1 << 42), st.integers(0, 1 << 20)
)
answers = st.tuples(
    st.sampled_from(["decode", "prefill"]), works, st.integers(0, 100_000), st.floats(0, 1e5), st.floats(0, 1e12)
)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[Probed]:
    """What the next probes find, the last one for ever."""
    found = [QUIET]
    monkeypatch.setattr(module, "probe", lambda _: found.pop(0) if len(found) > 1 else found[0])
    return found


def later(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    now = time.time()
    monkeypatch.setattr("localrun.fit.machine_rates.time.time", lambda: now + seconds)


@given(known, st.lists(answers, max_size=12))
def test_no_answer_makes_a_machine_slower_and_none_makes_it_a_wonder(start: Rates, given: list[tuple]) -> None:  # type: ignore[type-arg]
    rates = start
    for answer in given:
        before, rates = rates, rates.after(*answer)
        assert rates.read_bytes >= before.read_bytes
        assert rates.macs >= before.macs
        assert all(rates.reached[name] >= share for name, share in before.reached.items())
        assert all(0 < share <= 1 for share in rates.reached.values())
        assert rates.read_bytes <= MOST_FOUND * before.read_bytes
        assert rates.macs <= MOST_FOUND * before.macs


@given(known, known)
def test_the_better_of_two_is_the_same_whichever_came_first(one: Rates, other: Rates) -> None:
    assert one.better(other) == other.better(one)
    assert one.better(other).better(one) == one.better(other)


def test_an_answer_corrects_a_limit_that_was_measured_in_bad_company() -> None:
    """A model of 1B was offered at 8.6 tokens a second, and ran at 30."""
    rates = Rates(9.8e9, 2e11, idle=False)
    assert rates.read_bytes * rates.share("decode", 8e8)[0] / 8e8 == pytest.approx(8.6, rel=0.01)
    rates = rates.after("decode", ONE_B, 200, 200 / 30)
    share, measured = rates.share("decode", 8e8)
    assert measured
    assert rates.read_bytes * share / 8e8 == pytest.approx(30)
    assert rates.share("decode", 6e9) == (READ_SHARE, False), "other sizes profit by the limit alone"


def test_a_model_that_fits_a_processors_cache_says_nothing_of_memory() -> None:
    rates = Rates(10e9, 2e11).after("decode", TINY, 1000, 0.5)
    assert (rates.read_bytes, rates.share("decode", TINY.weight_bytes)) == (10e9, (1.0, True))


def test_a_long_prompt_says_how_long_the_next_one_of_its_length_takes() -> None:
    """Of 4,000 tokens of a small model most of the time is attention: a log of 5 minutes was offered as one of 35."""
    small = replace(TINY, macs=130_000_000, attention_macs=35_000)
    rates = Rates(10e9, 2e11, 5e10).after("prefill", small, 4000, 50.0, seen=2000)
    limits, _ = roofline(rates, small.weight_bytes)
    assert limits.prefill(small, 4000, 2000, 0).longer == pytest.approx(50.0)


@pytest.mark.parametrize(("n_tokens", "seconds"), [(31, 10.0), (1000, 0.4), (0, 0.0), (10_000, 0.6)])
def test_short_answers_and_impossible_ones_teach_nothing(n_tokens: int, seconds: float) -> None:
    rates = Rates(10e9, 2e11)
    assert rates.after("decode", ONE_B, n_tokens, seconds) == rates


def test_quiet_rounds_count_and_busy_ones_only_where_there_is_nothing_else() -> None:
    faster = replace(BUSY, read_bytes=99e9)
    assert best_of(chain([faster, BUSY], repeat(QUIET))) == QUIET
    taken = []
    found = best_of(taken.append(one) or one for one in repeat(BUSY))  # type: ignore[func-returns-value]
    assert (found, len(taken)) == (BUSY, MOST_ROUNDS)
    low, high = replace(QUIET, read_bytes=1e9), replace(QUIET, macs=9e11)
    assert best_of(iter([low, high, low])) == replace(QUIET, macs=9e11)


def test_nobody_waits_for_more_than_one_round_of_a_machine_that_others_keep_busy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A round waits until all threads compute at once: beside ten other programs `show` took a quarter of a minute."""
    seconds = count(0.0, 4.0)
    monkeypatch.setattr("localrun.fit.probe.time", SimpleNamespace(monotonic=lambda: next(seconds)))
    assert best_of(iter([BUSY])) == best_of(iter([BUSY, QUIET, QUIET])) == BUSY


def test_the_processors_that_others_used() -> None:
    before, after = Clock(10.0, 100.0, 5.0), Clock(10.5, 100.9, 5.4)
    assert others(before, after, 2) == pytest.approx(0.5)
    assert others(before, replace(after, busy=100.2), 2) == 0.0  # clocks tick coarsely
    assert others(before, before, 2) == 0.0


def test_a_real_probe() -> None:
    found = probe(usual_backend())
    assert 1e8 < found.read_bytes < 1e13
    assert 1e8 < found.wide_macs < 1e15
    assert 1e8 < found.macs < 1e15


def test_idle_measurements_are_valid_for_a_month(measured: list[Probed], monkeypatch: pytest.MonkeyPatch) -> None:
    assert known_rates() is None
    assert machine_rates() == known_rates() == Rates(30e9, 4e11, 1e11)
    measured[:] = [replace(QUIET, read_bytes=20e9)]
    assert machine_rates().read_bytes == 30e9
    assert machine_rates(refresh=True).read_bytes == 30e9, "doctor keeps the best"
    later(monkeypatch, 31 * 86400)
    assert machine_rates().read_bytes == 20e9, "the machine has changed"


def test_busy_measurements_expire_soon(measured: list[Probed], monkeypatch: pytest.MonkeyPatch) -> None:
    measured[:] = [BUSY, QUIET]
    assert machine_rates().idle is False
    assert machine_rates().read_bytes == 8e9
    later(monkeypatch, 601)
    assert machine_rates() == Rates(30e9, 4e11, 1e11)
    measured[:] = [BUSY]
    later(monkeypatch, 32 * 86400)
    assert machine_rates().read_bytes == 30e9, "a busy probe replaces no quiet one"


def test_a_bench_refreshes_what_is_known(measured: list[Probed]) -> None:
    note_limits(BUSY)
    assert known_rates() == Rates(8e9, 1e11, 3e10, idle=False)
    note_limits(replace(BUSY, macs=5e11))
    assert known_rates() == Rates(8e9, 5e11, 3e10, idle=False)


def test_answers_are_learnt_from(measured: list[Probed]) -> None:
    from localrun_testing.scripted_client import COMPLETION

    timings = replace(COMPLETION.timings, decode_ms=8000.0, prefill_ms=1000.0)
    answer = replace(
        COMPLETION,
        work=ONE_B,
        cached_tokens=500,
        completion_tokens=201,
        timings=timings,
        cache=CacheFigures(computed_tokens=100),
        memory=MemoryFigures(),
    )
    learn(answer)
    assert known_rates() is None, "there is nothing to compare with"
    machine_rates()
    learn(answer)
    rates = known_rates()
    assert rates is not None
    share, measured_here = rates.share("decode", ONE_B.weight_bytes)
    assert measured_here
    assert share == pytest.approx(25 * 8e8 / 30e9)
    seconds = 100 * (1.24e9 / 4e11 + 550 * 65_536 / 1e11)  # at the limits: the average token sees 550 others
    assert rates.share("prefill", ONE_B.weight_bytes)[0] == pytest.approx(seconds)
    learn(replace(answer, timings=replace(timings, decode_ms=80_000.0)))
    learn(replace(answer, work=None))
    assert known_rates() == rates


BROKEN = ("", "[]", "{}", '{"x": 1}', '{"KEY": 3}', '{"KEY": {"read_bytes": -1, "macs": 1}}', '{"KEY": {"reached": 1}}')


@pytest.mark.parametrize("text", BROKEN)
def test_rates_are_measured_again_after_a_damaged_file(text: str, home: Path, measured: list[Probed]) -> None:
    machine_rates()
    (file,) = home.rglob("machine.json")
    (key,) = json.loads(file.read_text())
    file.write_text(text.replace('"KEY"', json.dumps(key)))
    assert known_rates() is None
    assert machine_rates() == known_rates() == Rates(30e9, 4e11, 1e11)


def test_machines_that_share_a_home_keep_their_own(measured: list[Probed], monkeypatch: pytest.MonkeyPatch) -> None:
    machine_rates()
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(module, "cpu_name", lambda: "another processor")
        assert known_rates() is None
        measured[:] = [BUSY]
        machine_rates()
    assert known_rates() == Rates(30e9, 4e11, 1e11)


def test_without_a_place_to_keep_them(measured: list[Probed], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALRUN_HOME", "/dev/null/x")
    assert machine_rates() == Rates(30e9, 4e11, 1e11)


def test_processes_that_write_side_by_side_leave_a_whole_file(home: Path) -> None:
    code = """
from localrun.fit.probe import Probed
from localrun.fit.machine_rates import known_rates, note_limits
for n in range(40):
    note_limits(Probed(1e9 + n, 1e9 + n, 1e9, False))
    assert known_rates() is not None
"""
    running = [subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) for _ in range(3)]
    assert [process.communicate()[1] for process in running] == ["", "", ""]
    found = known_rates()
    assert found is not None
    assert found.read_bytes > 1e9
    assert [path.name for path in home.rglob("*machine*")] == ["machine.json"]


def test_a_faster_encoding_is_kept_and_a_slower_one_is_not(home: Path, measured: list[Probed]) -> None:
    learn_encoding(1.0, 10.0, usual_backend())
    assert known_rates() is None, "nothing to compare it with"
    guess = machine_rates().encode_seconds(1.0)
    assert guess == pytest.approx(1e12 / 2 / 1e11 / 0.4)
    learn_encoding(1.0, guess / 2, usual_backend())
    for seconds in (guess, 0.4, 1e-9):  # slower, and too short to tell
        learn_encoding(0.01, seconds, usual_backend())
    found = known_rates()
    assert found is not None
    assert found.encode_seconds(3.0) == pytest.approx(1.5 * guess)
