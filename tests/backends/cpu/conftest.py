"""A test with `isa` runs on every instruction set there is a way to run here."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from localrun_testing.instruction_sets import all_here, library_in_use, native, using
from localrun_testing.kv_cases import KVCase, sizes

from localrun.backends.cpu.bindings import calls_of
from localrun.backends.cpu.executor import CpuExecutor
from localrun.backends.cpu.layout import CpuLayout

HERE = Path(__file__).parent
BEST = {*all_here()[-1:], *native()[-1:]}  # AMX by a model, too
OTHERS = [isa for isa in all_here() if isa not in BEST]


@pytest.fixture(params=all_here() or ("generic",))
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    """The instruction set in use."""
    with using(request.param):
        yield request.param


@pytest.fixture
def executor() -> Iterator[Callable[..., CpuExecutor]]:
    """Makes executors of a case with `threads`; they are closed at the end."""
    made: list[CpuExecutor] = []

    def make(case: KVCase, threads: int = 2) -> CpuExecutor:
        layout, (n_blocks, n_ring), n = CpuLayout(calls_of(library_in_use()), threads), sizes(case), case.n_tokens
        made.append(CpuExecutor(layout, case.request(case.forward(layout), n_blocks, n_ring), n))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every case of a test runs on the best set, and on one of the others, which take turns; on the rest it is slow."""
    cases: defaultdict[tuple[str, str], list[pytest.Item]] = defaultdict(list)
    for item in items:
        if isinstance(item, pytest.Function) and item.path.is_relative_to(HERE) and item.fixturenames:
            callspec = getattr(item, "callspec", None)
            if callspec is not None and "isa" in callspec.params:
                cases[item.nodeid.partition("[")[0], callspec.params["isa"]].append(item)
    for (test, isa), of_set in cases.items():
        n_best = max((len(cases.get((test, best), ())) for best in BEST), default=0)  # none without a library
        if isa in OTHERS and len(of_set) == n_best > 1:  # fewer: `pairwise` has chosen
            for place, item in enumerate(of_set):
                if turn_of(place) != OTHERS.index(isa):
                    item.add_marker(pytest.mark.slow)


def turn_of(place: int) -> int:
    """Which of the other sets a case is for: by the sum of its digits, so that none always meets the same option."""
    turn = 0
    while place:
        place, digit = divmod(place, max(2, len(OTHERS)))
        turn += digit
    return turn % len(OTHERS)
