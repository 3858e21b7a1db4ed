"""Kernels as they are give no sanitizer cause to speak; kernels broken on purpose are all noticed, by whom we say."""

import re

import pytest
from _pytest.mark import ParameterSet
from localrun_testing.broken_kernels import SCHEDULES, Mutant, Schedule, report, runtime
from localrun_testing.emulator.build import Sanitizer
from localrun_testing.every_mutant import MUTANTS
from localrun_testing.gpu_cases import CASES, Name, device_of

# Everybody who is to notice each mutant; `make test` has one a platform that a plain run notices, and one race.
PAIRS = [(mutant, sanitizer) for mutant in MUTANTS for sanitizer in mutant.found]
QUICK = {(mutant.platform, sanitizer): (mutant, sanitizer) for mutant, sanitizer in reversed(PAIRS)}.values()
SANITIZED_IN_EVERY_RUN = (("cuda", "address", "intrinsics"), ("metal", "address", "norm"))


def parameters(mutant: Mutant, sanitizer: Sanitizer) -> ParameterSet:
    marks = () if sanitizer != "address" and (mutant, sanitizer) in QUICK else pytest.mark.slow
    return pytest.param(mutant, sanitizer, id=f"{mutant.platform}: {mutant.what} ({sanitizer or 'plain'})", marks=marks)


def need(sanitizer: Sanitizer) -> None:
    if sanitizer and not runtime(sanitizer).is_absolute():
        pytest.skip("this compiler has no such sanitizer: windows and macos build theirs in another way")


@pytest.mark.parametrize(
    ("platform", "sanitizer", "case"),
    [
        pytest.param(
            *(platform, sanitizer, case),
            marks=() if (platform, sanitizer, case) in SANITIZED_IN_EVERY_RUN else pytest.mark.slow,
        )
        for platform in CASES
        for sanitizer in ("address", "thread")
        for case in CASES[platform]
    ],
)
def test_no_sanitizer_objects_to_kernels_as_they_are(platform: Name, sanitizer: Sanitizer, case: str) -> None:
    need(sanitizer)
    assert report(platform, case, sanitizer, SCHEDULES[0], {}) == ""


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("platform", "case"), [(platform, case) for platform in CASES for case in CASES[platform]])
def test_case_is_deterministic_across_thread_orders(platform: Name, case: str, schedule: Schedule) -> None:
    seed, poison = schedule
    assert CASES[platform][case](device_of(platform, seed=seed, poison=poison)) == ""


@pytest.mark.parametrize(("mutant", "sanitizer"), [parameters(*pair) for pair in PAIRS])
def test_self_test_detects_mutant(mutant: Mutant, sanitizer: Sanitizer) -> None:
    need(sanitizer)
    said = mutant.report(sanitizer)
    assert re.search(mutant.found[sanitizer], said), said or "nobody noticed"


@pytest.mark.slow
@pytest.mark.parametrize("extra_bits", [0, 1, 2])
@pytest.mark.parametrize(
    "mutant", [m for m in MUTANTS if m.platform == "cuda" and "" in m.found], ids=lambda mutant: mutant.what
)
def test_mutants_are_detected_however_sums_are_rounded(mutant: Mutant, extra_bits: int) -> None:
    said = mutant.report("", extra_bits)
    assert re.search(mutant.found[""], said), said or "nobody noticed"


def test_every_mutant_breaks_something_that_is_there() -> None:
    for mutant in MUTANTS:
        assert mutant.text()
        assert mutant.case in CASES[mutant.platform]
