"""Facts about GPUs from NVIDIA's driver, through ctypes: no torch, no context, milliseconds."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from functools import cache
from typing import Any

from localrun.base.dataclass import dataclass

DRIVER, MANAGEMENT = ("nvcuda.dll", "nvml.dll") if sys.platform == "win32" else ("libcuda.so.1", "libnvidia-ml.so.1")
NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE
PROCESSORS, CLOCK_KHZ, MEMORY_KHZ, BUS_BITS, MAJOR, MINOR = 16, 13, 36, 37, 75, 76  # CUdevice_attribute


@dataclass(frozen=True, slots=True)
class Gpu:
    """A device. Bytes; `free` is None where the driver does not tell."""

    name: str
    arch: int  # as in sm_90: 90
    cuda: int  # the newest CUDA the driver runs, as in 13.0: 13000
    total: int
    free: int | None
    processors: int
    clock_hz: float
    read_bytes: float  # a second, by its memory's clock and width


def find_gpu(number: int = 0) -> Gpu | str:
    """The GPU that CUDA counts as `number`, or why there is none that can be used."""
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
    if number >= count_of(driver):
        return f"there is no GPU {number}: CUDA counts {count_of(driver)}, from 0 on"
    return describe(driver, number)


def count_of(driver: Any) -> int:
    """GPUs that a driver counts, once it has been initialised."""
    count = ctypes.c_int()
    driver.cuDeviceGetCount(ctypes.byref(count))
    return count.value


def all_gpus() -> list[Gpu]:
    """Every GPU that CUDA names, in its order; empty where none can be used."""
    found = [find_gpu()]
    while isinstance(found[-1], Gpu):
        found.append(find_gpu(len(found)))
    return [gpu for gpu in found if isinstance(gpu, Gpu)]


def free_now(number: int = 0) -> int | None:
    """Bytes of a GPU's memory that no program uses; None where unknown."""
    found = find_gpu(number)
    return found.free if isinstance(found, Gpu) else None


def describe(driver: Any, number: int) -> Gpu:
    """A device of a driver that has been initialised."""
    device, name, version, total = ctypes.c_int(), ctypes.create_string_buffer(256), ctypes.c_int(), ctypes.c_size_t()
    driver.cuDeviceGet(ctypes.byref(device), number)
    driver.cuDeviceGetName(name, len(name), device)
    driver.cuDriverGetVersion(ctypes.byref(version))
    driver.cuDeviceTotalMem_v2(ctypes.byref(total), device)
    has = {key: attribute(driver, device, key) for key in (PROCESSORS, CLOCK_KHZ, MEMORY_KHZ, BUS_BITS, MAJOR, MINOR)}
    return Gpu(
        name=name.value.decode(errors="replace"),
        arch=10 * has[MAJOR] + has[MINOR],
        cuda=version.value,
        total=total.value,
        free=free_bytes(driver, device),
        processors=has[PROCESSORS],
        clock_hz=1e3 * has[CLOCK_KHZ],
        read_bytes=2e3 * has[MEMORY_KHZ] * has[BUS_BITS] / 8,  # both edges of the clock
    )


def attribute(driver: Any, device: ctypes.c_int, key: int) -> int:
    value = ctypes.c_int()
    driver.cuDeviceGetAttribute(ctypes.byref(value), key, device)
    return value.value


class MemoryInfo(ctypes.Structure):
    """nvmlMemory_t"""

    _fields_ = (("total", ctypes.c_uint64), ("free", ctypes.c_uint64), ("used", ctypes.c_uint64))


def free_bytes(driver: Any, device: ctypes.c_int) -> int | None:
    """Bytes free now, as the management library reports them; of a board that shares main memory, of which it reports
    nothing, and where it is missing, as the driver does."""
    found = managed_bytes(driver, device)
    return free_in_context(driver, device) if found is None else found


def free_in_context(driver: Any, device: ctypes.c_int) -> int | None:
    """The driver answers inside a context only, which takes memory itself and a moment."""
    context, free, total = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
    if driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device):
        return None
    failed = driver.cuCtxPushCurrent_v2(context)
    if not failed:
        failed = driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
        driver.cuCtxPopCurrent_v2(ctypes.byref(context))
    driver.cuDevicePrimaryCtxRelease_v2(device)
    return None if failed else free.value


def managed_bytes(driver: Any, device: ctypes.c_int) -> int | None:
    """Bytes free now by the management library, which needs no context."""
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


def driver_version() -> str:
    """Version of the driver, such as 580.65.06, as the management library reports it; empty where it does not."""
    name = ctypes.create_string_buffer(96)
    with suppress(OSError, AttributeError):
        management = library(MANAGEMENT)
        if not (management.nvmlInit_v2() or management.nvmlSystemGetDriverVersion(name, len(name))):
            return name.value.decode(errors="replace")
    return ""


def spared_bytes(total: int) -> int:
    """Bytes to leave free: on Windows a driver moves memory to the processor's, instead of failing, when nearly all of
    its own is taken, and every step crawls."""
    return max(total * 8 // 100, 768 << 20) if sys.platform == "win32" else 0


@cache
def library(name: str) -> Any:
    """Raises OSError where it is not there."""
    return ctypes.CDLL(name)
