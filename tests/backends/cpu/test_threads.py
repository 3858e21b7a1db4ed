"""The native thread pool and native memory: every task once, on any number of threads, and no way to hang."""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from localrun_testing.instruction_sets import SOURCES, SUPPORT, compiled, library_in_use, tool
from localrun_testing.native import BAD_ARGUMENT, BUSY, OK, TASK, NativeLayer, Rows, Shape, native_library
from localrun_testing.waiting import PATIENCE, until

from localrun.backends.cpu.bindings import calls_of, start_threads
from localrun.base.errors import EngineError


@pytest.fixture
def library() -> ctypes.CDLL:
    return native_library()


@contextmanager
def pool(library: ctypes.CDLL, n: int) -> Iterator[int]:
    threads = library.lr_threads_create(n)
    assert threads
    yield threads
    library.lr_threads_destroy(threads)


@pytest.mark.parametrize("n_threads", [1, 2, 3, 8])
@pytest.mark.parametrize("n_tasks", [0, 1, 7, 1000])
def test_every_task_runs_once(library: ctypes.CDLL, n_threads: int, n_tasks: int) -> None:
    counts = [0] * n_tasks
    where: set[int] = set()

    def task(_data: int, index: int) -> None:
        counts[index] += 1
        where.add(threading.get_native_id())

    with pool(library, n_threads) as threads:
        assert library.lr_parallel(threads, n_tasks, TASK(task), None) == OK
    assert counts == [1] * n_tasks
    assert len(where) <= n_threads


def test_tasks_run_side_by_side(library: ctypes.CDLL) -> None:
    """Each waits for the others, so one thread alone would never come to an end."""
    together = threading.Barrier(4, timeout=PATIENCE)
    with pool(library, 4) as threads:
        assert library.lr_parallel(threads, 4, TASK(lambda _data, _index: together.wait() and None), None) == OK


def test_many_short_jobs_one_after_another(library: ctypes.CDLL) -> None:
    """More threads than cores, jobs shorter than a wake-up: a lost signal would hang here."""
    shape = Shape(n_heads=1, n_kv_heads=1, head_dim=8)
    for n_threads in (2, 3, 8):
        layer = NativeLayer(library, shape, 1, n_threads)
        q, k, v = torch.randn(3, 1, 8)
        rows = Rows(0, q, k, v, [0])
        step, _keep = layer.step(rows)
        for _ in range(2000 if n_threads < 8 else 300):
            assert library.lr_program_run(layer.executor, ctypes.byref(step)) == OK
        layer.close()


@pytest.fixture(scope="module")
def driver() -> Path:
    return build_driver()


def build_driver(*flags: str) -> Path:
    """tests/support/threads_driver.cpp, which contains the threads of the library."""
    if sys.platform == "win32":
        pytest.skip("the driver holds threads by signals: windows has none")
    command = [tool("c++"), "-std=c++17", "-O1", "-pthread", *flags, f"-I{SOURCES}"]
    return compiled(command, SUPPORT / "threads_driver.cpp", SOURCES / "runtime" / "parallel_for.cpp")


def drive(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-4000:]


def test_an_idle_thread_is_not_waited_for(driver: Path) -> None:
    """One is held fast, as on a core that others keep busy, while hundreds of jobs run to their end."""
    drive(driver, "held")


def test_a_slow_thread_gets_one_task_while_the_others_do_the_rest(driver: Path) -> None:
    """With equal shares the others would wait for its share, here for ever."""
    drive(driver, "slow")


def test_threads_stay_out_of_phases_that_have_no_task_for_them(driver: Path) -> None:
    """64 threads would quarrel over the entrance for longer than twelve tasks take."""
    drive(driver, "few")


def test_phases_follow_one_another_and_every_task_runs_once(driver: Path) -> None:
    drive(driver, "stress", "400")


@pytest.mark.skipif(sys.platform != "linux", reason="only linux keeps a process to one core: not windows, not macos")
def test_phases_of_more_threads_than_cores(driver: Path) -> None:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})  # of this thread and what it starts
    try:
        drive(driver, "stress", "150")
    finally:
        os.sched_setaffinity(0, before)


@pytest.mark.slow
@pytest.mark.parametrize("what", [("held",), ("slow",), ("few",), ("stress", "300")])
def test_threads_race_for_nothing(what: tuple[str, ...]) -> None:
    built = build_driver("-fsanitize=thread", "-g1")
    drive(*(["setarch", "-R"] if shutil.which("setarch") else []), built, *what)


def test_jobs_of_several_callers_take_turns(library: ctypes.CDLL) -> None:
    totals = [0] * 4

    def caller(number: int, threads: int) -> None:
        def task(_data: int, index: int) -> None:
            totals[number] += index

        for _ in range(30):
            assert library.lr_parallel(threads, 20, TASK(task), None) == OK

    with pool(library, 3) as threads:
        callers = [threading.Thread(target=caller, args=(n, threads)) for n in range(4)]
        for thread in callers:
            thread.start()
        for thread in callers:
            thread.join(PATIENCE)
    assert totals == [30 * 190] * 4


def test_a_pool_without_work_sleeps(library: ctypes.CDLL) -> None:
    """Threads wait awake for milliseconds, for the next step of an answer; then they take no time from anybody."""
    with pool(library, 4) as threads:
        assert library.lr_parallel(threads, 4, TASK(lambda _data, _index: None), None) == OK

        def slept() -> bool:
            """Whether a fifth of a second took hardly any time of a core."""
            before = time.process_time()
            time.sleep(0.2)
            return time.process_time() - before < 0.02

        until(slept, lambda: "the threads never went to sleep")


def test_a_job_inside_a_job_is_refused(library: ctypes.CDLL) -> None:
    answers = []
    with pool(library, 2) as threads:
        nothing = TASK(lambda _data, _index: None)
        task = TASK(lambda _data, _index: answers.append(library.lr_parallel(threads, 1, nothing, None)))
        assert library.lr_parallel(threads, 3, task, None) == OK
        assert answers == [BUSY] * 3
        assert library.lr_parallel(threads, 1, nothing, None) == OK


def test_bad_arguments_are_refused(library: ctypes.CDLL) -> None:
    assert not library.lr_threads_create(0)
    assert not library.lr_threads_create(-1)
    assert not library.lr_threads_create(100_000)
    library.lr_threads_destroy(None)
    with pool(library, 1) as threads:
        assert library.lr_parallel(threads, -1, TASK(lambda _data, _index: None), None) == BAD_ARGUMENT
        assert library.lr_parallel(None, 1, TASK(lambda _data, _index: None), None) == BAD_ARGUMENT
        assert library.lr_parallel(threads, 1, TASK(0), None) == BAD_ARGUMENT


def test_pools_come_and_go(library: ctypes.CDLL) -> None:
    def n_threads() -> int:
        return len(os.listdir("/proc/self/task")) if sys.platform == "linux" else threading.active_count()

    before = n_threads()
    for n in (1, 2, 8, 3) * 20:
        with pool(library, n):
            pass
    until(lambda: n_threads() <= before)  # the system lists a thread a moment longer than it is waited for


@pytest.mark.skipif(sys.platform != "linux", reason="only linux keeps threads to processors: not windows, not macos")
def test_threads_keep_to_the_processors_near_their_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """With three quarters of the processors near the first part of memory, so are three of four threads."""
    calls = calls_of(library_in_use())
    usable = sorted(os.sched_getaffinity(0))
    near, far = usable[:1], usable[-1:]
    monkeypatch.setattr("localrun.backends.cpu.bindings.memory_nodes", lambda: [near * 3, far])
    others = set(os.listdir("/proc/self/task"))
    threads = start_threads(calls, 4)
    workers = sorted(int(number) for number in set(os.listdir("/proc/self/task")) - others)
    assert [os.sched_getaffinity(worker) for worker in workers] == [set(near), set(near), set(far)]
    assert os.sched_getaffinity(0) == set(usable)
    calls.threads_destroy(threads)
    for refused in ((0, near), (4, near), (1, [])):
        with pytest.raises(EngineError, match="lr_threads_keep_to"), pool(calls.c, 4) as again:
            calls.threads_keep_to(again, *refused)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="windows has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_is_refused_and_does_not_hang(library: ctypes.CDLL) -> None:
    with pool(library, 3) as threads:
        child = os.fork()
        if not child:
            signal.alarm(20)
            answer = library.lr_parallel(threads, 4, TASK(0x1000), None)
            library.lr_threads_destroy(threads)
            os._exit(answer)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == BUSY
        assert library.lr_parallel(threads, 4, TASK(lambda _data, _index: None), None) == OK


def test_a_process_ends_with_a_pool_alive(library: ctypes.CDLL) -> None:
    """At exit nobody destroys it."""
    code = (
        "import ctypes, sys; library = ctypes.CDLL(sys.argv[1]); library.lr_threads_create.restype = ctypes.c_void_p\n"
        "assert library.lr_threads_create(4); print('made')"
    )
    done = subprocess.run([sys.executable, "-c", code, library._name], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.strip()) == (0, "made")


@pytest.mark.parametrize("n_threads", [1, 3])
def test_subnormals_are_kept_whatever_the_caller_does(library: ctypes.CDLL, n_threads: int) -> None:
    """Flush-to-zero, set before the pool is made and while it is used, changes nothing and is still set afterwards."""
    if not torch.set_flush_denormal(True):
        pytest.skip("no instruction set with flush-to-zero on this machine")
    try:
        shape = Shape(n_heads=2, n_kv_heads=2, head_dim=16, codec="f32", rope=True)
        layer = NativeLayer(library, shape, 1, n_threads)
        tiny = torch.full((40, 32), 1, dtype=torch.int32).view(torch.float32)  # the smallest subnormal
        cos_sin = (torch.ones(40, 8), torch.zeros(40, 8))
        layer.run(Rows(0, tiny, tiny, tiny, [0]), cos_sin=cos_sin)
        keys, _ = layer.export(0, 0, 40)
        assert torch.equal(keys.view(torch.int32), torch.ones_like(keys, dtype=torch.int32))
        assert not bool((torch.full((8,), 1e-39) * 0.5).view(torch.int32).any())  # the caller still flushes
        layer.close()
    finally:
        torch.set_flush_denormal(False)


def test_every_thread_of_a_pool_keeps_subnormals(library: ctypes.CDLL) -> None:
    """Threads inherit flush-to-zero from the one that makes them."""
    tiny = float.fromhex("0x1p-1040")
    if not torch.set_flush_denormal(True):
        pytest.skip("no instruction set with flush-to-zero on this machine")
    try:
        together = threading.Barrier(3, timeout=PATIENCE)
        products: list[float] = []

        def task(_data: int, _index: int) -> None:
            together.wait()  # each of the three threads has one task
            products.append(tiny * 2.0)

        with pool(library, 3) as threads:
            assert library.lr_parallel(threads, 3, TASK(task), None) == OK
    finally:
        torch.set_flush_denormal(False)
    assert products == [float.fromhex("0x1p-1039")] * 3


def test_reserved_memory_is_zero_and_keeps_its_address(library: ctypes.CDLL) -> None:
    size = 1 << 40  # far more than there is
    start = library.lr_reserve(size)
    assert start % 4096 == 0
    for offset in (0, 1 << 30, size - 8192):
        assert library.lr_commit(start + offset, 8192) == OK
        view = (ctypes.c_uint8 * 8192).from_address(start + offset)
        assert bytes(view) == bytes(8192)
        view[0] = view[8191] = 1
        assert library.lr_commit(start + offset, 8192) == OK  # again: what is there stays
        assert (view[0], view[8191]) == (1, 1)
    assert library.lr_release(start, size) == OK


@pytest.mark.skipif(sys.platform != "linux", reason="only linux says what is mapped: not windows, not macos")
def test_large_memory_begins_at_a_large_page_and_all_of_it_is_given_back(library: ctypes.CDLL) -> None:
    large, size = 2 << 20, (2 << 20) + 4096
    starts = [library.lr_reserve(size) for _ in range(16)]
    assert all(start % large == 0 for start in starts)
    given_back = []
    for start in starts:
        before = mapped_bytes()
        assert library.lr_release(start, size) == OK
        given_back.append(before - mapped_bytes())
    assert given_back.count(size) > 12, "but for what another thread maps meanwhile"


def mapped_bytes() -> int:
    """Address space of this process in use."""
    spans = [line.split()[0].split("-") for line in Path("/proc/self/maps").read_text().splitlines()]
    return sum(int(end, 16) - int(start, 16) for start, end in spans)


def test_impossible_memory_is_refused(library: ctypes.CDLL) -> None:
    assert not library.lr_reserve(0)
    assert not library.lr_reserve(-5)
    assert not library.lr_reserve(1 << 62)
    assert library.lr_commit(None, 64) == BAD_ARGUMENT
    assert library.lr_release(None, 64) == BAD_ARGUMENT
