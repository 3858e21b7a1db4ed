"""Which processors count, and how many threads: on machines written down as Linux, macOS and Windows describe them."""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType

import psutil
import pytest
from localrun_testing.pretend_machine import Mac, write

from localrun.base import processors
from localrun.base.processors import cpu_name, memory_nodes, most_threads, usual_threads

Uses = Callable[[Iterable[int]], None]


@pytest.fixture
def system(groups: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folders of a Linux that tells nothing yet; `groups` has no limits."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(processors, "CPUS", tmp_path / "cpus")
    monkeypatch.setattr(processors, "NODES", tmp_path / "nodes")
    return tmp_path


@pytest.fixture
def uses(system: Path, monkeypatch: pytest.MonkeyPatch) -> Uses:
    """Says which processors this process may use."""

    def use(numbers: Iterable[int]) -> None:
        monkeypatch.setattr(psutil.Process, "cpu_affinity", lambda _self: list(numbers))

    monkeypatch.setattr(psutil, "cpu_count", lambda logical=True: 64)
    return use


def test_two_threads_of_a_core_count_once(system: Path, uses: Uses) -> None:
    for number, siblings in enumerate(("0,4", "1,5", "2,6", "3", "0,4", "1,5", "2,6")):
        write(system / "cpus" / f"cpu{number}" / "topology", thread_siblings_list=siblings)
    for usable, cores in ((range(7), 4), ([0, 4], 1), ([1, 4, 5, 3], 3)):
        uses(usable)
        assert usual_threads() == cores
        assert most_threads() == len(usable)
    uses([0, 20, 21])
    assert usual_threads() == 3  # where nothing is said, each is a core


@pytest.mark.parametrize("name", ["cpu_capacity", "cpufreq/cpuinfo_max_freq"])
def test_cores_half_as_fast_count_and_slower_ones_do_not(name: str, system: Path, uses: Uses) -> None:
    for number, speed in enumerate((1024, 1024, 700, 512, 511, 397)):
        path = system / "cpus" / f"cpu{number}" / name
        write(path.parent, **{path.name: speed})
    uses(range(6))
    assert usual_threads() == 4
    assert most_threads() == 6
    uses([3, 4, 5])  # kept to the slow ones: those are what there is
    assert usual_threads() == 3
    uses([0, 4, 5])
    assert usual_threads() == 1
    uses([0, 4, 5, 6])  # of the last nothing is known
    assert usual_threads() == 4


@pytest.mark.parametrize(("quota", "usual", "most"), [(50000, 1, 1), (150000, 1, 2), (200000, 2, 2), (900000, 4, 4)])
def test_a_quota_bounds_threads(quota: int, usual: int, most: int, system: Path, uses: Uses) -> None:
    """Started by itself are as many as it lets run all the time, at most as many as it lets run now and then."""
    uses(range(4))
    (system / "own").write_text("0::/app\n")
    write(system / "cgroup" / "app", cpu__max=f"{quota} 100000")
    assert (usual_threads(), most_threads()) == (usual, most)


def test_processors_belong_to_nodes_of_memory(system: Path, uses: Uses) -> None:
    uses([0, 1, 5, 8])
    assert memory_nodes() == [[0, 1, 5, 8]]  # where nothing is said
    for name, cpus in (("node0", "0-3,8"), ("node1", "4-7"), ("node10", ""), ("node2", "9"), ("has_cpu", "0-9")):
        write(system / "nodes" / name, cpulist=cpus)
    assert memory_nodes() == [[0, 1, 8], [5]]
    uses([2, 3])
    assert memory_nodes() == [[2, 3]]


def test_a_mac_says_its_name_and_its_fast_cores(mac: Mac) -> None:
    assert cpu_name() == "Apple M2 Pro"
    assert (usual_threads(), most_threads()) == (8, 12)
    del mac.values["hw.perflevel0.physicalcpu"]  # Intel's
    assert usual_threads() == 12


def test_windows_says_its_processor_and_which_part_of_it_we_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    class Key:
        def __enter__(self) -> "Key":
            return self

        def __exit__(self, *_: object) -> None:
            pass

    winreg = ModuleType("winreg")
    vars(winreg).update(
        HKEY_LOCAL_MACHINE=1,
        OpenKey=lambda root, path: Key() if (root, path[:8]) == (1, "HARDWARE") else None,
        QueryValueEx=lambda key, name: {"ProcessorNameString": ("Intel(R) Core(TM) i7-1360P ", 1)}[name],
    )
    monkeypatch.setitem(sys.modules, "winreg", winreg)
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(psutil, "cpu_count", lambda logical=True: 12)
    monkeypatch.setattr(psutil.Process, "cpu_affinity", lambda _self: [0, 1, 2])
    cpu_name.cache_clear()
    assert cpu_name() == "Intel(R) Core(TM) i7-1360P"
    assert (usual_threads(), most_threads()) == (3, 3)
    cpu_name.cache_clear()


def test_this_machine_has_processors() -> None:
    assert 1 <= usual_threads() <= most_threads()
