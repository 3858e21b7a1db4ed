"""Which of several NVIDIA GPUs computes: one for each process."""

from __future__ import annotations

from localrun.backends.cuda import availability
from localrun.backends.cuda.driver import find_gpu
from localrun.base.errors import UsageError

HINT = "`localrun doctor` lists them"


def choose_gpu(number: int | None) -> None:
    """Have GPU `number` of those that CUDA names compute; None: as before, or the first. Raises UsageError."""
    if number is None or number == availability.chosen:
        return
    if availability.is_emulated():
        raise UsageError("the emulated GPU has no number", f"leave --device away, or unset {availability.EMULATE}")
    if isinstance(why_not := find_gpu(number), str):
        raise UsageError(f"GPU {number} cannot compute: {why_not}", HINT)
    if availability.is_in_use:
        raise UsageError("this process computes on another GPU", "load the model in a process of its own")
    availability.chosen = number
