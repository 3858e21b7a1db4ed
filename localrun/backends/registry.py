"""The backends there are, and which one runs a model."""

from collections.abc import Iterable

from localrun.backends.cpu.backend import CpuBackend
from localrun.backends.cuda.backend import CudaBackend
from localrun.backends.interface import Backend
from localrun.backends.metal.backend import MetalBackend
from localrun.backends.reference.backend import ReferenceBackend
from localrun.base.errors import UsageError
from localrun.base.request import BackendName
from localrun.model.config import ModelConfig

BACKENDS: dict[str, Backend] = {
    backend.name: backend for backend in (ReferenceBackend(), CpuBackend(), CudaBackend(), MetalBackend())
}
HINT = "leave --backend away, or see what `localrun doctor` says"


def usual_backend(config: ModelConfig | None = None) -> Backend:
    """What computes on this machine when nothing else is asked for: any model, or this one."""
    if config is not None:
        return choose_backend("auto", config, ())[0]
    cpu = BACKENDS["cpu"]
    return BACKENDS["reference"] if cpu.why_unavailable() else cpu


def choose_backend(
    wish: BackendName, config: ModelConfig, matrix_types: Iterable[str]
) -> tuple[Backend, tuple[str, ...]]:
    """The backend that was asked for, else the fastest that can run this model, and notes for the user.

    Raises UsageError.
    """
    backend = BACKENDS["cpu" if wish == "auto" else wish]
    reason = backend.why_unavailable() or backend.why_not(config, matrix_types)
    if not reason:
        return backend, (backend.note,) if backend.note else ()
    if wish == "auto":
        return BACKENDS["reference"], (f"slow: the reference runs, because {reason}",)
    raise UsageError(f"the {wish} backend cannot run this: {reason}", HINT)
