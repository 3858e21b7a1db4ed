"""What the self-test of an NVIDIA GPU takes when its kernels are compiled: the host's part, without a GPU.

    python -m benchmarks.self_test_time

The driver is a stand-in that computes nothing, so every result is wrong, and no case is told of it. All
kernels are compiled into a folder of their own first; then another process starts anew. Printed are its seconds of a
core by case, what it asks the driver and torch for, and a bound of the whole: the host's seconds, and for what is asked
the times below, which are generous. Needs g++ and NVRTC.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from contextlib import suppress
from typing import Any

ON_STUB = "LOCALRUN_ON_STUB_DRIVER"
# Seconds that a GPU takes, at most, for what a case asks: to load a file of machine code, a launch of a small kernel
# that nothing else waits for, and a copy of up to a few hundred kilobytes that the host waits for.
LOAD, LAUNCH, COPY = 2e-3, 20e-6, 100e-6


def main() -> None:
    if (part := os.environ.get(ON_STUB)) is not None:
        measure(told=part == "warm")
        return
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    from localrun_testing.stub_gpu import run_on_stub

    with tempfile.TemporaryDirectory() as home:
        os.environ["LOCALRUN_HOME"] = home
        for os.environ[ON_STUB] in ("cold", "warm"):
            print(run_on_stub("benchmarks.self_test_time"), end="")


def measure(*, told: bool) -> None:
    from localrun_testing.stub_gpu import StubDriver, stub_device

    from localrun.backends.cuda.self_test import CASES
    from localrun.backends.gpu.self_test import _Asking

    device, driver = stub_device(), StubDriver()
    driver.quiet()
    forgive()
    copies = count_copies()
    started, clock = time.perf_counter(), time.process_time()
    seconds: dict[str, float] = {}
    with device.steps():
        for case in CASES.values():
            with suppress(Exception):
                case(_Asking(device))
        asked = time.process_time() - clock
        for name, case in CASES.items():
            before = time.process_time()
            case(device)
            seconds[name] = time.process_time() - before
    if not told:
        return
    host, launches, files = time.process_time() - clock, driver.counts()["launch"], len(device._files)
    for name, each in sorted(seconds.items(), key=lambda item: -item[1]):
        print(f"{1e3 * each:8.1f} ms  {name}")
    print(f"{1e3 * asked:8.1f} ms  asking for all kernels")
    bound = host + files * LOAD + launches * LAUNCH + copies[0] * COPY
    print(f"{len(CASES)} cases, {files} files of kernels, {launches} launches, {copies[0]} copies that are waited for")
    print(f"host: {host:.2f} s of a core, {time.perf_counter() - started:.2f} s passed")
    print(f"with a GPU {bound:.2f} s at most (aim: 2)")


def forgive() -> None:
    """Have every comparison of numbers succeed."""
    from localrun.backends.gpu import synthetic

    plain = synthetic.off
    for module in list(sys.modules.values()):
        if getattr(module, "off", None) is plain:
            module.off = lambda *_: ""  # type: ignore[attr-defined]


def count_copies() -> list[int]:
    """Count what cases send to a device and read from it."""
    import torch

    found, tensor = [0], torch.Tensor

    def counted(plain: Any) -> Any:
        def copy(*given: Any, **named: Any) -> Any:
            found[0] += 1
            return plain(*given, **named)

        return copy

    for name in ("to", "cpu"):
        setattr(tensor, name, counted(getattr(tensor, name)))
    return found


if __name__ == "__main__":
    main()
