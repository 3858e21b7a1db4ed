"""Threads that are kept for the next job: beside a computing engine it takes milliseconds to start one."""

import queue
import threading
from collections.abc import Callable

KEEP_SECONDS = 60.0  # without a job, before a thread ends

ThreadJob = Callable[[], object]
ThreadInbox = queue.SimpleQueue[ThreadJob]  # of one thread: with a timeout, such a queue has to have one reader


class KeptThreads:
    """Runs every job at once, on a thread that has none or on a new one. All are daemons of the process."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._idle: list[ThreadInbox] = []  # the latest last

    @property
    def n_idle(self) -> int:
        return len(self._idle)

    def run(self, job: ThreadJob) -> None:
        """Run a job, from any thread. What it raises is reported as that of any thread, and ends its own."""
        with self._lock:
            inbox = self._idle.pop() if self._idle else None
        if inbox is None:
            inbox = queue.SimpleQueue()
            threading.Thread(target=self._work, args=(inbox,), name=self._name, daemon=True).start()
        inbox.put(job)

    def _work(self, inbox: ThreadInbox) -> None:
        while (job := self._next(inbox)) is not None:
            job()
            del job  # what it holds is not kept until the next
            with self._lock:
                self._idle.append(inbox)

    def _next(self, inbox: ThreadInbox) -> ThreadJob | None:
        """The next job; None after a while without."""
        while True:
            try:
                return inbox.get(timeout=KEEP_SECONDS)
            except queue.Empty:
                with self._lock:
                    if inbox in self._idle:  # else a job is on its way
                        self._idle.remove(inbox)
                        return None
