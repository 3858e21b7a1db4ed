"""Errors of a GPU that last as long as the process: an illegal access, a reset by the system, a laptop that slept."""

from __future__ import annotations

from localrun.base.errors import DeviceLostError, lost_device

HINT = "send the message again: the model is loaded for it"


class told_when_lost:
    """Raise DeviceLostError in the place of what torch or the driver raises when the GPU has failed for good."""

    def __enter__(self) -> None: ...

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, DeviceLostError) and lost_device(error):
            raise DeviceLostError(f"the GPU failed: {str(error).partition(chr(10))[0]}", HINT) from error
