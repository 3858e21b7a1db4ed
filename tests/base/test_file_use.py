"""Who uses a file is known as long as that process runs, and not a moment longer."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from localrun.base import file_use
from localrun.base.file_use import FileUse, users_of

pytestmark = pytest.mark.skipif(os.name != "posix", reason="windows refuses to delete what is open by itself")
USES = """
import sys, pathlib
from localrun.base.file_use import FileUse
use = FileUse(pathlib.Path(sys.argv[1]))
print("used", flush=True)
sys.stdin.read()
"""


def using(path: Path) -> "subprocess.Popen[str]":
    """A process that uses the file."""
    command = [sys.executable, "-c", USES, str(path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    assert process.stdout.readline() == "used\n"
    return process


@pytest.fixture(params=["a file", "a folder", "a link"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "model"
    if request.param == "a folder":
        path.mkdir()
    else:
        (tmp_path / "blob").write_bytes(b"GGUF")
        (path.symlink_to if request.param == "a link" else path.hardlink_to)(tmp_path / "blob")
    return path


def test_a_killed_process_uses_nothing(model: Path) -> None:
    assert users_of(model) == ()
    with using(model) as process:
        (user,) = users_of(model)
        if sys.platform == "linux":
            assert user == f"{Path(sys.executable).name} (process {process.pid})"
        process.kill()
        process.wait()
    assert users_of(model) == ()


def test_several_use_one_file_and_one_that_ends_its_use_is_none_of_them(model: Path) -> None:
    own, other = FileUse(model), FileUse(model)
    assert len(users_of(model)) == 1, "it is one process"
    own.end()
    assert users_of(model)
    del other
    assert users_of(model) == ()


def test_a_file_that_another_program_keeps_to_itself_is_not_waited_for(model: Path) -> None:
    fd = os.open(model, os.O_RDONLY)
    file_use.fcntl.flock(fd, file_use.fcntl.LOCK_EX)
    use = FileUse(model)
    os.close(fd)
    assert users_of(model) == ()
    use.end()


def test_where_the_system_does_not_tell_who_it_is_somebody(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_use, "_LOCKS", model / "no such file")
    use = FileUse(model)
    assert users_of(model) == ("another localrun",)
    use.end()


def test_what_is_not_there_or_cannot_be_locked_is_used_by_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FileUse(tmp_path / "gone").end()
    assert users_of(tmp_path / "gone") == ()
    monkeypatch.setattr(file_use, "fcntl", None)
    use = FileUse(tmp_path)
    assert users_of(tmp_path) == ()
    use.end()


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["/usr/bin/python3", "/usr/bin/localrun", "serve", "a secret"], "localrun serve"),
        (["/usr/bin/python3.11", "-m", "localrun", "run", "a secret"], "localrun run"),
        (["/usr/bin/localrun"], "localrun"),
        (["/usr/bin/python3", "own\x1b[2J.py"], "own"),
        (["/usr/bin/python3"], "python3 ("),
        (["/usr/bin/python3", "-P", "-m", "localrun", "serve"], "localrun serve"),
        (["/usr/bin/python3", "-c", "a secret"], "python3 ("),
    ],
)
def test_a_command_is_named_without_what_was_typed_behind_it(command: list[str], says: str) -> None:
    class Process:
        pid = 7

        def cmdline(self) -> list[str]:
            return list(command)

    said = file_use._name(Process())
    assert said.startswith(says)
    assert said.endswith("(process 7)")
    assert not any(hidden in said for hidden in ("secret", "\x1b"))


def test_a_worker_is_named_after_its_parent() -> None:
    class App:
        pid = 7

        def cmdline(self) -> list[str]:
            return ["python", "/bin/localrun", "tui"]

    class Worker:
        def cmdline(self) -> list[str]:
            return ["python", "-m", file_use._COMPUTES]

        def parent(self) -> App:
            return App()

    assert file_use._name(Worker()) == "localrun tui (process 7)"
