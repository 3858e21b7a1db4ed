"""Launches of one kernel on the stand-in for the driver; prints what it is told, and before it where the tensor is."""

import torch

from localrun.backends.cuda import cuda_device
from localrun.backends.cuda.compiler import compile_kernels
from localrun.backends.cuda.source import source
from localrun_testing.stub_gpu import StubDriver, stub_device


def main() -> None:
    device, driver = stub_device(), StubDriver()
    x = torch.zeros(4)
    print("tensor", x.data_ptr())
    kernel = device.kernel("elementwise.cu", "scale")
    launches = [kernel.bind((3, 2, 1), (32, 1, 1), x, None, -5, 1.5, shared=shared) for shared in (0, 70_000)]
    with device.steps():
        for launch in launches:
            launch()
    device.record(launches)()
    cuda_device.current_stream = lambda: cuda_device.stream_of(777)
    for launch in launches:
        launch()
    print(*driver.journal(), sep="\n")
    newer = compile_kernels(source("intrinsics.cu"), "intrinsics.cu", 999, {}, keep=False)
    print(newer.code_type, [line for line in bytes(newer.code).decode().splitlines() if line.startswith(".target")])


if __name__ == "__main__":
    main()
