"""What the driver is asked and how its answers are read, with a driver of our own that answers in C."""

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from localrun.backends.cuda import availability, driver
from localrun.backends.cuda.backend import CudaBackend
from localrun.backends.cuda.chosen_gpu import choose_gpu
from localrun.backends.cuda.driver import Gpu, find_gpu
from localrun.backends.gpu import emulation
from localrun.base.errors import UsageError
from localrun.base.machine import Memory
from localrun.fit import machine_rates

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
static int inside;
int cuDevicePrimaryCtxRetain(void** context, int device) { *context = (void*)9; return CONTEXT; }
int cuCtxPushCurrent_v2(void* context) { inside += context == (void*)9; return 0; }
int cuMemGetInfo_v2(size_t* free, size_t* total) {
  *free = 18ull << 30, *total = 24ull << 30;
  return inside == 1 ? 0 : 201;
}
int cuCtxPopCurrent_v2(void** context) { inside--; return 0; }
int cuDevicePrimaryCtxRelease_v2(int device) { return inside; }
int cuDeviceGetPCIBusId(char* name, int n, int device) { strncpy(name, "0000:01:00.0", n); return 0; }
"""
MANAGEMENT = """
#include <string.h>
struct memory { unsigned long long total, free, used; };
int nvmlInit_v2(void) { return 0; }
int nvmlSystemGetDriverVersion(char* name, unsigned n) { strncpy(name, "580.65.06", n); return 0; }
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


def answering(init: int = 0, count: int = 1, context: int = 0) -> str:
    return DRIVER.replace("INIT", str(init)).replace("COUNT", str(count)).replace("CONTEXT", str(context))


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


def test_results_belong_to_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one translates PTX in its own way: blocks on disk, self-tests and measured rates are not its."""
    monkeypatch.setattr(availability, "gpu", lambda: GPU)
    backend, known = CudaBackend(), []
    for version in ("580.65.06", "580.95.05"):
        monkeypatch.setattr("localrun.backends.cuda.backend.driver_version", lambda version=version: version)
        assert backend.details()["driver"] == backend.versions()["driver"] == version
        known.append((backend.rounding, machine_rates._key(backend)))
    assert all(one != another for one, another in zip(*known, strict=True))


def test_the_version_of_a_driver(install: Install) -> None:
    install({driver.DRIVER: answering(), driver.MANAGEMENT: MANAGEMENT.replace("STATUS", "0")})
    assert driver.driver_version() == "580.65.06"


@pytest.mark.parametrize("management", [None, MANAGEMENT.replace("STATUS", "3").replace("0; }", "9; }")])
def test_a_driver_that_names_no_version(install: Install, management: str | None) -> None:
    install({driver.DRIVER: answering(), driver.MANAGEMENT: management})
    assert driver.driver_version() == ""


@pytest.mark.parametrize("management", [None, MANAGEMENT.replace("STATUS", "3")])
def test_without_a_management_library_the_driver_tells_free_memory(install: Install, management: str | None) -> None:
    """So it is on boards that share main memory."""
    install({driver.DRIVER: answering(), driver.MANAGEMENT: management})
    for _ in range(2):
        found = find_gpu()
        assert isinstance(found, Gpu)
        assert found.free == 18 << 30


def test_free_memory_is_unknown_where_nobody_tells_it(install: Install) -> None:
    install({driver.DRIVER: answering(context=2), driver.MANAGEMENT: None})
    found = find_gpu()
    assert isinstance(found, Gpu)
    assert found.free is None


def test_windows_keeps_a_margin(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(availability, "gpu", lambda: GPU)
    install({driver.DRIVER: answering(), driver.MANAGEMENT: MANAGEMENT.replace("STATUS", "0")})
    monkeypatch.setattr("sys.platform", "win32")
    assert CudaBackend().memory(Memory(1 << 30, 1 << 30)) == Memory(24 << 30, (20 << 30) - (24 << 30) * 8 // 100)
    assert driver.spared_bytes(6 << 30) == 768 << 20


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


def test_gpus_are_numbered_as_cuda_does(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    install({driver.DRIVER: answering(count=2), driver.MANAGEMENT: None})
    assert [gpu.name for gpu in driver.all_gpus()] == ["GeForce 1", "?"]
    assert find_gpu(2) == "there is no GPU 2: CUDA counts 2, from 0 on"
    monkeypatch.delenv(availability.EMULATE, raising=False)
    monkeypatch.setattr(availability, "chosen", 0)
    monkeypatch.setattr(availability, "is_in_use", False)
    with pytest.raises(UsageError, match="GPU 2 cannot compute: there is no GPU 2"):
        choose_gpu(2)
    choose_gpu(None)
    choose_gpu(1)
    assert CudaBackend().torch_name == "cuda:1"
    assert CudaBackend().gpu_name == "?"
    assert "--device N takes one of 0 GeForce 1 (24.0 GiB), 1 ? (24.0 GiB)" in CudaBackend().summary()
    choose_gpu(None)
    assert availability.chosen == 1
    tried = CudaBackend()
    tried.__dict__["kernel_device"] = SimpleNamespace(has_graphs=False)
    assert "; without graphs: kernels are launched one by one; --device N" in tried.summary()
    monkeypatch.setattr(availability, "is_in_use", True)
    choose_gpu(1)
    with pytest.raises(UsageError, match="computes on another GPU"):
        choose_gpu(0)


def test_no_gpu_can_be_chosen_where_there_is_none(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    install({driver.DRIVER: None})
    monkeypatch.delenv(availability.EMULATE, raising=False)
    with pytest.raises(UsageError, match="GPU 1 cannot compute: there is no NVIDIA driver"):
        choose_gpu(1)
    monkeypatch.setenv(availability.EMULATE, "1")
    with pytest.raises(UsageError, match="the emulated GPU has no number"):
        choose_gpu(1)


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


@pytest.mark.parametrize(
    ("core", "bindings", "said"),
    [
        ("1.2.2", "13.5.0", ""),
        ("1.10.0rc1", "13.0", ""),
        (
            "0.3.1",
            "13.5.0",
            "cuda-core 0.3.1 is installed, where the kernels need 1.2 or newer, but below 2: pip install",
        ),
        ("2.0", "13.5.0", "cuda-core 2.0 is installed"),
        ("1.2.2", "12.9.1", "cuda-bindings 12.9.1 is installed, where the kernels need 13 or newer, but below 14"),
    ],
)
def test_packages_of_other_versions_are_named(
    core: str, bindings: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {"cuda-core": core, "cuda-bindings": bindings}
    monkeypatch.setattr(availability, "MODULES", ())
    monkeypatch.setattr("importlib.metadata.version", found.get)
    assert availability.why_packages_are_missing().startswith(said)
    assert bool(availability.why_packages_are_missing()) == bool(said)


def test_an_installed_package_has_no_emulator(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(availability.EMULATE, "1")
    assert availability.why_unavailable() == ""
    monkeypatch.setattr(emulation, "PARTS", (tmp_path, tmp_path / "not there"))
    said = "LOCALRUN_EMULATE_CUDA=1 needs a checkout of localrun: its emulator is not in the package"
    assert availability.why_unavailable() == said


@pytest.mark.parametrize(("name", "variable"), [("cuda", "LOCALRUN_EMULATE_CUDA"), ("mps", "LOCALRUN_EMULATE_MPS")])
def test_a_checkout_finds_its_emulator_wherever_it_is_started(name: str, variable: str, tmp_path: Path) -> None:
    """Without the tests among the folders that Python looks in."""
    code = f"from localrun.backends.registry import BACKENDS; print(BACKENDS[{name!r}].kernel_device.torch_device)"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {variable: "1"}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.stdout == "cpu\n", done.stderr


def test_a_board_that_names_no_clock_of_its_memory_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.delenv(availability.EMULATE, raising=False)
    monkeypatch.setattr("localrun.backends.cuda.backend.TorchLimitProbe", lambda *given: asked.append(given))
    for read_bytes in (1e12, 0.0):
        monkeypatch.setattr(availability, "gpu", lambda n=read_bytes: replace(GPU, read_bytes=n))
        CudaBackend().limit_probe(1)
    assert len(asked) == 1
