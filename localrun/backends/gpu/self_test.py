"""Self-test of a device before its first use: does every kernel give the same results there as elsewhere?

Kernels are proven on an emulator, for GPUs that were perhaps never tried. What passes once is not tried again until the
device, its driver, the compiler or a kernel changes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from localrun.base.files import write_whole
from localrun.base.paths import writable_folder
from localrun.base.small_file import read_small

if TYPE_CHECKING:
    from localrun.backends.gpu.device import Argument, Device, Dim, Launch

MAX_MARK_BYTES = 16
D = TypeVar("D", bound="Device")


def why_not(title: str, cases: Mapping[str, Callable[[D], str]], device: D, identity: str) -> str:
    """Why this device is not to be trusted with our kernels; empty where all of them give what they should.

    identity: the device, its driver, the compiler and the kernels, in words: a result is kept for as long as they stay
    the same. title: what the kernels are called.
    """
    passed = _mark(title, identity)
    if passed and passed.exists():
        return ""
    try:
        with device.steps():
            wrong = first_failure(cases, device)
    except Exception as error:  # whatever a driver may raise: the caller has other devices
        wrong = _words(error)
    if wrong:
        return f"the self-test of the {title} kernels failed: {wrong}"
    _keep(passed, "")
    return ""


def first_failure(cases: Mapping[str, Callable[[D], str]], device: D) -> str:
    """The first case that fails, and how; every kernel of all cases is asked for before."""
    asking: Any = _Asking(device)
    for case in cases.values():
        with suppress(Exception):  # comes again below
            case(asking)
    for name, case in cases.items():
        try:
            wrong = case(device)
        except Exception as error:  # or a compiler
            wrong = _words(error)
        if wrong:
            return f"{name}: {wrong}"
    return ""


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def found_out(title: str, identity: str, find: Callable[[], bool]) -> bool:
    """Result of `find` for a device, computed once for as long as `identity` stays the same."""
    mark = _mark(title, identity)
    with suppress(OSError):
        if mark and (known := read_small(mark, MAX_MARK_BYTES)) in (b"yes", b"no"):
            return known == b"yes"
    found = find()
    _keep(mark, "yes" if found else "no")
    return found


class _Asking:
    """A device that asks another for kernels and launches none: a GPU compiles what it is asked for side by side."""

    def __init__(self, device: Device) -> None:
        self.device = device

    def __getattr__(self, name: str) -> Any:
        return getattr(self.device, name)

    def kernel(self, file: str, name: str, **defines: int) -> _Asking:
        self.device.kernel(file, name, **defines)
        return self

    def bind(self, grid: Dim, block: Dim, *arguments: Argument, shared: int = 0) -> Launch:
        return lambda: None


def _mark(title: str, identity: str) -> Path | None:
    """The file that says how it went; None where nothing can be kept."""
    kept = writable_folder("cache")
    digest = hashlib.sha256(identity.encode()).hexdigest()[:32]
    return kept and kept / f"{title.lower()}-self-test" / digest


def _keep(mark: Path | None, text: str) -> None:
    if mark:
        with suppress(OSError):
            mark.parent.mkdir(parents=True, exist_ok=True)
            write_whole(mark, text)
