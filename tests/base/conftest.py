"""Machines that are not there."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from localrun_testing.pretend_machine import Mac

from localrun.base import cgroup, macos
from localrun.base.processors import cpu_name


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty tree of control groups; write files into it."""
    monkeypatch.setattr(cgroup, "MOUNT", tmp_path / "cgroup")
    monkeypatch.setattr(cgroup, "OWN", tmp_path / "own")
    return tmp_path


@pytest.fixture
def mac(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mac]:
    """A Mac of 12 cores, 4 of them slow, with 16 GiB of memory."""
    system = Mac(hw__perflevel0__physicalcpu=8, vm__pagesize=16384)
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(macos, "system", lambda: system)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=16 << 30, available=9 << 30))
    monkeypatch.setattr(psutil, "cpu_count", lambda logical=True: 12)
    cpu_name.cache_clear()
    yield system
    cpu_name.cache_clear()
