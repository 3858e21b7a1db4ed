"""Errors of a GPU that last as long as the process: an illegal access, a reset by the system, a laptop that slept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from localrun.base.errors import DeviceLostError, lost_device

HINT = "send the message again: the model is loaded for it"


@contextmanager
def told_when_lost() -> Iterator[None]:
    """Raise DeviceLostError in the place of what torch or the driver raises when the GPU has failed for good."""
    try:
        yield
    except Exception as error:
        if isinstance(error, DeviceLostError) or not lost_device(error):
            raise
        raise DeviceLostError(f"the GPU failed: {str(error).partition(chr(10))[0]}", HINT) from error
