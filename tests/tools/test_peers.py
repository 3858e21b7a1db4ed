"""Beside peers: what is built is built for one instruction set, and what is divided was measured in one round."""

import platform
import shutil
import subprocess
import sys

import pytest

from benchmarks.build_peers import SETS, ik_options, llama_cpp_options
from benchmarks.side_by_side import Case, Engine, Measured, measure
from localrun.backends.limits import Limits

IK_BEST = {"__AVX512F__", "__AVX512VNNI__", "__AVX512VL__", "__AVX512BW__", "__AVX512DQ__"}  # what its best kernels ask
MACROS = {  # that a compiler defines for a set
    "avx2": {"__AVX2__", "__FMA__", "__F16C__", "__BMI2__"},
    "avxvnni": {"__AVX2__", "__FMA__", "__F16C__", "__BMI2__", "__AVXVNNI__"},
    "avx512": {"__AVX2__", *IK_BEST, "__AVX512BF16__", "__AVX512VBMI__"},
    "amx": {"__AVX2__", *IK_BEST, "__AVX512BF16__", "__AVX512VBMI__", "__AMX_TILE__", "__AMX_INT8__", "__AMX_BF16__"},
}
TELLING = {"__AVXVNNI__", "__AVX512F__", "__AMX_TILE__"}  # of one set and not of a weaker one


@pytest.mark.skipif(sys.platform != "linux" or platform.machine() != "x86_64", reason="of compilers for x86")
@pytest.mark.parametrize("isa", SETS)
def test_a_peer_is_built_for_one_instruction_set(isa: str) -> None:
    compiler = shutil.which("clang-16") or "gcc"
    (flags,) = (option.partition("=")[2].split() for option in ik_options(isa) if "CXX_FLAGS" in option)
    command = [compiler, *flags, "-dM", "-E", "-x", "c", "/dev/null"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.splitlines()
    defined = {line.split()[1] for line in lines}
    assert defined >= MACROS[isa]
    assert defined & TELLING == MACROS[isa] & TELLING
    on = {option for option in llama_cpp_options(isa) if option.endswith("=ON")}
    for macro in TELLING:
        option = {"__AVXVNNI__": "AVX_VNNI", "__AVX512F__": "AVX512", "__AMX_TILE__": "AMX_TILE"}[macro]
        assert (f"-DGGML_{option}=ON" in on) == (macro in MACROS[isa]), "llama.cpp's options say the same"


def test_a_ratio_pairs_what_one_round_measured() -> None:
    measured = Measured({"localrun": [10.0, 40.0, 30.0], "peer": [5.0, 10.0, 30.0]})
    assert measured.ratios("peer") == [2.0, 4.0, 1.0]


def test_the_fastest_setting_is_that_of_the_highest_median() -> None:
    measured = Measured({"localrun": [1.0] * 3, "flash off": [1.0, 9.0, 2.0], "flash on": [3.0, 3.0, 3.0]})
    assert measured.fastest(["flash off", "flash on"]) == "flash on", "not that of the best round"


class Recorded(Engine):
    """An engine that writes down what it is asked."""

    def __init__(self, name: str, asked: list[tuple[str, int]]) -> None:
        self.name, self.asked = name, asked

    def rate(self, case: Case) -> float:
        self.asked.append((self.name, case.n))
        return float(len(self.asked))

    def bound(self, case: Case, limits: Limits) -> float:
        return 10 * limits.read_gbps


class Probe:
    def measure(self) -> Limits:
        return Limits(1.0, 2.0, 3.0, 4.0)

    def close(self) -> None:
        raise AssertionError("whoever opened it closes it")


def test_rounds_go_both_ways_and_the_first_only_warms_up() -> None:
    asked: list[tuple[str, int]] = []
    case = Case("decode", 64, 0, 1)
    found = measure({name: Recorded(name, asked) for name in ("localrun", "peer")}, [case], 2, Probe())[case]
    assert asked == [("peer", 8), ("localrun", 8), ("localrun", 64), ("peer", 64), ("peer", 64), ("localrun", 64)]
    assert found.rates == {"localrun": [3.0, 6.0], "peer": [4.0, 5.0]}
    assert found.share_of_limit == (3 / 20 + 6 / 20) / 2
