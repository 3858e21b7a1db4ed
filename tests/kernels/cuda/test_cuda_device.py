"""What CudaKernel hands to cuda-core, beside a kernel that only writes it down: no GPU, no driver."""

import json
import os
import threading
from concurrent.futures import Future
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from localrun_testing import kept
from localrun_testing.emulator.cuda import EmulatedDevice
from localrun_testing.stub_gpu import OWN_STREAM, run_on_stub

from localrun.backends.cuda import cuda_device
from localrun.backends.cuda.compiler import known_arch, why_no_compiler
from localrun.backends.cuda.cuda_device import CudaDevice, CudaKernel, OfThread
from localrun.backends.gpu.device import Dim
from localrun.base.errors import LocalrunError

core = pytest.importorskip("cuda.core", reason="CUDA: no cuda-core")
STREAM = 77


class OnGpu(torch.Tensor):
    """A tensor that says it is on a GPU."""

    device: Any = torch.device("cuda", 0)


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    seen: list[Any] = []
    monkeypatch.setattr(core, "launch", lambda *given: seen.append(given))
    monkeypatch.setattr(core, "LaunchConfig", lambda **given: given)
    monkeypatch.setattr(cuda_device, "current_stream", lambda: STREAM)
    monkeypatch.setattr(cuda_device, "stream_of", lambda handle: handle)
    return seen


@pytest.fixture
def a_gpu(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, object]]:
    """A torch with a GPU; gives what threads ask of contexts and streams."""
    asked: list[tuple[str, object]] = []

    class Stream:
        cuda_stream = 555

        def __init__(self, _: object) -> None: ...
        def wait_stream(self, other: object) -> None:
            asked.append(("wait for", other))

        def synchronize(self) -> None:
            asked.append(("finish", threading.current_thread().name))

    def set_current() -> None:
        asked.append(("context", threading.current_thread().name))

    monkeypatch.setattr(torch, "empty", lambda *_, **__: None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (8, 9))
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(multi_processor_count=3))
    monkeypatch.setattr(torch.cuda, "set_device", lambda _: None)
    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _: "the usual")
    monkeypatch.setattr(torch.cuda, "stream", lambda _: nullcontext())
    monkeypatch.setattr(core, "Device", lambda _: SimpleNamespace(set_current=set_current))
    return asked


def kernel(*sizes: int) -> CudaKernel:
    file: Future[Any] = Future()
    file.set_result(SimpleNamespace(get_kernel=lambda _: SimpleNamespace(arguments_info=[(0, n) for n in sizes])))
    return CudaKernel(OfThread(), "k", file)


def on_gpu(*shape: int) -> torch.Tensor:
    return torch.zeros(*shape).as_subclass(OnGpu)


def test_arguments_are_as_wide_as_the_kernels(launched: list[Any]) -> None:
    x = on_gpu(4, 4)
    of = kernel(8, 8, 4, 4)
    launch = of.bind((3, 2, 1), (32, 1, 1), x, None, -5, 1.5, shared=64)
    launch(), launch()
    config = {"grid": (3, 2, 1), "block": (32, 1, 1), "shmem_size": 64}
    assert launched == [(STREAM, config, of.kernel, x.data_ptr(), 0, -5, 1.5)] * 2
    assert [type(value) for value in launched[0][3:]] == [int, int, np.int32, np.float32]


def test_a_grid_of_no_block_launches_nothing(launched: list[Any]) -> None:
    kernel(8).bind((0, 1, 1), (32, 1, 1), on_gpu(1))()
    assert launched == []
    run = EmulatedDevice(seed=5).kernel("intrinsics.cu", "check_dp4a").bind
    c = torch.zeros(1, dtype=torch.int32)
    run((0, 1, 1), (64, 1, 1), c, c, c, 1)()


@pytest.mark.parametrize(
    ("grid", "block"),
    [
        ((1, 1 << 16, 1), (32, 1, 1)),
        ((1, 1, 1 << 16), (32, 1, 1)),
        ((1 << 31, 1, 1), (32, 1, 1)),
        ((1, 1, 1), (33, 32, 1)),
    ],
)
def test_more_than_a_gpu_launches_is_not_bound(grid: Dim, block: Dim, launched: list[Any]) -> None:
    c = torch.zeros(1, dtype=torch.int32)
    for bind in (kernel(8).bind, EmulatedDevice(seed=5).kernel("intrinsics.cu", "check_dp4a").bind):
        with pytest.raises(ValueError, match=r"blocks, not|threads, not"):
            bind(grid, block, c, c, c, 1)
    assert launched == []


@pytest.mark.parametrize("bad", ["elsewhere", "strided", "wide", "missing"])
def test_wrong_arguments_are_not_launched(bad: str, launched: list[Any]) -> None:
    x = on_gpu(4, 4)
    arguments: dict[str, tuple[Any, ...]] = {
        "elsewhere": (torch.zeros(4), 1),
        "strided": (x.T, 1),
        "wide": (x, 1 << 31),
        "missing": (x,),
    }
    with pytest.raises(ValueError, match="argument"):
        kernel(8, 4).bind((1, 1, 1), (32, 1, 1), *arguments[bad])()
    assert launched == []


@pytest.mark.usefixtures("a_gpu")
def test_files_are_compiled_side_by_side_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    both = threading.Barrier(2)
    asked: list[tuple[Any, ...]] = []

    def compile_kernels(text: str, file: str, arch: int, defines: dict[str, int]) -> Any:
        asked.append((file, arch, defines))
        both.wait(60)
        if file == "norm.cu":
            raise LocalrunError("does not compile", "")
        return SimpleNamespace(get_kernel=lambda name: f"{name} of {file}")

    monkeypatch.setattr(cuda_device, "compile_kernels", compile_kernels)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    device = CudaDevice(0)
    assert (device.torch_device, device.arch, device.processors) == (torch.device("cuda", 0), 89, 3)
    first, broken = device.kernel("embed.cu", "embed", A=1), device.kernel("norm.cu", "rms_norm")
    assert device.kernel("embed.cu", "embed", A=1) is first
    assert first.kernel == "embed of embed.cu"
    assert device.kernel("embed.cu", "other", A=1).kernel == "other of embed.cu"
    with pytest.raises(LocalrunError, match="does not compile"):
        print(broken.kernel)
    assert sorted(asked, key=str) == [("embed.cu", 89, {"A": 1}), ("norm.cu", 89, {})]


def test_a_thread_may_begin_with_a_launch(
    monkeypatch: pytest.MonkeyPatch, launched: list[Any], a_gpu: list[tuple[str, object]]
) -> None:
    """A driver has one context for each thread, and torch's usual stream may still pack the weights."""
    code = SimpleNamespace(get_kernel=lambda _: SimpleNamespace(arguments_info=[(0, 4)]))
    monkeypatch.setattr(cuda_device, "compile_kernels", lambda *_: code)
    device = CudaDevice(0)
    launch = device.kernel("embed.cu", "embed").bind((1, 1, 1), (32, 1, 1), 7)
    a_gpu.clear()

    def step() -> None:
        with device.steps():
            launch()
            with device.steps():
                launch()
            launch()
        launch()

    thread = threading.Thread(target=step, name="engine")
    thread.start()
    thread.join()
    assert a_gpu == [("context", "engine"), ("wait for", "the usual")]
    assert [given[0] for given in launched] == [555, 555, 555, STREAM]


@pytest.mark.parametrize("bad", ["strided", "wide", "missing", "float for int"])
def test_the_emulated_device_refuses_them_too(bad: str) -> None:
    x = torch.zeros(4, 4)
    given: dict[str, tuple[Any, ...]] = {
        "strided": (x.T, x, x, 1),
        "wide": (x, x, x, 1 << 31),
        "missing": (x, x, x),
        "float for int": (x, x, x, 1.0),
    }
    dp4a = EmulatedDevice().kernel("intrinsics.cu", "check_dp4a")
    with pytest.raises(ValueError, match="argument"):
        dp4a.bind((1, 1, 1), (32, 1, 1), *given[bad])


@pytest.fixture
def kept_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the compiler makes is kept by content, for later runs too: dozens of kernels take it a second each."""
    monkeypatch.setenv("LOCALRUN_HOME", str(kept.FOLDER / "home-on-stub"))


@pytest.mark.skipif(bool(why_no_compiler()), reason=f"CUDA: {why_no_compiler()}")
@pytest.mark.usefixtures("kept_kernels")
def test_the_driver_is_told_what_was_bound() -> None:
    """Also by a graph, which is captured on the device's own stream: the stand-in refuses others, as a driver does."""
    tensor, *lines = run_on_stub("localrun_testing.stub_launches").splitlines()
    told = f"launch scale grid 3 2 1 block 32 1 1 shared %d stream %d: {tensor.split()[1]} 0 0xfffffffb 0x3fc00000"
    first, second, *later = [told % (shared, stream) for stream in (OWN_STREAM, 777) for shared in (0, 70_000)]
    ptx = f"ptx ['.target sm_{known_arch(999)}']"  # of a GPU that the compiler does not know
    eager, graph = [first, "attribute 8 is 70000", second], ["graph of 2", "graph", first, second]
    assert lines == ["kernel scale", *eager, *graph, *later, ptx]


@pytest.mark.skipif(bool(why_no_compiler()), reason=f"CUDA: {why_no_compiler()}")
@pytest.mark.usefixtures("kept_kernels")
def test_a_token_is_one_graph_between_an_upload_and_a_read(subtests: pytest.Subtests) -> None:
    """After the first, whose launches the graph has one by one; positions are those of each token."""
    own = {  # what only models like Llama 3.1 8B, Qwen3 30B A3B and Qwen3.5 4B launch
        "8B": set[str](),
        "30B-A3B": {"route", "experts", "combine"},
        "4B": {"short_conv", "delta_rule", "gated_norm"},
    }
    told = json.loads(run_on_stub("localrun_testing.stub_decode", *own))
    for shape, (first, *later) in zip(own, told, strict=True):
        with subtests.test(shape):
            launches = [line for line in first["journal"] if line.startswith("launch ")]
            for n, token in enumerate(later, 1):
                once = {"launch": 0, "graph": 1, "node": len(launches), "upload": 1, "read": 1, "wait": 2}
                assert token["position"] == n
                assert token["counts"] == once
                assert [line for line in token["journal"] if line.startswith("launch ")] == launches
            kinds = {line.split()[1] for line in launches}
            assert {"embed", "rms_norm", "linear", "rope_append", "attend_units", "gather_rows", "write_found"} <= kinds
            assert own[shape] <= kinds
