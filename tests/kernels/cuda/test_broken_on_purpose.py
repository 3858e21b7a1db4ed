"""Kernels as they are give no sanitizer cause to speak; kernels broken on purpose are all noticed, by whom we say."""

import re

import pytest
from _pytest.mark import ParameterSet
from localrun_testing.broken_kernels import SCHEDULES, Mutant, Schedule, report, runtime
from localrun_testing.kernel_mutants import MUTANTS

from localrun.backends.cuda.emulated_device import EmulatedDevice
from localrun.backends.cuda.self_test_cases import CASES
from localrun.backends.gpu.emulated_build import Sanitizer

# Everybody who is to notice each mutant; `make test` has one that a plain run notices, and one race.
PAIRS = [(mutant, sanitizer) for mutant in MUTANTS for sanitizer in mutant.found]
QUICK = {sanitizer: (mutant, sanitizer) for mutant, sanitizer in reversed(PAIRS) if sanitizer != "address"}.values()


def parameters(mutant: Mutant, sanitizer: Sanitizer) -> ParameterSet:
    marks = () if (mutant, sanitizer) in QUICK else pytest.mark.slow
    return pytest.param(mutant, sanitizer, id=f"{mutant.what} ({sanitizer or 'plain'})", marks=marks)


def need(sanitizer: Sanitizer) -> None:
    if sanitizer and not runtime(sanitizer).is_absolute():
        pytest.skip("this compiler has no such sanitizer: windows and macos build theirs in another way")


@pytest.mark.parametrize(
    ("sanitizer", "case"),
    [
        ("address", "intrinsics"),
        pytest.param("address", "all", marks=pytest.mark.slow),
        pytest.param("thread", "all", marks=pytest.mark.slow),
    ],
)
def test_no_sanitizer_objects_to_kernels_as_they_are(sanitizer: Sanitizer, case: str) -> None:
    need(sanitizer)
    assert report(case, sanitizer, SCHEDULES[0], {}) == ""


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("case", CASES)
def test_a_case_passes_whatever_turns_threads_take(case: str, schedule: Schedule) -> None:
    seed, poison = schedule
    assert CASES[case](EmulatedDevice(seed=seed, poison=poison)) == ""


@pytest.mark.parametrize(("mutant", "sanitizer"), [parameters(*pair) for pair in PAIRS])
def test_what_is_broken_on_purpose_is_noticed(mutant: Mutant, sanitizer: Sanitizer) -> None:
    need(sanitizer)
    said = mutant.report(sanitizer)
    assert re.search(mutant.found[sanitizer], said), said or "nobody noticed"


def test_every_mutant_breaks_something_that_is_there() -> None:
    for mutant in MUTANTS:
        assert mutant.text()
        assert mutant.case in CASES
