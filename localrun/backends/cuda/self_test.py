"""Before a device computes anything for anybody: does every kernel give on it what it gives elsewhere?

Kernels are proven on an emulator and compiled for GPUs that nobody may have tried. What passes once is not tried again
until the device, its driver, the compiler or a kernel changes.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from localrun.backends.cuda.self_test_cases import CASES
from localrun.backends.cuda.source import kernels_hash
from localrun.base.paths import writable_folder

if TYPE_CHECKING:
    from localrun.backends.gpu.device import Argument, Device, Dim, Launch


def why_not(device: Device, identity: str) -> str:
    """Why this device is not to be trusted with our kernels; empty where all of them give what they should.

    identity: the device, its driver and the compiler, in words: a result is kept for as long as they stay the same.
    """
    passed = _mark(identity)
    if passed and passed.exists():
        return ""
    for case in CASES.values():
        with suppress(Exception):  # comes again below
            case(_Asking(device))
    for name, case in CASES.items():
        try:
            wrong = case(device)
        except Exception as error:  # whatever a driver or compiler may raise: the caller has other devices
            wrong = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        if wrong:
            return f"the self-test of the CUDA kernels failed: {name}: {wrong}"
    if passed:
        with suppress(OSError):
            passed.parent.mkdir(parents=True, exist_ok=True)
            passed.touch()
    return ""


class _Asking:
    """A device that asks another for kernels and launches none: a GPU compiles what it is asked for side by side."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.torch_device = device.torch_device
        self.arch = device.arch
        self.processors = device.processors

    def kernel(self, file: str, name: str, **defines: int) -> _Asking:
        self.device.kernel(file, name, **defines)
        return self

    def bind(self, grid: Dim, block: Dim, *arguments: Argument, shared: int = 0) -> Launch:
        return lambda: None


def _mark(identity: str) -> Path | None:
    """The empty file that says all went well; None where nothing can be kept."""
    kept = writable_folder("cache")
    if kept is None:
        return None
    what = f"{identity} {kernels_hash()}"
    return kept / "cuda-self-test" / hashlib.sha256(what.encode()).hexdigest()[:32]
