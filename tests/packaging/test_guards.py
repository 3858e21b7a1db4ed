"""The guards that tests/conftest.py puts around every test do hold."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from localrun_testing import REPOSITORY

SAMPLE = """
import pytest

def test_oracle():
    pytest.importorskip("no_such_oracle")

@pytest.mark.skipif(True, reason="no native library")
def test_library():
    pass

def test_data():
    pytest.skip("no shared folder: set LOCALRUN_SHARED")

def test_gpu():
    pytest.skip("this machine has no CUDA device")
"""


def outcome(tmp_path: Path, source: str, ci: str) -> dict[str, int]:
    """How many tests of a file passed, failed and were skipped under our conftest."""
    (tmp_path / "test_sample.py").write_text(source)
    path = os.pathsep.join([str(REPOSITORY / "tests"), str(REPOSITORY / "tests" / "support"), str(REPOSITORY)])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider", "-q", str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "CI": ci, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},  # less to import
        capture_output=True,
        text=True,
    )
    return {
        what: int(n) for n, what in re.findall(r"(\d+) (passed|failed|skipped|error)", done.stdout.splitlines()[-1])
    }


def test_in_ci_a_skip_that_hides_a_missing_oracle_is_a_failure(tmp_path: Path) -> None:
    assert outcome(tmp_path, SAMPLE, ci="true") == {"failed": 1, "error": 1, "skipped": 2}
    assert outcome(tmp_path, SAMPLE, ci="") == {"skipped": 4}


def test_in_ci_a_module_that_skips_itself_is_a_failure(tmp_path: Path) -> None:
    source = 'import pytest\npytest.importorskip("no_such_oracle")\n'
    assert outcome(tmp_path, source, ci="true") == {"error": 1}


def test_the_network_ends_at_this_machine() -> None:
    with pytest.raises(OSError, match="tests may not connect"):
        socket.create_connection(("192.0.2.1", 80), timeout=1)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        socket.create_connection(server.getsockname(), timeout=1).close()


def test_every_test_has_a_home_of_its_own(home: Path) -> None:
    assert os.environ["LOCALRUN_HOME"] == str(home)
    assert not home.exists()
    assert os.environ["HF_HUB_OFFLINE"] == "1"


def test_what_comes_after_a_test_reaches_no_home_but_one_that_goes_with_the_run(
    home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert os.environ["LOCALRUN_HOME"] == str(home)
    monkeypatch.undo()
    for name in ("HOME", "HF_HOME", "LOCALRUN_HOME"):
        assert Path(os.environ[name]).is_relative_to(tmp_path_factory.getbasetemp())
