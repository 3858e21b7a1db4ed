"""The backends there are, and which one runs a model."""

from collections.abc import Callable, Iterable, Iterator

from localrun.backends.cpu.backend import CpuBackend
from localrun.backends.cuda import chosen_gpu
from localrun.backends.cuda.backend import CudaBackend
from localrun.backends.interface import Backend
from localrun.backends.metal.backend import MetalBackend
from localrun.backends.reference.backend import ReferenceBackend
from localrun.base.errors import UsageError
from localrun.base.machine import Memory, memory
from localrun.base.request import BackendName
from localrun.ops.recording import Recording

BACKENDS: dict[str, Backend] = {
    backend.name: backend for backend in (ReferenceBackend(), CpuBackend(), CudaBackend(), MetalBackend())
}
FASTEST_FIRST = ("cuda", "mps", "cpu", "reference")  # what `auto` tries
HINT = "leave --backend away, or see what `localrun doctor` says"


def usual_backend(model: Recording | None = None) -> Backend:
    """The backend that `auto` takes on this machine: for any model, or for this one."""
    for name in FASTEST_FIRST:
        backend = BACKENDS[name]
        if not backend.why_unavailable() and not (model and backend.why_not(model, ())):
            return backend
    raise AssertionError("the reference runs everywhere")


def backend_in_main_memory() -> Backend:
    """The fastest backend that computes in main memory, which is where images are encoded."""
    usual = (BACKENDS[name] for name in FASTEST_FIRST)
    return next(backend for backend in usual if backend.in_main_memory and not backend.why_unavailable())


def usual_memory() -> Memory:
    """Memory, total and free, where the usual backend computes."""
    return usual_backend().memory(memory())


def backends_for(
    wish: BackendName,
    model: Recording,
    matrix_types: Iterable[str],
    why_slower: Callable[[Backend], str] = lambda backend: "",
) -> Iterator[tuple[Backend, tuple[str, ...]]]:
    """The backends that may run this model, the best first, each with notes for the user: of `auto` there are several,
    without those that `why_slower` names a reason for.

    Raises UsageError where the one that was asked for cannot.
    """
    types, notes = tuple(matrix_types), list[str]()
    for name in FASTEST_FIRST if wish == "auto" else (wish,):
        backend = BACKENDS[name]
        missing = backend.why_unavailable()
        reason = missing or backend.why_not(model, types)
        if not reason and wish == "auto" and (slower := why_slower(backend)):
            notes.append(slower)
            continue
        reason = reason or backend.self_test()
        if not reason:
            yield backend, (*notes, backend.note) if backend.note else tuple(notes)
        elif wish != "auto":
            raise UsageError(f"the {wish} backend cannot run this: {reason}", HINT)
        elif not missing or backend.degraded_reason():
            notes.append(f"slow: the {name} backend cannot run this: {reason}")


def choose_gpu(number: int | None) -> None:
    """Have this one of several NVIDIA GPUs compute in this process; None: as before. Raises UsageError."""
    chosen_gpu.choose_gpu(number)
