"""Launches by the real cuda-core on a driver that only writes them down (stub_driver.cpp), in a process of its own.

Run with LD_LIBRARY_PATH naming the driver's folder; prints what the driver is told, and before it where the tensor is.
"""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch

from localrun.backends.cuda import cuda_device
from localrun.backends.cuda.compiler import compile_kernels
from localrun.backends.cuda.cuda_device import CudaDevice
from localrun.backends.cuda.source import source


class OnGpu(torch.Tensor):
    """A tensor that says it is on a GPU."""

    device: Any = torch.device("cuda", 0)


class OwnStream:
    """In the place of torch's."""

    cuda_stream = 555

    def __init__(self, _: object) -> None: ...
    def wait_stream(self, _: object) -> None: ...


def main() -> None:
    with (
        patch("torch.empty"),
        patch("torch.cuda.get_device_capability", lambda _: (9, 0)),
        patch("torch.cuda.get_device_properties", lambda _: SimpleNamespace(multi_processor_count=3)),
        patch("torch.cuda.set_device"),
        patch("torch.cuda.Stream", OwnStream),
    ):
        device = CudaDevice(0)
    x = torch.zeros(4).as_subclass(OnGpu)
    print("tensor", x.data_ptr(), flush=True)
    kernel = device.kernel("intrinsics.cu", "check_dp4a")
    launches = [kernel.bind((3, 2, 1), (32, 1, 1), x, None, -5, 1.5, shared=shared) for shared in (0, 70_000)]
    with patch("torch.cuda.current_stream"), patch("torch.cuda.stream", lambda _: nullcontext()), device.steps():
        for launch in launches:
            launch()
    with patch.object(cuda_device, "current_stream", lambda: cuda_device.stream_of(777)):
        for launch in launches:
            launch()
    newer = compile_kernels(source("intrinsics.cu"), "intrinsics.cu", 999, {}, keep=False)
    print(newer.code_type, [line for line in bytes(newer.code).decode().splitlines() if line.startswith(".target")])


if __name__ == "__main__":
    main()
