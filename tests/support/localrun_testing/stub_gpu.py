"""CUDA by the real cuda-core on a driver that computes nothing and writes down what it is told (stub_driver.cpp).

Libraries load a driver when they are first asked for one, so all of this runs in a process of its own: `run_on_stub`.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from localrun_testing import REPOSITORY
from localrun_testing.kept import kept

SUPPORT = REPOSITORY / "tests" / "support"
SOURCE = SUPPORT / "stub_driver.cpp"
OWN_STREAM, USUAL_STREAM = 555, 0  # handles of the device's own, and of torch's default


def run_on_stub(module: str, *arguments: str) -> str:
    """What `python -m module` prints where the stand-in is the driver; RuntimeError where it fails."""
    library = kept(build, SOURCE.read_text())
    folder = library.with_name(f"{library.name}.driver")
    folder.mkdir(exist_ok=True)
    if not (driver := folder / "libcuda.so.1").exists():
        (waiting := folder / f"{os.getpid()}").write_bytes(library.read_bytes())
        waiting.replace(driver)
    path = os.pathsep.join((str(SUPPORT), str(REPOSITORY)))
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        env={**os.environ, "LD_LIBRARY_PATH": str(folder), "PYTHONPATH": path},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


def build(path: Path) -> None:
    subprocess.run(["g++", "-O1", "-shared", "-fPIC", str(SOURCE), "-o", str(path)], check=True)


class StubDriver:
    """What the driver of this process was told."""

    COUNTED = ("launch", "graph", "node", "upload", "read", "wait")

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        self.library.stub_journal.restype = ctypes.c_char_p
        self.library.stub_count.restype = ctypes.c_size_t
        self.library.stub_seconds.restype = ctypes.c_double

    def journal(self) -> list[str]:
        """Line by line, since it was asked for last."""
        text: bytes = self.library.stub_journal()
        return text.decode().splitlines()

    def counts(self) -> dict[str, int]:
        """Since the process began."""
        return {what: int(self.library.stub_count(what.encode())) for what in self.COUNTED}

    def seconds(self) -> float:
        """Of the thread that asks, between the first and the last call since it was asked for last."""
        return float(self.library.stub_seconds())

    def quiet(self) -> None:
        """Only count from now on."""
        self.library.stub_quiet(1)


class TorchStream:
    """In the place of torch's streams."""

    def __init__(self, _: object = None, handle: int = OWN_STREAM) -> None:
        self.cuda_stream = handle

    def wait_stream(self, _: object) -> None: ...
    def synchronize(self) -> None: ...


def stub_device(arch: int = 90) -> Any:
    """A CudaDevice for this process, whose tensors are in main memory; torch learns of no GPU but its streams."""
    import torch

    from localrun.backends.cuda.cuda_device import CudaDevice

    cuda: Any = torch.cuda
    cuda.get_device_capability = lambda _: divmod(arch, 10)
    cuda.get_device_properties = lambda _: SimpleNamespace(multi_processor_count=132)
    cuda.set_device = lambda _: None
    cuda.Stream = TorchStream
    cuda.stream = lambda _: nullcontext()
    cuda.current_stream = lambda *_: TorchStream(handle=USUAL_STREAM)
    empty = torch.empty
    torch.empty = lambda *_, **__: None  # type: ignore[assignment]
    try:
        device = CudaDevice(0)
    finally:
        torch.empty = empty
    device.torch_device = torch.device("cpu")
    return device
