"""Only tests of processes and screens are run once more, and no run passes that should not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from localrun_testing import REPOSITORY

PLUGIN = "localrun_testing.run_again"  # without the rest that our conftest imports
SAMPLE = """
import pathlib, pytest

def is_first(name):
    file = pathlib.Path(__file__).with_name(name)
    with file.open("a") as runs:
        runs.write("x")
    return file.read_text() == "x"

@pytest.fixture
def screen():
    assert not is_first("screen"), "no screen yet"
"""
PROCESS = """
@pytest.mark.process
def test_{name}():
    assert not is_first("{name}"), "too early: {name}"
"""
SCREEN = """
@pytest.mark.screen
def test_screen(screen):
    pass
"""
NUMBER = """
def test_number():
    assert not is_first("number")
"""
BROKEN = """
@pytest.mark.process
def test_broken():
    assert is_first("never again") is None, f"broken"
"""
GIVEN_UP = """
def test_given_up():
    raise KeyboardInterrupt
"""


def flaky(*names: str) -> str:
    return "".join(PROCESS.format(name=name) for name in names)


def run(folder: Path, *parts: str, workers: int = 0, plugin: str = PLUGIN) -> tuple[int, str]:
    (folder / "test_sample.py").write_text(SAMPLE + "".join(parts))
    path = os.pathsep.join([str(REPOSITORY / "tests"), str(REPOSITORY / "tests" / "support"), str(REPOSITORY)])
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        plugin,
        "-p",
        "xdist",
        "-p",
        "no:cacheprovider",
        "-n",
        str(workers),
        str(folder),
    ]
    environment = {**os.environ, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # a third less to import
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout


@pytest.mark.parametrize(("workers", "plugin"), [(0, PLUGIN), (1, "conftest")])
def test_what_passes_alone_is_reported_as_flaky(workers: int, plugin: str, tmp_path: Path) -> None:
    status, said = run(tmp_path, flaky("server"), SCREEN, workers=workers, plugin=plugin)
    assert status == 0, said
    assert "2 flaky" in said
    assert "FLAKY: test_sample.py::test_server" in said
    assert "too early: server" in said
    assert "no screen yet" in said
    assert "failed" not in said.splitlines()[-1]


def test_other_tests_and_lasting_failures_fail(tmp_path: Path) -> None:
    status, said = run(tmp_path, NUMBER, BROKEN, flaky("server"))
    assert status == 1
    assert "2 failed" in said
    assert "1 flaky" in said
    assert (tmp_path / "number").read_text() == "x"
    assert (tmp_path / "never again").read_text() == "xx"


def test_more_flaky_tests_than_a_busy_machine_explains_fail_a_run(tmp_path: Path) -> None:
    status, said = run(tmp_path, flaky("a", "b", "c"))
    assert status == 1
    assert "3 failed" in said
    assert "3 flaky tests are too many" in said


def test_of_many_failures_none_is_run_again(tmp_path: Path) -> None:
    status, said = run(tmp_path, flaky(*"abcdef"))
    assert status == 1
    assert "6 failed" in said
    assert (tmp_path / "a").read_text() == "x"


def test_a_run_that_was_given_up_hides_no_failure(tmp_path: Path) -> None:
    status, said = run(tmp_path, flaky("server"), GIVEN_UP)
    assert status == 2
    assert "1 failed" in said
    assert "too early: server" in said
