"""Whether n threads are ever slower than fewer: on cores that others use, and on machines that are not there.

    python -m benchmarks.uneven_cores MODEL.gguf [--rounds 12]   this machine, in company
    python -m benchmarks.uneven_cores [--rounds 5]               machines of uneven and of many cores

In company: a program that keeps the last processor busy for a share of its time, a quota (where control groups of Linux
may be written), fewer processors than threads. A ratio is the speed of n threads by the best of fewer, median and
quartiles over rounds in which all numbers of threads take turns.

Machines that are not there: the library's own threads take the tasks of a layer of a model, but a task is to sleep, for
as long as a core of that speed would take. "of ideal" is what all cores together could do at best.
"""

import argparse
import ctypes
import multiprocessing
import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from benchmarks.kv_quality import machine
from localrun.backends.cpu.bindings import calls_of
from localrun.backends.cpu.library import load_library, why_no_library
from localrun.base.processors import usable_processors
from localrun.base.request import LoadOptions
from localrun.diagnose.bench import BenchCase, run_case
from localrun.engine import load as loading

CASES = (BenchCase("decode", 24, 0), BenchCase("prefill", 256, 0))
QUOTA_GROUPS = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")  # version 1, version 2
PERIOD = 0.02  # seconds, of a busy program
MACHINES = {  # speeds of cores, fastest first
    "8 alike": [1.0] * 8,
    "8 fast, 16 at 0.5": [1.0] * 8 + [0.5] * 16,
    "2 fast, 8 at 0.5": [1.0] * 2 + [0.5] * 8,
    "4 fast, 4 at 0.35": [1.0] * 4 + [0.35] * 4,
    "16 alike": [1.0] * 16,
    "32 alike": [1.0] * 32,
    "64 alike": [1.0] * 64,
}
LAYERS = {  # tasks of the linears of a layer when it decodes, and how long one is beside the others
    "0.6B": [(24, 1.0), (12, 1.0), (18, 2.0), (18, 1.0)],
    "8B": [(144, 1.0), (96, 1.0), (288, 2.0), (288, 1.0)],
}
TASK = 0.004  # seconds on a core of speed 1: far more than a sleep is late
Sleeper = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("--rounds", type=int)
    asked = parser.parse_args()
    print(machine())
    if asked.model:
        in_company(asked.model, asked.rounds or 12)
    else:
        not_there(asked.rounds or 5)


def in_company(path: Path, rounds: int) -> None:
    processors = usable_processors()
    n = len(processors)
    counts = sorted({1, max(1, n // 2), n, 2 * n, 4 * n})
    loading.most_threads = lambda: max(counts)  # more than processors, too
    models = {count: loading.load(LoadOptions(path, threads=count, ctx=512, backend="cpu")) for count in counts}
    for name, company in companies(processors):
        with company() as there:
            if not there:
                print(f"{name}: cannot be had here")
                continue
            for case in CASES:
                show(f"{name}, {case.kind} {case.n}", turns(models, case, rounds))
    for model in models.values():
        model.engine.close()


def turns(models: dict[int, Any], case: BenchCase, rounds: int) -> dict[int, list[float]]:
    """Tokens a second of every number of threads, a round each."""
    rates: dict[int, list[float]] = {count: [] for count in models}
    for turn in range(rounds + 1):  # the first warms up
        for count in list(models) if turn % 2 else reversed(models):
            rates[count].append(case.n / run_case(models[count].engine, case, fill=turn == 0))
    return {count: measured[1:] for count, measured in rates.items()}


def show(name: str, rates: dict[int, list[float]]) -> None:
    rows = [f"{name:40} 1: {statistics.median(rates[1]):7.1f} tok/s"]
    for count in list(rates)[1:]:
        fewer = max((n for n in rates if n < count), key=lambda n: statistics.median(rates[n]))
        low, middle, high = statistics.quantiles([a / b for a, b in zip(rates[count], rates[fewer], strict=True)])
        rows.append(f"{count}: {middle:.2f} ({low:.2f}-{high:.2f}) of {fewer}")
    print("   ".join(rows), flush=True)


Company = Callable[[], Any]


def companies(processors: Sequence[int]) -> Iterator[tuple[str, Company]]:
    yield "alone", nobody
    for share in (0.25, 0.5, 1.0):
        yield f"last processor {share:.0%} busy", lambda share=share: busy(processors[-1], share)
    yield "one processor", lambda: only(processors[:1])
    for quota in (1.0, 1.5):
        yield f"quota of {quota:.1f} processors", lambda quota=quota: within(quota)


@contextmanager
def nobody() -> Iterator[bool]:
    yield True


@contextmanager
def busy(processor: int, share: float) -> Iterator[bool]:
    """Another program on one processor, of the same priority, that wants a share of its time."""
    other = multiprocessing.get_context("spawn").Process(target=keep_busy, args=(processor, share), daemon=True)
    other.start()
    time.sleep(1)
    try:
        yield True
    finally:
        other.terminate()
        other.join()


def keep_busy(processor: int, share: float) -> None:
    os.sched_setaffinity(0, {processor})
    while True:
        begun = time.thread_time()
        while time.thread_time() - begun < share * PERIOD:
            pass
        if share < 1:
            time.sleep((1 - share) * PERIOD)


@contextmanager
def only(processors: Sequence[int]) -> Iterator[bool]:
    """All threads of this process on few processors."""
    before = {thread: os.sched_getaffinity(thread) for thread in threads_of_this_process()}
    for thread in before:
        os.sched_setaffinity(thread, processors)
    try:
        yield True
    finally:
        for thread, processors_before in before.items():
            with suppress(ProcessLookupError):
                os.sched_setaffinity(thread, processors_before)


@contextmanager
def within(quota: float) -> Iterator[bool]:
    """This process in a control group of its own; false where none can be made."""
    root = next((root for root in QUOTA_GROUPS if (root / "cgroup.procs").is_file()), Path("/nowhere"))
    group = root / f"uneven-cores-{os.getpid()}"
    try:
        group.mkdir()
    except OSError:
        yield False
        return
    try:
        first, limit = group / "cpu.cfs_quota_us", int(quota * 100_000)
        if first.exists():
            first.write_text(str(limit))
        else:
            (group / "cpu.max").write_text(f"{limit} 100000")
        (group / "cgroup.procs").write_text(str(os.getpid()))
        yield True
    finally:
        (root / "cgroup.procs").write_text(str(os.getpid()))
        group.rmdir()


def threads_of_this_process() -> list[int]:
    return [int(number) for number in os.listdir("/proc/self/task")]


def not_there(rounds: int) -> None:
    for model, layer in LAYERS.items():
        for name, speeds in MACHINES.items():
            counts = [n for n in (1, 2, 4, 8, 16, 24, 32, 64) if n < len(speeds)] + [len(speeds)]
            seconds = {n: simulate(speeds[:n], layer, rounds) for n in counts[-4:]}
            best = min(taken for n, taken in seconds.items() if n < len(speeds))
            work = TASK * sum(n * size for n, size in layer)
            ideal = work / sum(speeds)
            print(
                f"{model:5} {name:18} {ideal / seconds[len(speeds)]:4.0%} of ideal, "
                f"{best / seconds[len(speeds)]:.2f} times the best of fewer",
                flush=True,
            )


def simulate(speeds: Sequence[float], layer: Sequence[tuple[int, float]], rounds: int) -> float:
    """Median seconds of a layer by as many threads of the library as there are speeds."""
    library = load_library()
    assert library is not None, why_no_library()
    calls = calls_of(library)
    calls.c.lr_parallel.argtypes = (ctypes.c_void_p, ctypes.c_int64, Sleeper, ctypes.c_void_p)
    threads, numbers, lock = calls.threads_create(len(speeds)), dict[int, int](), threading.Lock()

    def speed() -> float:
        me = threading.get_native_id()
        if me not in numbers:
            with lock:
                numbers[me] = len(numbers)
        return speeds[numbers[me]]

    def phase(n_tasks: int, size: float) -> None:
        calls.c.lr_parallel(threads, n_tasks, Sleeper(lambda _data, _index: time.sleep(TASK * size / speed())), None)

    taken = []
    for _ in range(rounds + 1):  # the first warms up
        begun = time.perf_counter()
        for n_tasks, size in layer:
            phase(n_tasks, size)
        taken.append(time.perf_counter() - begun)
    calls.threads_destroy(threads)
    return statistics.median(taken[1:])


if __name__ == "__main__":
    main()
