"""Something that happens when what is inside takes too long."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def calling_after(seconds: float, call: Callable[..., object], *arguments: Any) -> Iterator[None]:
    """Call once, on a thread of its own, unless what is inside ends before."""
    timer = threading.Timer(seconds, call, arguments)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
