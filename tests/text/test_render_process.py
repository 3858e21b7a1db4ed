"""The process that renders: it may die at any moment, and nobody but its current caller notices."""

import itertools
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress

import psutil
import pytest
from localrun_testing.waiting import until

from localrun.base.errors import EngineError, ModelFileError
from localrun.text import render_process
from localrun.text.render_process import RENDERER, RenderProcess
from localrun.text.template import ChatTemplate

HI = [{"role": "user", "content": "hi"}]
ECHO = ChatTemplate("{{ messages[0].content }}")
ENDLESS = ChatTemplate("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}")
posix = pytest.mark.skipif(os.name == "nt", reason="windows has no signals")


@pytest.fixture(autouse=True)
def own_process() -> Iterator[None]:
    RENDERER.stop()
    yield
    RENDERER.stop()


def worker() -> psutil.Process:
    assert RENDERER._process is not None
    return psutil.Process(RENDERER._process.pid)


def test_one_process_serves_all_calls() -> None:
    ECHO.render(HI)
    first = worker().pid
    ChatTemplate("x").render(HI)
    assert worker().pid == first


def test_after_a_death_between_calls_another_one_answers() -> None:
    ECHO.render(HI)
    worker().kill()
    assert ECHO.render(HI) == "hi"
    ECHO.render(HI)
    found = worker()
    found.kill()
    until(lambda: found.status() == psutil.STATUS_ZOMBIE)
    assert ECHO.render(HI) == "hi"


def test_a_template_that_kills_every_process_is_to_blame() -> None:
    done = threading.Event()

    def kill() -> None:
        while not done.wait(0.1):
            for child in psutil.Process().children():
                with suppress(psutil.Error):  # it has ended meanwhile
                    child.kill()

    ECHO.render(HI)
    killer = threading.Thread(target=kill)
    killer.start()
    try:
        with pytest.raises((ModelFileError, EngineError), match=r"brought the process down|did not start"):
            ENDLESS.render(HI)
    finally:
        done.set()
        killer.join()
    assert ECHO.render(HI) == "hi"


@posix
def test_a_frozen_process_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    ECHO.render(HI)
    worker().suspend()
    with monkeypatch.context() as patch:
        patch.setattr(render_process, "LONGEST_SECONDS", 0.3)
        with pytest.raises(ModelFileError, match="runs for more than"):
            ECHO.render(HI)
    assert ECHO.render(HI) == "hi"


def test_a_busy_machine_makes_no_template_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time counts that the process computes, not that it waits for a processor."""
    slow = ChatTemplate("{% for i in range(99999) %}{{ '' }}{% endfor %}hi")
    slow.render(HI)
    seconds = itertools.count()
    monkeypatch.setattr(render_process, "RENDER_SECONDS", 1e-9)
    monkeypatch.setattr(render_process, "_usage", lambda pid: (0, 0.0))
    assert slow.render(HI) == "hi"
    monkeypatch.setattr(render_process, "_usage", lambda pid: (0, float(next(seconds))))
    with pytest.raises(ModelFileError, match="runs for more than"):
        ENDLESS.render(HI)


def test_memory_is_watched_from_outside_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system does not hold a process to its bound."""
    ECHO.render(HI)
    monkeypatch.setattr(render_process, "_usage", lambda pid: (1 << 40, 0.0))
    with pytest.raises(ModelFileError, match="too much memory"):
        ENDLESS.render(HI)


def test_an_interrupted_call_leaves_no_answer_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    ECHO.render(HI)

    def interrupt(pid: int) -> tuple[int, float]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(render_process, "_usage", interrupt)
        with pytest.raises(KeyboardInterrupt):
            ENDLESS.render(HI)
    assert ECHO.render(HI) == "hi"


def test_threads_get_their_own_answers() -> None:
    answers: dict[int, str] = {}

    def ask(n: int) -> None:
        answers[n] = ECHO.render([{"role": "user", "content": f"{n}"}])

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {n: str(n) for n in range(20)}


@posix
def test_a_forked_process_starts_its_own() -> None:
    ECHO.render(HI)
    parent_worker = worker().pid
    pid = os.fork()
    if pid == 0:
        good = ECHO.render(HI) == "hi" and worker().pid != parent_worker
        RENDERER.stop()
        os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert (ECHO.render(HI), worker().pid) == ("hi", parent_worker)


def test_it_knows_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_canary")
    ECHO.render(HI)
    assert "hf_canary" not in str(worker().environ())
    assert "hf_canary" not in str(worker().cmdline())


def test_warming_up_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    ECHO.warm_up()
    first = worker().pid
    ECHO.warm_up()
    assert ECHO.render(HI) == "hi"
    assert worker().pid == first


def test_a_process_that_cannot_start_is_no_fault_of_the_template(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    with pytest.raises(EngineError, match="cannot be started"):
        RenderProcess().call("inspect", source="x")
    monkeypatch.undo()
    monkeypatch.setattr(render_process, "_BOOT", "raise SystemExit(1)")
    with pytest.raises(EngineError, match="did not start"):
        RenderProcess().call("inspect", source="x")


@posix
@pytest.mark.slow
def test_it_does_not_outlive_a_parent_that_was_killed() -> None:
    script = (
        "import threading, time\n"
        "from localrun.text import render_process\n"
        "from localrun.text.template import ChatTemplate\n"
        "render_process.RENDER_SECONDS = 60\n"
        f"template = ChatTemplate({ENDLESS.source!r})\n"
        "threading.Thread(target=template.render, args=([],), daemon=True).start()\n"
        "while not render_process.RENDERER._is_ready: time.sleep(0.01)\n"
        "print(render_process.RENDERER._process.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=environment)
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    assert child.is_running()
    psutil.wait_procs([child], timeout=60)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
