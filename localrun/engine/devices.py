"""Which device a backend name means, and which operations run there."""

import os

import torch

from localrun.base.errors import UsageError
from localrun.base.request import Backend
from localrun.ops.reference import ReferenceOps
from localrun.ops.reference_rows import RowReferenceOps

HINT = "leave --backend away, or see what `localrun doctor` says"


def device_for(backend: Backend) -> torch.device:
    """The torch device of a backend. Raises UsageError for one this machine lacks."""
    if backend == "cuda" and not torch.cuda.is_available():
        raise UsageError("this machine has no CUDA device that torch can use", HINT)
    if backend == "mps" and not torch.backends.mps.is_available():
        raise UsageError("this machine has no Apple GPU that torch can use", HINT)
    if backend == "cpu":
        raise UsageError("the native CPU backend does not run whole models yet", "use --backend reference")
    return torch.device(backend if backend in ("cuda", "mps") else "cpu")


def reference_ops() -> type[ReferenceOps]:
    """The reference, or its slow exact form with LOCALRUN_REFERENCE=rows."""
    return RowReferenceOps if os.environ.get("LOCALRUN_REFERENCE") == "rows" else ReferenceOps


def free_bytes(device: torch.device, main_memory: int) -> int:
    """Memory that is free on the device, in bytes."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    if device.type == "mps":
        return min(main_memory, torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory())
    return main_memory
