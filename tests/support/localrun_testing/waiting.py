"""Waiting for what another thread or another process does."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
PATIENCE = 60.0  # seconds for what takes a moment where nobody else computes


def until(found: Callable[[], T | None], otherwise: Callable[[], object] = lambda: "", seconds: float = PATIENCE) -> T:
    """Wait for something true, and give it; AssertionError with what `otherwise` says when it does not come."""
    give_up = time.monotonic() + seconds
    while not (it := found()):
        assert time.monotonic() < give_up, otherwise()
        time.sleep(0.01)
    return it
