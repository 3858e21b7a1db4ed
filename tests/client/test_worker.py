"""An engine in a process of its own: what it says arrives, and nothing that happens to it happens to us."""

import gc
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from localrun_testing.waiting import PATIENCE, until

from localrun.base.errors import (
    DeviceLostError,
    DoesNotFitError,
    EngineDiedError,
    EngineError,
    LocalrunError,
    ModelFileError,
    NotFoundError,
    PromptTooLongError,
    UsageError,
)
from localrun.base.events import Completion, Done, Event, Prefill, Token
from localrun.base.request import GATHER_MS, LoadOptions, ProgressCallback, Request
from localrun.client.rpc import answer as channel_answer
from localrun.client.rpc import channel
from localrun.client.rpc.call_server import ALIVE_SECONDS
from localrun.client.worker import main as worker_process
from localrun.client.worker import process as process_module
from localrun.client.worker import process_stats, watchdog
from localrun.client.worker.client import REPLACED, WITHOUT_GPU, WorkerClient

pytestmark = pytest.mark.process

FAKE = "localrun_testing.fake_worker"
DEADLINE = 30.0  # seconds; of what takes one where nobody else computes, and for ever or a minute where it fails
posix = pytest.mark.skipif(sys.platform == "win32", reason="no such signals on Windows")


def open_fake(name: str = "fake", progress: ProgressCallback = lambda done, total: None) -> WorkerClient:
    return WorkerClient(LoadOptions(Path("model.gguf"), name=name), progress, FAKE)


@pytest.fixture(scope="module")
def client() -> Iterator[WorkerClient]:
    with open_fake() as client:
        yield client


@pytest.fixture
def mortal() -> Iterator[WorkerClient]:
    with open_fake() as client:
        yield client


def ask(prompt: str) -> Request:
    return Request(prompt=prompt)


def pid_of(client: WorkerClient) -> int:
    assert client._worker is not None
    assert client._worker.pid is not None
    return client._worker.pid


def finish(events: Iterator[Event]) -> Completion:
    *_, last = events
    assert isinstance(last, Done)
    return last.completion


def said_before_the_end(events: Iterator[Event]) -> tuple[str, EngineDiedError | None]:
    """What was said, and the death that ended it."""
    text = ""
    try:
        for event in events:
            text += event.text if isinstance(event, Token) else ""
    except EngineDiedError as error:
        return text, error
    return text, None


def counted(n: int) -> str:
    return "".join(f"{i} " for i in range(n))


def is_running(pid: int) -> bool:
    with suppress(psutil.Error):
        return psutil.Process(pid).status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_STOPPED)
    return False


def test_events_come_whole_and_in_order(client: WorkerClient) -> None:
    first, *tokens, last = client.generate(ask("count 2000"))
    assert first == Prefill(2, 0, 2)
    assert tokens == [Token(i, f"{i} ", "answer") for i in range(2000)]
    assert isinstance(last, Done)
    assert last.completion.text == counted(2000)
    assert last.prompt_ids == (1, 2)
    assert client.info.name == "fake"
    view = client.view()
    assert view is not None
    assert view.block_tokens == 64


def test_errors_of_a_request_are_its_own(client: WorkerClient) -> None:
    pid = pid_of(client)
    with pytest.raises(PromptTooLongError, match="too long"):
        finish(client.generate(ask("long")))
    with pytest.raises(DoesNotFitError, match="any more"):
        finish(client.generate(ask("unfit")))
    with pytest.raises(EngineError, match="ValueError: what was not thought of") as caught:
        finish(client.generate(ask("bug")))
    assert type(caught.value) is EngineError
    with pytest.raises(UsageError, match="cannot be sent"):
        finish(client.generate(Request(messages=({"role": "user", "content": object()},))))
    assert finish(client.generate(ask("count 3"))).text == counted(3)
    assert pid_of(client) == pid


def test_cancel_keeps_what_was_said(client: WorkerClient) -> None:
    said = ""
    generation = client.generate(ask("count 1000 0.01"))
    for event in generation:
        if isinstance(event, Token):
            said += event.text
            generation.cancel()
        if isinstance(event, Done):
            assert event.completion.stop_reason == "cancelled"
            assert event.completion.text == said != ""
    generation.cancel()  # it is over
    assert finish(client.generate(ask("count 3"))).stop_reason == "stop"


def test_a_request_is_raised_before_and_after_it_began(client: WorkerClient) -> None:
    early = client.generate(ask("raised"))
    early.raise_priority()
    assert finish(early).text == counted(1)
    late = client.generate(ask("raised"))
    assert isinstance(next(late), Prefill)
    late.raise_priority()
    assert finish(late).text == counted(1)


def test_leaving_the_stream_cancels_the_rest(client: WorkerClient) -> None:
    for event in client.generate(ask("count 10000 0.05")):
        if isinstance(event, Token):
            break
    started = time.monotonic()
    assert finish(client.generate(ask("count 3"))).text == counted(3)
    assert time.monotonic() - started < 100  # not the 500 s of the one before


def test_closing_it_sets_memory_free(mortal: WorkerClient) -> None:
    process = psutil.Process(pid_of(mortal))
    assert 1 << 20 < mortal.held_bytes() <= process.memory_info().rss
    process.kill()
    until(lambda: mortal.held_bytes() == 0)
    mortal.close()
    assert mortal.held_bytes() == 0


def test_a_large_request_travels(client: WorkerClient) -> None:
    request = Request(prompt="count 3", known_ids=tuple(range(500_000)))
    assert finish(client.generate(request)).text == counted(3)


def test_what_libraries_print_goes_nowhere(client: WorkerClient, capfd: pytest.CaptureFixture[str]) -> None:
    assert finish(client.generate(ask("chatter 5"))).text == counted(5)
    assert capfd.readouterr() == ("", "")


@posix
def test_ctrl_c_is_for_us_alone(client: WorkerClient) -> None:
    assert os.getpgid(pid_of(client)) != os.getpgid(0)
    os.kill(pid_of(client), signal.SIGINT)
    assert finish(client.generate(ask("count 3"))).text == counted(3)


def test_secrets_stay_here(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_TOKEN", "OPENAI_API_KEY", "DB_PASSWORD", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "canary")
    monkeypatch.setenv("LOCALRUN_THREADS", "1")
    with open_fake() as client:
        environment = psutil.Process(pid_of(client)).environ()
    assert "canary" not in environment.values()
    assert environment["LOCALRUN_THREADS"] == "1"


@pytest.mark.skipif(sys.platform != "linux", reason="neither macOS nor Windows has an OOM score")
def test_where_memory_runs_out_the_worker_goes_first(client: WorkerClient) -> None:
    assert Path(f"/proc/{pid_of(client)}/oom_score_adj").read_text().strip() == "500"


@posix
def test_a_foreign_module_in_the_current_folder_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('taken over')")
    monkeypatch.chdir(tmp_path)
    with open_fake() as client:
        assert finish(client.generate(ask("count 3"))).text == counted(3)


@pytest.mark.parametrize(
    ("name", "kind", "says"),
    [
        ("huge", DoesNotFitError, "it does not fit"),
        ("broken", ModelFileError, "model.gguf: not a model"),
        ("bug", EngineError, "ValueError: what was not thought of"),
        ("no memory", DoesNotFitError, "memory ran out"),
        ("no memory in torch", DoesNotFitError, "memory ran out"),
        ("dies", EngineDiedError, "exit code 3; it last printed: the last words"),
    ],
)
def test_a_load_that_fails_says_why_and_leaves_nothing(name: str, kind: type[LocalrunError], says: str) -> None:
    before = set(psutil.Process().children())
    with pytest.raises(kind, match=says) as caught:
        open_fake(name)
    assert type(caught.value) is kind
    assert set(psutil.Process().children()) <= before


def test_a_process_that_cannot_be_started_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(EngineDiedError, match="cannot be started"):
        open_fake()


@pytest.mark.parametrize("module", ["this", "localrun_testing.no_such_module"])
def test_a_process_that_speaks_another_language_is_an_error(module: str) -> None:
    with pytest.raises(EngineDiedError, match=r"unreadable|No module"):
        WorkerClient(LoadOptions(Path("x")), module=module)


def test_progress_may_give_the_load_up() -> None:
    seen: list[tuple[int, int]] = []

    class EnoughError(Exception):
        pass

    def progress(done: int, total: int) -> None:
        seen.append((done, total))
        if done >= 3:
            raise EnoughError

    before = set(psutil.Process().children())
    started = time.monotonic()
    with pytest.raises(EnoughError):
        open_fake("slow", progress)
    assert time.monotonic() - started < DEADLINE
    assert seen[-1][0] >= 3
    assert set(psutil.Process().children()) <= before


@posix
@pytest.mark.parametrize(
    ("what", "says"),
    [("crash", "crashed .SIGSEGV"), ("abort", "crashed .SIGABRT"), ("leave", "exit code 3; it last printed: the last")],
)
def test_a_crash_keeps_the_half_answer_and_the_next_one_works(mortal: WorkerClient, what: str, says: str) -> None:
    pid = pid_of(mortal)
    said, end = said_before_the_end(mortal.generate(ask(f"{what} 5")))
    assert said == counted(5)
    assert end is not None
    assert says.replace(".", "(") in end.message
    assert "\x1b" not in end.message
    assert end.hint
    assert mortal.view() is None
    assert finish(mortal.generate(ask("count 3"))).text == counted(3)
    assert pid_of(mortal) != pid


class Listening(threading.Thread):
    """Hears an answer on a thread of its own."""

    def __init__(self, events: Iterator[Event]) -> None:
        super().__init__()
        self.events, self.begun = events, threading.Event()
        self.heard: list[tuple[str, EngineDiedError | None]] = []
        self.start()

    def run(self) -> None:
        self.heard.append(said_before_the_end(self._noted()))

    def _noted(self) -> Iterator[Event]:
        for event in self.events:
            self.begun.set()
            yield event


def hurt_at_random_points(client: WorkerClient, rng: random.Random, signals: list[int]) -> None:
    """Stream on a thread of its own, hurt the worker, and see that the answer ends and the next one comes. Most have
    begun by then, and none is over soon."""
    n_deaths = 0
    for number in signals:
        face = Listening(client.generate(ask("count 50 0.05")))
        if rng.random() < 0.8:
            assert face.begun.wait(DEADLINE)
        time.sleep(rng.uniform(0, 0.3))
        pid = pid_of(client)
        os.kill(pid, number)
        client.view()  # must not wait for ever either
        face.join(DEADLINE)
        assert not face.is_alive()
        said, end = face.heard[0]
        if end is None:  # it had not begun, or was over: then nothing is missing
            assert said == counted(50)
        else:
            n_deaths += 1
            assert counted(50).startswith(said)
            assert ("stopped" if number == signal.SIGSTOP else "killed") in end.message
        assert finish(client.generate(ask("count 3"))).text == counted(3)
        assert not psutil.pid_exists(pid)
    assert n_deaths > len(signals) / 2


@posix
def test_killed_and_stopped_at_random_points(mortal: WorkerClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "STOPPED_SECONDS", 0.5)
    points = [signal.SIGKILL, signal.SIGSTOP, signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP]
    hurt_at_random_points(mortal, random.Random(1), [int(point) for point in points])


@posix
@pytest.mark.slow
def test_killed_and_stopped_at_a_hundred_random_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "STOPPED_SECONDS", 0.5)
    rng = random.Random(2)
    points = [int(signal.SIGKILL)] * 75 + [int(signal.SIGSTOP)] * 25
    rng.shuffle(points)
    with open_fake() as client:
        hurt_at_random_points(client, rng, points)


def test_a_worker_whose_gpu_failed_is_started_again_and_after_the_second_time_on_the_processor(
    mortal: WorkerClient,
) -> None:
    pids = [pid_of(mortal)]
    for _ in range(2):
        text, error = said_before_the_end(mortal.generate(ask("lose_gpu 2")))
        assert text == "0 1 "
        assert isinstance(error, DeviceLostError)
        assert "unspecified launch failure" in str(error)
        until(lambda: not psutil.pid_exists(pids[-1]))
        assert finish(mortal.generate(ask("count 2 0"))).text == "0 1 "
        pids.append(pid_of(mortal))
    assert len({*pids}) == 3
    assert (mortal.info.backend, mortal.info.notes) == ("cpu", (WITHOUT_GPU,))
    assert finish(mortal.generate(ask("lose_gpu 2"))).text == "0 1 "
    assert pid_of(mortal) == pids[-1]


@posix
def test_a_stopped_worker_is_noticed_within_a_few_seconds(mortal: WorkerClient) -> None:
    events = mortal.generate(ask("count 1000 0.01"))
    next(events)
    os.kill(pid_of(mortal), signal.SIGSTOP)
    started = time.monotonic()
    assert said_before_the_end(events)[1] is not None
    assert time.monotonic() - started < DEADLINE


@posix
def test_a_worker_that_is_hurt_while_idle_is_replaced_in_silence(mortal: WorkerClient) -> None:
    for number in (signal.SIGKILL, signal.SIGSTOP):
        pid = pid_of(mortal)
        os.kill(pid, number)
        until(lambda pid=pid: not is_running(pid))  # type: ignore[misc]
        assert mortal.view() is None
        assert finish(mortal.generate(ask("count 3"))).text == counted(3)


def test_a_stream_wakes_few_and_asks_the_system_nothing(client: WorkerClient, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(process_stats, "cpu_seconds", asked.append)
    monkeypatch.setattr(channel, "TICK_SECONDS", PATIENCE)  # no pause between two words counts as silence
    assert client._worker is not None
    heard, began = client._worker._n_heard, time.monotonic()
    assert finish(client.generate(ask("count 100 0.01"))).text == counted(100)
    took = time.monotonic() - began
    expected = took / (GATHER_MS / 1000) + took / ALIVE_SECONDS
    assert client._worker._n_heard - heard <= max(30, 2 * expected), "words travel together: there are 100"
    assert not asked, "while it speaks it lives"


def test_words_arrive_soon_without_gathering(client: WorkerClient) -> None:
    def n_messages(gather_ms: int) -> int:
        assert client._worker is not None
        before = client._worker._n_heard
        finish(client.generate(replace(ask("count 60 0.02"), gather_ms=gather_ms)))
        return client._worker._n_heard - before

    until(lambda: n_messages(5) > 2 * n_messages(GATHER_MS), lambda: "they travel together")


def test_neither_the_beginning_nor_the_end_of_an_answer_waits_for_more(client: WorkerClient) -> None:
    heard: list[Event] = []
    request = replace(ask("count 60 0.001"), gather_ms=1000 * 3600)
    threading.Thread(target=lambda: heard.extend(client.generate(request)), daemon=True).start()
    until(lambda: any(isinstance(event, Done) for event in heard), lambda: f"{len(heard)} events")


def test_the_first_words_do_not_wait_for_more(client: WorkerClient) -> None:
    def wait() -> float:
        began = time.monotonic()
        events = client.generate(ask("count 3 0.04"))
        assert isinstance(next(event for event in events if isinstance(event, Token)), Token)
        waited = time.monotonic() - began
        finish(events)
        return waited

    until(lambda: wait() < GATHER_MS / 1000, lambda: "they wait for more")


@posix
@pytest.mark.parametrize("what", ["hold", "toil"])
def test_a_long_native_call_is_no_hang(mortal: WorkerClient, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "STOPPED_SECONDS", 0.5)
    assert finish(mortal.generate(ask(f"{what} 3"))).text == counted(3)


@posix
def test_a_worker_that_neither_speaks_nor_computes_is_ended(
    mortal: WorkerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "STUCK_SECONDS", 1.0)
    said, end = said_before_the_end(mortal.generate(ask("fall_asleep 3")))
    assert said == counted(3)
    assert end is not None
    assert "did nothing" in end.message


def test_an_engine_that_hears_no_cancel_is_ended(mortal: WorkerClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_answer, "CANCEL_SECONDS", 1.0)
    events = mortal.generate(ask("ignore 3"))
    said = "".join(e.text for e in (next(events) for _ in range(4)) if isinstance(e, Token))
    events.cancel()
    _, end = said_before_the_end(events)
    assert said == counted(3)
    assert end is not None
    assert "did not stop when it was asked" in end.message


def test_a_model_whose_file_was_replaced_when_its_worker_dies_is_said_to_be_another_one(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"one")
    with WorkerClient(LoadOptions(path, name="a file"), module=FAKE) as client:
        for data, replaced in ((None, False), (b"another", True), (None, False)):
            if data is not None:
                path.write_bytes(data)
            assert client._worker is not None
            client._worker.kill("for the test")
            completion = finish(client.generate(ask("count 2 0")))
            assert (REPLACED in completion.notes, REPLACED in completion.cache.cache_note) == (replaced, replaced)


def test_a_model_that_is_deleted_while_its_worker_dies_is_said_to_be_gone(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.touch()
    with WorkerClient(LoadOptions(path, name="a file"), module=FAKE) as client:
        assert finish(client.generate(ask("count 2 0"))).text == "0 1 "
        path.unlink()
        assert client._worker is not None
        client._worker.kill("for the test")
        with pytest.raises(NotFoundError, match="a file is not on the disk any more"):
            finish(client.generate(ask("count 2 0")))
    with pytest.raises(NotFoundError, match="no such file"):
        WorkerClient(LoadOptions(path, name="a file"), module=FAKE)


def test_cancel_while_the_model_is_loaded_again(tmp_path: Path) -> None:
    loads: list[int] = []
    options = LoadOptions(tmp_path / "mark", name="slow again")
    with WorkerClient(options, lambda done, total: loads.append(done), FAKE) as client:
        assert client._worker is not None
        client._worker.kill("for the test")
        loads.clear()
        result: list[Completion] = []
        generation = client.generate(ask("count 3"))
        face = threading.Thread(target=lambda: result.append(finish(generation)))
        face.start()
        until(lambda: len(loads) > 2)
        pid = pid_of(client)
        generation.cancel()
        face.join(DEADLINE)
        assert result[0].stop_reason == "cancelled"
        assert client.view() is None
        assert is_running(pid)
        events = client.generate(ask("count 3"))
        n_loads = len(loads)

        def close() -> None:
            until(lambda: len(loads) > n_loads)
            client.close()

        closer = threading.Thread(target=close)
        closer.start()
        with pytest.raises(EngineDiedError, match="closed while it was loading"):
            next(events)
        closer.join()
        assert not psutil.pid_exists(pid)
        with pytest.raises(EngineError, match="is closed"):
            next(client.generate(ask("count 3")))


def test_close_is_quick_and_final(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_module, "CLOSE_SECONDS", 0.5)
    for name in ("fake", "does not close"):
        client = open_fake(name)
        pid = pid_of(client)
        events = client.generate(ask("count 1000 0.01"))
        next(events)
        started = time.monotonic()
        client.close()
        client.close()
        assert time.monotonic() - started < DEADLINE
        assert not psutil.pid_exists(pid)
        said_before_the_end(events)


def test_two_at_once_are_two(client: WorkerClient, mortal: WorkerClient) -> None:
    one, other = client.generate(ask("count 50 0.001")), mortal.generate(ask("count 60 0.001"))
    results: list[str] = []
    threads = [threading.Thread(target=lambda e=e: results.append(finish(e).text)) for e in (one, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE)
    assert sorted(results) == [counted(50), counted(60)]
    mortal.close()
    assert finish(client.generate(ask("count 3"))).text == counted(3)


def test_two_streams_of_one_client(client: WorkerClient) -> None:
    results: list[str] = []
    threads = [
        threading.Thread(target=lambda n=n: results.append(finish(client.generate(ask(f"count {n} 0.001"))).text))
        for n in (30, 40)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE)
    assert sorted(results) == [counted(30), counted(40)]


def restart(client: WorkerClient, times: int) -> None:
    for _ in range(times):
        assert client._worker is not None
        client._worker.kill("for the test")
        assert finish(client.generate(ask("count 3"))).text == counted(3)


def held_by_us() -> tuple[int, int, int]:
    gc.collect()
    us = psutil.Process()
    return us.num_fds(), threading.active_count(), len(us.children())


@posix
def test_nothing_is_left_of_a_restart(mortal: WorkerClient) -> None:
    restart(mortal, 1)
    before = held_by_us()
    restart(mortal, 5)
    until(lambda: held_by_us() <= before)


@posix
@pytest.mark.slow
def test_nothing_is_left_of_a_hundred_restarts(mortal: WorkerClient) -> None:
    restart(mortal, 1)
    before = held_by_us()
    restart(mortal, 100)
    until(lambda: held_by_us() <= before)


def test_busy_threads_of_python_hold_a_step_up_but_shortly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step comes back to Python several times: at 5 ms each, one busy thread made it three times as long."""
    seen: list[float] = []
    monkeypatch.setattr(worker_process, "serve", lambda _open: seen.append(sys.getswitchinterval()))
    before = sys.getswitchinterval()
    try:
        worker_process.main()
    finally:
        sys.setswitchinterval(before)
    assert seen[0] <= 0.001
