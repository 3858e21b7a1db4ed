"""Kept threads: every job runs at once, and a thread without one takes the next."""

import threading

import pytest
from localrun_testing.waiting import PATIENCE, until

from localrun.base import kept_threads
from localrun.base.kept_threads import KeptThreads


def test_jobs_that_wait_for_each_other_all_run() -> None:
    threads, met, done = KeptThreads("met"), threading.Barrier(40), threading.Semaphore(0)

    def meet() -> None:
        met.wait(PATIENCE)
        done.release()

    for _ in range(3):
        for _ in range(40):
            threads.run(meet)
        for _ in range(40):
            assert done.acquire(timeout=PATIENCE)


def test_a_thread_without_a_job_takes_the_next() -> None:
    threads, ran = KeptThreads("kept"), list[int]()
    for _ in range(5):
        threads.run(lambda: ran.append(threading.get_ident()))
        until(lambda: threads.n_idle == 1)
    assert len(set(ran)) == 1


def test_a_job_that_fails_keeps_no_other_from_running(monkeypatch: pytest.MonkeyPatch) -> None:
    threads, ran, failures = KeptThreads("failing"), threading.Event(), list[object]()
    monkeypatch.setattr(threading, "excepthook", failures.append)

    def fail() -> None:
        raise ValueError("of this job alone")

    for _ in range(3):
        threads.run(fail)
    threads.run(ran.set)
    assert ran.wait(PATIENCE)
    until(lambda: len(failures) == 3)


def test_threads_without_jobs_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_threads, "KEEP_SECONDS", 0.01)
    threads, ran = KeptThreads("short-lived"), list[int]()
    for number in range(200):  # some of them while a thread is about to end
        threads.run(lambda: ran.append(1))
        if number % 20 == 0:
            until(lambda: not [one for one in threading.enumerate() if one.name == "short-lived"])
    until(lambda: len(ran) == 200)
