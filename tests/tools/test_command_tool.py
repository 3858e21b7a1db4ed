"""Running a command: shown as it runs, without secrets, and ended with all that it started."""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from localrun_testing.tool_room import ToolRoom, is_searching, posix
from localrun_testing.waiting import PATIENCE, until

from localrun.base.request import Json
from localrun.tools.run_tool import run_tool
from localrun.tools.running_call import RunningCall, ToolError, ToolResult
from localrun.tools.tool import Tool


def running(text: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if text in " ".join(process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return [process for process in found if process.pid != os.getpid()]


@posix
def test_a_command_is_shown_as_it_runs(room: ToolRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_canary")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary")
    result = room.call("run_command", command="env; pwd; exit 3")
    assert room.asked[-1].preview == f"in {room.folder}\n$ env; pwd; exit 3"
    assert room.asked[-1].choices == ("once", "no")
    assert "canary" not in result.text
    assert result.is_error
    assert result.text.endswith(f"{room.folder}\n(exit code 3)")
    assert room.call("run_command", command="cat; echo done").text == "done\n(exit code 0)", "stdin has ended"
    for hidden in ("ls \x1b[8m; rm -rf x", "ls\r\x00", "a\u202eb", "  ", "x" * 9000):
        with pytest.raises(ToolError):
            room.permit("run_command", {"command": hidden})


@posix
def test_endless_output_is_ended_and_says_so(room: ToolRoom) -> None:
    result = room.call("run_command", command="yes 0123456789")
    assert "ended because it wrote too much" in result.text
    assert result.cut > 60 << 20
    assert len(result.text) < 60_000


SLEEPS = "import time; time.sleep(97)"
DAEMON = f"""
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        sys.argv.append("CANARY"); os.execv(sys.executable, [sys.executable, "-c", {SLEEPS!r}, "CANARY"])
    os._exit(0)
print("started")
"""


@posix
def test_processes_left_by_a_command_are_ended(room: ToolRoom, tmp_path: Path) -> None:
    canary = f"canary{os.getpid()}"
    script = tmp_path / "daemon.py"
    script.write_text(DAEMON.replace("CANARY", canary))
    result = room.call("run_command", command=f"{sys.executable} {script}")
    assert "started" in result.text
    until(lambda: not running(canary))


@posix
def test_a_command_that_ignores_a_signal_is_ended(room: ToolRoom) -> None:
    canary = f"canary{os.getpid()}stubborn"
    command = f"trap '' TERM INT HUP; {sys.executable} -c '{SLEEPS}' {canary} & trap '' TERM; wait; sleep 97 # {canary}"
    tool, arguments, call = room.permit("run_command", {"command": command})
    assert call is not None
    results: list[ToolResult] = []
    thread = threading.Thread(target=lambda: results.append(run_tool(tool, arguments, call)))
    thread.start()
    until(lambda: len(running(canary)) >= 2)
    call.cancel()
    thread.join(PATIENCE)
    assert results[0].text == "(stopped by the user)"
    until(lambda: not running(canary))


def test_a_call_whose_time_is_up_says_so() -> None:
    def wait(arguments: Json, call: RunningCall) -> ToolResult:
        while not call.wait(PATIENCE):
            call.check()
        call.check()
        return call.result("")

    assert "took longer than 0.05 seconds" in run_tool(Tool("wait", "", {}, wait), {}, RunningCall(0.05)).text


def test_a_tool_that_does_not_stop_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localrun.tools.run_tool.GRACE_SECONDS", 0.05)
    never = threading.Event()

    def hang(arguments: Json, call: RunningCall) -> ToolResult:
        never.wait(PATIENCE)
        return call.result("")

    call = RunningCall()
    call.cancel()
    assert "left behind" in run_tool(Tool("hang", "", {}, hang), {}, call).text
    never.set()


@pytest.fixture(autouse=True)
def _no_child_is_left() -> Iterator[None]:
    yield
    until(lambda: not is_searching())
