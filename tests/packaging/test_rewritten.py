"""Asserts are rewritten once, whatever the number of workers."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from _pytest.assertion.rewrite import get_cache_dir
from localrun_testing.rewritten import rewrite_a_part


def test_each_worker_rewrites_a_part_of_the_files(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    for name in "abcd":
        (tmp_path / f"test_{name}.py").write_text("assert 1")
    (tmp_path / "test_e.py").write_text("assert")
    kept = get_cache_dir(tmp_path / "test_a.py")

    def by(worker: str) -> set[str]:
        config: Any = SimpleNamespace(
            workerinput={"workerid": worker, "workercount": 2},
            args=["."],
            invocation_params=SimpleNamespace(dir=tmp_path),
            getini=pytestconfig.getini,
            stash=pytestconfig.stash,
        )
        rewrite_a_part(config)
        return {file.name[5] for file in kept.iterdir()}

    first = by("gw0")
    assert 0 < len(first) < 4
    assert by("gw1") == set("abcd")
    times = [file.stat().st_mtime_ns for file in kept.iterdir()]
    assert by("gw0") == by("gw1") == set("abcd")
    assert [file.stat().st_mtime_ns for file in kept.iterdir()] == times
