"""No kernel is forgotten: cases of the self-test run every one, and mutants break every one, or a file it includes.

Sanitizers, other orders of threads and sums that are cut off are each tried on all cases (test_broken_on_purpose.py,
test_self_test.py), so what a case runs is tried by all of them.
"""

import re
from functools import cache
from typing import Any, TypeAlias

import pytest
from localrun_testing.cuda_linear import LAYOUT_CASES
from localrun_testing.every_mutant import MUTANTS
from localrun_testing.gpu_cases import CASES, TEXTS, Name, device_of

Kernel: TypeAlias = tuple[str, str]  # file, name
_KERNELS = {
    "cuda": re.compile(r'extern "C" __global__\s+void\s+__launch_bounds__\((?:[^()]|\([^()]*\))*\)\s*(\w+)\('),
    "metal": re.compile(r"\bkernel void (\w+)\("),
}
_INCLUDES = re.compile(r'^#include "([\w.]+)"', re.MULTILINE)
# A twin of linear.cu for tests alone, which compare both for every layout, under sanitizers, too.
TWINS = {("linear_dp4a.cu", "linear_dp4a")}


class Noting:
    """A device that notes the kernels it is asked for."""

    def __init__(self, device: Any) -> None:
        self.device, self.asked = device, set[Kernel]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.device, name)

    def kernel(self, file: str, name: str, **defines: int) -> Any:
        self.asked.add((file, name))
        return self.device.kernel(file, name, **defines)


@cache
def run_by(platform: Name, case: str) -> frozenset[Kernel]:
    """The kernels that a case of the self-test asks for."""
    device = Noting(device_of(platform))
    assert CASES[platform][case](device) == ""
    return frozenset(device.asked)


def kernels(platform: Name) -> set[Kernel]:
    """All there are, by their texts."""
    folder, ending = TEXTS[platform].folder(), TEXTS[platform].endings[0]
    return {
        (path.name, name) for path in folder.glob(f"*{ending}") for name in _KERNELS[platform].findall(path.read_text())
    }


@cache
def files_of(platform: Name, file: str) -> frozenset[str]:
    """A file, and all that it includes."""
    path = TEXTS[platform].folder() / file
    included = _INCLUDES.findall(path.read_text()) if path.exists() else []  # the emulator's own header is elsewhere
    return frozenset({file}.union(*(files_of(platform, name) for name in included)))


@pytest.mark.parametrize("platform", CASES)
def test_every_kernel_is_run_by_a_case(platform: Name) -> None:
    tried = frozenset[Kernel]().union(*(run_by(platform, case) for case in CASES[platform]))
    assert kernels(platform) - tried == (TWINS if platform == "cuda" else set())


def test_twins_have_cases_of_their_own() -> None:
    device = Noting(device_of("cuda"))
    assert LAYOUT_CASES["every kernel of Q4_K"](device) == ""
    assert device.asked >= TWINS


@pytest.mark.parametrize("platform", CASES)
def test_every_kernel_is_broken_by_a_mutant(platform: Name) -> None:
    mutants = [mutant for mutant in MUTANTS if mutant.platform == platform]
    broken = {
        (file, name)
        for mutant in mutants
        for file, name in run_by(platform, mutant.case)
        if mutant.edit[0] in files_of(platform, file)
    }
    assert kernels(platform) - broken == (TWINS if platform == "cuda" else set())
