"""What the machine has left: against psutil, and against written control groups of both versions."""

import mmap
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import torch
from localrun_testing.pretend_machine import Mac, write

from localrun.base import cgroup, machine
from localrun.base.machine import memory, peak_rss, resident

GIB = 1 << 30


def test_without_limits(groups: Path) -> None:
    assert cgroup.memory_left() is None
    assert cgroup.cpu_quota() is None
    system = psutil.virtual_memory()
    assert memory().total == system.total
    assert 0.5 * system.available < memory().available < 2 * system.available


def test_how_long_a_limit_has_kept_us_from_running(groups: Path) -> None:
    assert cgroup.stopped_seconds() == 0
    (groups / "own").write_text("0::/app\n")
    write(groups / "cgroup" / "app", cpu__stat="usage_usec 9\nnr_throttled 2\nthrottled_usec 2500000")
    assert cgroup.stopped_seconds() == 2.5
    (groups / "own").write_text("4:cpu,cpuacct:/app\n")
    write(groups / "cgroup" / "cpu" / "app", cpu__stat="nr_periods 3\nthrottled_time 1500000000")
    assert cgroup.stopped_seconds() == 1.5


def test_version_2_the_tightest_group_around_us_counts(groups: Path) -> None:
    (groups / "own").write_text("0::/user.slice/app.scope\n")
    top = groups / "cgroup"
    write(top / "user.slice" / "app.scope", memory__max="max", memory__current=GIB)
    write(
        top / "user.slice",
        memory__max=8 * GIB,
        memory__current=7 * GIB,
        memory__stat=f"anon 5\ninactive_file {2 * GIB}\nactive_file {GIB}",
    )
    assert cgroup.memory_left() == (8 * GIB, 4 * GIB)  # file pages are given back when memory is short
    write(top / "user.slice" / "app.scope", memory__max=3 * GIB, memory__current=GIB, cpu__max="150000 100000")
    assert cgroup.memory_left() == (3 * GIB, 2 * GIB)
    write(top / "user.slice", cpu__max="max 100000")
    assert cgroup.cpu_quota() == 1.5
    assert memory().total == 3 * GIB
    assert memory().available <= 2 * GIB


def test_version_2_in_a_container_our_group_is_the_root(groups: Path) -> None:
    (groups / "own").write_text("0::/docker/0123\n")
    write(groups / "cgroup", memory__max=2 * GIB, memory__current=3 * GIB, cpu__max="400000 100000")
    assert cgroup.memory_left() == (2 * GIB, 0)
    assert cgroup.cpu_quota() == 4


def test_version_1(groups: Path) -> None:
    (groups / "own").write_text("4:memory:/job\n2:cpu,cpuacct:/job\n0::/\n")
    write(
        groups / "cgroup" / "memory" / "job",
        memory__limit_in_bytes=4 * GIB,
        memory__usage_in_bytes=3 * GIB,
        memory__stat=f"inactive_file 7\ntotal_inactive_file {GIB}",
    )
    write(groups / "cgroup" / "memory", memory__limit_in_bytes=(1 << 63) - 4096, memory__usage_in_bytes=9 * GIB)
    write(groups / "cgroup" / "cpu" / "job", cpu__cfs_quota_us=250000, cpu__cfs_period_us=100000)
    write(groups / "cgroup" / "cpu", cpu__cfs_quota_us=-1, cpu__cfs_period_us=100000)
    assert cgroup.memory_left() == (4 * GIB, 2 * GIB)
    assert cgroup.cpu_quota() == 2.5


def test_memory_high_slows_a_group_down_before_its_end(groups: Path) -> None:
    (groups / "own").write_text("0::/app\n")
    write(groups / "cgroup" / "app", memory__max=4 * GIB, memory__high=2 * GIB, memory__current=GIB)
    assert cgroup.memory_left() == (2 * GIB, GIB)
    write(groups / "cgroup" / "app", memory__max="max", memory__high="max")
    assert cgroup.memory_left() is None


def test_the_memory_limit_is_named(groups: Path) -> None:
    assert memory().limit == ""
    (groups / "own").write_text("0::/app\n")
    write(groups / "cgroup" / "app", memory__max=GIB, memory__current=GIB // 4)
    assert memory().limit == "a limit of 1.00 GiB set by a control group"


@pytest.mark.skipif(sys.platform != "linux", reason="ulimit -v is of Linux")
@pytest.mark.parametrize("switch", ["-v", "-d"])
def test_limits_of_a_shell_are_respected(switch: str) -> None:
    """A process that may have little says so before it tries, and one that may have enough runs."""
    command = f'ulimit {switch} "$1"; exec "$0" -m localrun run --no-stdin --max-tokens 3 --threads 1 hello'

    def ran(limit: int) -> "subprocess.CompletedProcess[str]":
        arguments = ["bash", "-c", command, sys.executable, str(limit >> 10)]
        return subprocess.run(arguments, capture_output=True, text=True, check=False)

    refused, enough = ran(700 << 20), ran(2 * GIB)
    assert refused.returncode == 4
    assert f"a limit of 0.68 GiB set by `ulimit {switch}`" in refused.stderr
    assert "raise that limit" in refused.stderr
    assert enough.returncode == 0, enough.stderr


@pytest.mark.parametrize("text", ["", "garbage", "0::/../../etc\n", ":::\n", "0::/x\n" * 3])
def test_odd_group_lists_do_no_harm(groups: Path, text: str) -> None:
    (groups / "own").write_text(text)
    write(groups / "cgroup", memory__max="lots", memory__current="", cpu__max="0 0")
    assert cgroup.memory_left() is None
    assert cgroup.cpu_quota() is None


def test_the_machine_answers_with_sane_numbers() -> None:
    now = memory()
    assert 0 < now.available <= now.total
    before, peak = resident(), peak_rss()
    with mmap.mmap(-1, 64 << 20) as held:  # fresh from the system, as a freed piece of the heap would not be
        held.write(bytes(range(1, 129)) * (1 << 19))
        assert resident() >= before + len(held) / 2
    assert peak_rss() >= max(peak, resident() - (1 << 20))


@pytest.mark.skipif(sys.platform != "linux", reason="only where there is getrusage: windows has none")
def test_a_peak_is_our_own_and_not_that_of_who_started_us(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = torch.ones(128 << 18)  # 128 MiB in this process
    code = "from localrun.base.machine import peak_rss; print(peak_rss())"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(child.stdout) < held.nbytes
    monkeypatch.setattr("localrun.base.machine.STATUS", tmp_path / "missing")
    assert peak_rss() >= held.nbytes


def test_other_programs_own_pages_are_not_free_on_a_mac(mac: Mac) -> None:
    """As the pane of memory counts: used is what belongs to programs, is wired or compressed; files are a cache."""
    assert memory().available == 9 * GIB  # nothing known: psutil's figure
    counts = {"free": 65536, "speculative": 7, "pageable_internal": 400000, "pageable_external": 131072, "purgeable": 0}
    mac.values |= {f"vm.page_{kind}_count": n.to_bytes(4, "little") for kind, n in counts.items()}
    assert memory() == machine.Memory(16 * GIB, 3 * GIB)
