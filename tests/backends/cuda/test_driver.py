"""What the driver is asked and how its answers are read, with a driver of our own that answers in C."""

import ctypes
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localrun.backends.cuda import availability, driver
from localrun.backends.cuda.backend import CudaBackend
from localrun.backends.cuda.driver import Gpu, find_gpu
from localrun.base.machine import Memory

DRIVER = """
#include <stddef.h>
#include <string.h>
int cuInit(unsigned flags) { return INIT; }
int cuDeviceGetCount(int* n) { *n = COUNT; return 0; }
int cuDeviceGet(int* device, int number) { *device = 40 + number; return 0; }
int cuDeviceGetName(char* name, int n, int device) { strncpy(name, device == 40 ? "GeForce 1" : "?", n); return 0; }
int cuDriverGetVersion(int* version) { *version = 13010; return 0; }
int cuDeviceTotalMem_v2(size_t* bytes, int device) { *bytes = 24ull << 30; return 0; }
int cuDeviceGetAttribute(int* value, int key, int device) {
  switch (key) {
    case 16: *value = 128; return 0;
    case 13: *value = 2520000; return 0;
    case 36: *value = 10501000; return 0;
    case 37: *value = 384; return 0;
    case 75: *value = 8; return 0;
    case 76: *value = 9; return 0;
  }
  return 1;
}
int cuDeviceGetPCIBusId(char* name, int n, int device) { strncpy(name, "0000:01:00.0", n); return 0; }
"""
MANAGEMENT = """
#include <string.h>
struct memory { unsigned long long total, free, used; };
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, void** device) {
  *device = (void*)7;
  return strcmp(bus, "0000:01:00.0");
}
int nvmlDeviceGetMemoryInfo(void* device, struct memory* found) {
  found->total = 24ull << 30, found->free = 20ull << 30, found->used = 4ull << 30;
  return device == (void*)7 ? STATUS : 1;
}
"""
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts libraries in the place of NVIDIA's; None: there is none."""

    def compiled(text: str, name: str) -> Any:
        source, library = tmp_path / f"{name}.c", tmp_path / f"{name}.so"
        source.write_text(text)
        subprocess.run(["gcc", "-w", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
        return ctypes.CDLL(str(library))

    def put(found: dict[str, str | None]) -> None:
        libraries = {name: compiled(text, str(index)) for index, (name, text) in enumerate(found.items()) if text}

        def library(name: str) -> Any:
            if name not in libraries:
                raise OSError(name)
            return libraries[name]

        monkeypatch.setattr(driver, "library", library)

    return put


def answering(init: int = 0, count: int = 1) -> str:
    return DRIVER.replace("INIT", str(init)).replace("COUNT", str(count))


def test_a_gpu_is_what_its_driver_says(install: Install) -> None:
    install({driver.DRIVER: answering(), driver.MANAGEMENT: MANAGEMENT.replace("STATUS", "0")})
    assert find_gpu() == Gpu(
        name="GeForce 1",
        arch=89,
        cuda=13010,
        total=24 << 30,
        free=20 << 30,
        processors=128,
        clock_hz=2.52e9,
        read_bytes=2 * 10.501e9 * 384 / 8,
    )


@pytest.mark.parametrize("management", [None, MANAGEMENT.replace("STATUS", "3")])
def test_free_memory_is_unknown_without_a_management_library(install: Install, management: str | None) -> None:
    install({driver.DRIVER: answering(), driver.MANAGEMENT: management})
    found = find_gpu()
    assert isinstance(found, Gpu)
    assert found.free is None


def test_free_memory_is_asked_each_time(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    """The device is looked for once, but other programs come and go."""
    monkeypatch.setattr(availability, "gpu", lambda: GPU)
    management = MANAGEMENT.replace("STATUS", "0").replace("20ull << 30", "5ull << 30")
    install({driver.DRIVER: answering(), driver.MANAGEMENT: management})
    assert CudaBackend().memory(Memory(1 << 30, 1 << 30)) == Memory(24 << 30, 5 << 30)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "no NVIDIA driver"),
        (answering(init=100), "no NVIDIA GPU"),
        (answering(count=0), "no NVIDIA GPU"),
        (answering(init=999), "error 999"),
    ],
)
def test_why_there_is_no_gpu(install: Install, text: str | None, said: str) -> None:
    install({driver.DRIVER: text})
    found = find_gpu()
    assert isinstance(found, str)
    assert said in found


GPU = Gpu("GeForce 1", 89, 13010, 24 << 30, 20 << 30, 128, 2.52e9, 1e12)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A machine with a GPU, a torch, and packages."""

    def have(gpu: Gpu | str = GPU, torch: str = "", packages: str = "", nvrtc: str = "") -> None:
        monkeypatch.delenv(availability.EMULATE, raising=False)
        monkeypatch.setattr(availability, "gpu", lambda: gpu)
        monkeypatch.setattr(availability, "why_torch_lacks_cuda", lambda: torch)
        monkeypatch.setattr(availability, "why_packages_are_missing", lambda: packages)
        monkeypatch.setattr(availability, "why_no_nvrtc", lambda: nvrtc)

    return have


def test_the_first_thing_in_the_way_is_named(machine: Callable[..., None]) -> None:
    machine()
    assert availability.why_unavailable() == ""
    machine("there is no NVIDIA driver")
    assert availability.why_unavailable() == "there is no NVIDIA driver"
    machine(Gpu("GTX 1080", 61, 13000, 8 << 30, None, 20, 1.6e9, 3e11))
    assert "GTX 1080 (sm_61) is older than Turing" in availability.why_unavailable()
    machine(Gpu("GeForce 1", 89, 12080, 24 << 30, None, 128, 2.5e9, 1e12))
    assert "knows CUDA 12.8: install one for CUDA 13.0" in availability.why_unavailable()
    machine(replace(GPU, free=300 << 20))
    assert "only 0.29 GiB of the 24.0 GiB of GeForce 1 are free" in availability.why_unavailable()
    machine(nvrtc="NVRTC is not installed")
    assert availability.why_unavailable() == "NVRTC is not installed"
    machine(torch="PyTorch has none", packages="neither")
    assert availability.why_unavailable() == "PyTorch has none"
    machine(packages="cuda.core is not installed")
    assert availability.why_unavailable() == "cuda.core is not installed"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cuda: Optional[str] = None\n", "has no CUDA"),
        ("cuda: Optional[str] = '12.6'\n", "is built for CUDA 12.6"),
        ("cuda: Optional[str] = '13.0'\n", ""),
        ("cuda = '13.2'\n", ""),
    ],
)
def test_what_torch_is_built_for(text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "version.py").write_text(f"__all__ = ['cuda']\n{text}")
    monkeypatch.setattr(availability, "torch_folder", lambda: tmp_path)
    found = availability.why_torch_lacks_cuda()
    assert said in found
    assert bool(said) == bool(found)


def test_packages_that_are_missing_are_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(availability, "MODULES", ("os", "localrun.none", "none.at.all"))
    said = availability.why_packages_are_missing()
    assert said == "localrun.none and none.at.all are not installed: pip install 'localrun[cuda]'"


def test_an_installed_package_has_no_emulator(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert availability.why_not_emulated() == ""
    monkeypatch.setattr(availability, "RUNTIME", tmp_path)
    assert "needs a checkout of localrun" in availability.why_not_emulated()
