"""CPU time of a piece of work, as a bound on its growth."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
_TRIES = 3  # the garbage of the tests before is collected in somebody's time


def within(seconds: float, work: Callable[[], T]) -> T:
    """Do `work` and give its answer; AssertionError when every try takes more CPU seconds of this thread."""
    took = []
    for _ in range(_TRIES):
        start = time.thread_time()
        answer = work()
        took.append(time.thread_time() - start)
        if took[-1] < seconds:
            return answer
    raise AssertionError(f"{min(took):.2f} CPU seconds at best, of {seconds} that it may take")
