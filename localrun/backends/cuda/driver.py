"""Facts about the first GPU from NVIDIA's driver, through ctypes: no torch, no context, milliseconds."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

DRIVER, MANAGEMENT = ("nvcuda.dll", "nvml.dll") if sys.platform == "win32" else ("libcuda.so.1", "libnvidia-ml.so.1")
NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE
PROCESSORS, CLOCK_KHZ, MEMORY_KHZ, BUS_BITS, MAJOR, MINOR = 16, 13, 36, 37, 75, 76  # CUdevice_attribute


@dataclass(frozen=True, slots=True)
class Gpu:
    """The device that CUDA counts as number 0. Bytes; `free` is None where the driver does not tell."""

    name: str
    arch: int  # as in sm_90: 90
    cuda: int  # the newest CUDA the driver runs, as in 13.0: 13000
    total: int
    free: int | None
    processors: int
    clock_hz: float
    read_bytes: float  # a second, by its memory's clock and width


def find_gpu() -> Gpu | str:
    """The GPU, or why there is none that can be used."""
    try:
        driver = library(DRIVER)
    except OSError:
        return "there is no NVIDIA driver"
    code = driver.cuInit(0)
    count = ctypes.c_int()
    if code == NO_DEVICE or (code == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value == 0):
        return "there is no NVIDIA GPU that CUDA may use"
    if code != 0:
        return f"the NVIDIA driver does not start (error {code}): restart the machine, or reinstall the driver"
    return describe(driver)


def free_now() -> int | None:
    """Bytes of the GPU's memory that no program uses; None where unknown."""
    found = find_gpu()
    return found.free if isinstance(found, Gpu) else None


def describe(driver: Any) -> Gpu:
    """Device 0 of a driver that has been initialised."""
    device, name, version, total = ctypes.c_int(), ctypes.create_string_buffer(256), ctypes.c_int(), ctypes.c_size_t()
    driver.cuDeviceGet(ctypes.byref(device), 0)
    driver.cuDeviceGetName(name, len(name), device)
    driver.cuDriverGetVersion(ctypes.byref(version))
    driver.cuDeviceTotalMem_v2(ctypes.byref(total), device)
    number = {
        key: attribute(driver, device, key) for key in (PROCESSORS, CLOCK_KHZ, MEMORY_KHZ, BUS_BITS, MAJOR, MINOR)
    }
    return Gpu(
        name=name.value.decode(errors="replace"),
        arch=10 * number[MAJOR] + number[MINOR],
        cuda=version.value,
        total=total.value,
        free=free_bytes(driver, device),
        processors=number[PROCESSORS],
        clock_hz=1e3 * number[CLOCK_KHZ],
        read_bytes=2e3 * number[MEMORY_KHZ] * number[BUS_BITS] / 8,  # both edges of the clock
    )


def attribute(driver: Any, device: ctypes.c_int, key: int) -> int:
    value = ctypes.c_int()
    driver.cuDeviceGetAttribute(ctypes.byref(value), key, device)
    return value.value


class MemoryInfo(ctypes.Structure):
    """nvmlMemory_t"""

    _fields_ = (("total", ctypes.c_uint64), ("free", ctypes.c_uint64), ("used", ctypes.c_uint64))


def free_bytes(driver: Any, device: ctypes.c_int) -> int | None:
    """Bytes free now, as the management library reports them: the driver answers inside a context only."""
    bus, handle, found = ctypes.create_string_buffer(64), ctypes.c_void_p(), MemoryInfo()
    with suppress(OSError):
        management = library(MANAGEMENT)
        failed = (
            driver.cuDeviceGetPCIBusId(bus, len(bus), device)
            or management.nvmlInit_v2()
            or management.nvmlDeviceGetHandleByPciBusId_v2(bus, ctypes.byref(handle))
            or management.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(found))
        )
        return None if failed else int(found.free)
    return None


@cache
def library(name: str) -> Any:
    """Raises OSError where it is not there."""
    return ctypes.CDLL(name)
