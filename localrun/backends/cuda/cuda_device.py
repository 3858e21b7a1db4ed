"""An NVIDIA GPU: memory and streams are torch's, and cuda-core launches kernels on them."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from localrun.backends.cuda.compiler import compile_kernels
from localrun.backends.cuda.copies import CudaEvent, read, upload
from localrun.backends.cuda.limits import shared_bytes
from localrun.backends.cuda.source import ENDING, source
from localrun.backends.gpu.arguments import check_launch, letter
from localrun.base.errors import LocalrunError

if TYPE_CHECKING:
    from torch import Tensor

    from localrun.backends.gpu.device import Argument, Dim, Launch

_SHARED_WITHOUT_ASKING = 48 << 10  # bytes of dynamic shared memory


class OfThread(threading.local):
    """State of a thread that uses a GPU."""

    has_context = has_stepped = False
    stream: Any = None  # cuda-core's, of `CudaDevice.steps`; None outside


class CudaKernel:
    """A kernel that is being compiled; the first of its launches waits for that."""

    def __init__(self, thread: OfThread, name: str, file: Future[Any], where: str = "cuda") -> None:
        """`where`: torch's word for the device that tensors are on."""
        self.thread, self.where = thread, where
        self.name = name
        self.file = file
        self.most_shared = _SHARED_WITHOUT_ASKING

    @cached_property
    def kernel(self) -> Any:
        """cuda-core's. LocalrunError when its file does not compile."""
        return self.file.result().get_kernel(self.name)

    @cached_property
    def sizes(self) -> list[int]:
        """Bytes of the kernel's arguments; the driver is asked once."""
        return [size for _, size in self.kernel.arguments_info]

    def bind(self, grid: Dim, block: Dim, *arguments: Argument, shared: int = 0) -> Launch:
        """A launch, which may be captured once it has run. ValueError for wrong arguments."""
        from cuda.core import LaunchConfig, launch

        check_launch(self.name, grid, block)
        if 0 in grid:
            return lambda: None
        values = [packed(a, self.where, f"argument {place} of {self.name}") for place, a in enumerate(arguments)]
        config = LaunchConfig(grid=grid, block=block, shmem_size=shared)
        kernel, thread = None, self.thread

        def run(keep: object = arguments) -> None:
            nonlocal kernel
            if kernel is None:
                kernel = self._ready(values, shared)
            launch(thread.stream or current_stream(), config, kernel, *values)

        return run

    def _ready(self, values: list[Any], shared: int) -> Any:
        """The kernel, if it can be launched like that."""
        if [8 if isinstance(value, int) else 4 for value in values] != self.sizes:
            raise ValueError(f"{self.name} takes arguments of {self.sizes} bytes, not {values}")
        if shared > self.most_shared:
            self._allow(shared)
        return self.kernel

    def _allow(self, shared: int) -> None:
        """Allow launches to use up to this many bytes of shared memory."""
        from cuda.bindings import driver

        attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        handle = driver.CUkernel(int(self.kernel.handle))
        (error,) = driver.cuKernelSetAttribute(attribute, shared, handle, driver.cuCtxGetDevice()[1])
        if error != driver.CUresult.CUDA_SUCCESS:
            raise LocalrunError(
                f"{self.name} needs {shared} bytes of shared memory ({error.name})", "use another backend"
            )
        self.most_shared = shared


class CudaDevice:
    """GPU number `index` of torch, the current one if None. It takes the context that torch has made."""

    ending = ENDING

    def __init__(self, index: int | None = None) -> None:
        import torch

        self.torch_device = torch.device("cuda", torch.cuda.current_device() if index is None else index)
        torch.empty(1, device=self.torch_device)
        major, minor = torch.cuda.get_device_capability(self.torch_device)
        self.arch: int = 10 * major + minor
        self.shared_bytes = shared_bytes(self.arch)
        self.processors: int = torch.cuda.get_device_properties(self.torch_device).multi_processor_count
        self._compilers = ThreadPoolExecutor(os.cpu_count() or 1, "nvrtc")
        self._files: dict[object, Future[Any]] = {}
        self._kernels: dict[object, CudaKernel] = {}
        self.thread = OfThread()
        self._join_context()
        self._own = torch.cuda.Stream(self.torch_device)
        self.stream = stream_of(self._own.cuda_stream)
        self.has_graphs = True  # unless a self-test finds otherwise

    def _join_context(self) -> None:
        """Make the context of the GPU current in this thread: the driver knows one for each."""
        import torch

        if self.thread.has_context:
            return
        try:
            from cuda.core import Device
        except ImportError as error:
            raise LocalrunError(
                f"CUDA kernels need the package cuda-core ({error})", "pip install 'localrun[cuda]'"
            ) from error
        torch.cuda.set_device(self.torch_device)
        Device(self.torch_device.index).set_current()
        self.thread.has_context = True

    @contextmanager
    def steps(self) -> Iterator[None]:
        """All on a stream of its own: torch's usual one, the legacy default, cannot be captured and waits for others.

        What the usual one was asked for before a thread's first step, such as packing weights, comes before that.
        """
        import torch

        if not self.thread.has_stepped:
            self._join_context()
            self._own.wait_stream(torch.cuda.current_stream(self.torch_device))
            self.thread.has_stepped = True
        before, self.thread.stream = self.thread.stream, self.stream
        try:
            with torch.cuda.stream(self._own):
                yield
        finally:
            self.thread.stream = before

    def event(self) -> CudaEvent:
        return CudaEvent(self.stream)

    def upload(self, source: Tensor, target: Tensor, n: int) -> None:
        upload(source.data_ptr(), target.data_ptr(), 4 * n, self.stream)

    def read(self, source: Tensor, target: Tensor, n: int) -> None:
        read(source.data_ptr(), target.data_ptr(), 4 * n, self.stream)

    def record(self, launches: Sequence[Launch]) -> Launch | None:
        """A CUDA graph of these."""
        try:
            return self._captured(launches) if self.has_graphs else None
        except Exception as error:  # cuda-core's own
            if "OUT_OF_MEMORY" not in str(error):
                raise
        return None

    def _captured(self, launches: Sequence[Launch]) -> Launch:
        """Other threads may ask the driver for anything meanwhile."""
        builder = self.stream.create_graph_builder()
        with self.steps():
            builder.begin_building("thread_local")
            try:
                for launch in launches:
                    launch()
            finally:
                builder.end_building()
        graph = builder.complete()

        def run(keep: object = tuple(launches)) -> None:
            graph.launch(self.stream)

        return run

    def commit(self) -> None:
        pass  # launches begin as soon as they are asked for

    def finish(self) -> None:
        self._own.synchronize()

    def kernel(self, file: str, name: str, **defines: int) -> CudaKernel:
        """Kernel `name` of `file`. Files are compiled side by side, as many as there are cores."""
        of_file = (file, *sorted(defines.items()))
        if of_file not in self._files:
            given = (source(file), file, self.arch, defines)
            self._files[of_file] = self._compilers.submit(compile_kernels, *given)
        key = (name, of_file)
        if key not in self._kernels:
            self._kernels[key] = CudaKernel(self.thread, name, self._files[of_file], self.torch_device.type)
        return self._kernels[key]

    def bf16_product(self, a: Tensor, b: Tensor, out: Tensor) -> Launch:
        """cuBLAS's, which goes by shapes and by how tensors are aligned."""
        import torch

        flags = torch.backends.cuda.matmul

        def run() -> None:
            before = flags.allow_bf16_reduced_precision_reduction
            flags.allow_bf16_reduced_precision_reduction = False  # parts of a sum are added as float32
            torch.mm(a, b.T, out=out)
            flags.allow_bf16_reduced_precision_reduction = before

        return run


def packed(argument: Argument, device_type: str, where: str) -> Any:
    """Pack arguments for cuda-core: a Python int is an 8-byte pointer, 4-byte numbers are numpy's."""
    import numpy as np
    import torch

    kind = letter(argument, device_type, where)
    if isinstance(argument, torch.Tensor):
        return argument.data_ptr()
    if argument is None:
        return 0
    return np.float32(argument) if kind == "f" else np.int32(argument)


def current_stream() -> Any:
    """Torch's of this thread, for launches outside of `steps`."""
    import torch

    return stream_of(torch.cuda.current_stream().cuda_stream)


@cache
def stream_of(handle: int) -> Any:
    from cuda.core import Stream

    return Stream.from_handle(handle)
