"""What a device is asked before a model is put on it. With a real one: test_gpu."""

import pytest
import torch
from localrun_testing.pretend_gpu import FREE, OnDevice, pretended_gpu

from localrun.backends.cuda import availability
from localrun.backends.cuda.backend import CudaBackend
from localrun.backends.metal import availability as metal
from localrun.backends.reference.ops import ReferenceOps
from localrun.backends.reference.pool import KVPool
from localrun.backends.registry import BACKENDS
from localrun.base.errors import DoesNotFitError, EngineError, LocalrunError
from localrun.base.machine import Memory, memory
from localrun.base.request import BackendName, LoadOptions, Request
from localrun.base.resources import resource
from localrun.client.local import LocalClient
from localrun.model.load import Loader


def client(backend: BackendName, ctx: int | None = 512) -> LocalClient:
    return LocalClient(LoadOptions(resource("localrun/builtin/localrun-tiny.gguf"), backend=backend, ctx=ctx))


def test_a_device_that_cannot_be_used_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("MPS error: no kernel image is available\nand more")

    monkeypatch.setattr(metal, "why_unavailable", lambda: "")
    monkeypatch.setattr(torch.backends.mps, "is_built", lambda: True)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch, "ones", broken)
    said = "torch cannot use the Apple GPU: MPS error: no kernel image is available"
    assert BACKENDS["mps"].self_test() == said
    with pytest.raises(LocalrunError, match=said):
        client("mps")


@pytest.mark.parametrize(("name", "said"), [("cuda", "there is no NVIDIA driver"), ("mps", "machine has no Apple GPU")])
def test_a_missing_device_is_said_so(monkeypatch: pytest.MonkeyPatch, name: BackendName, said: str) -> None:
    monkeypatch.setattr(availability, "gpu", lambda: "there is no NVIDIA driver")
    with pytest.raises(LocalrunError, match=said):
        client(name)


@pytest.mark.parametrize(
    ("where", "said"), [((KVPool, "__init__"), "for the KV cache"), ((Loader, "weights"), "of weights")]
)
def test_no_memory_to_load_is_said_so(where: tuple[type, str], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(*_: object) -> None:
        raise RuntimeError("MPS backend out of memory (MPS allocated: 5.61 GB)")

    monkeypatch.setattr(*where, no_room)
    with pytest.raises(DoesNotFitError, match=said) as caught:
        client("reference")
    assert caught.value.__context__ is None, "torch's error holds on to what was allocated"


def test_the_memory_of_a_device_is_what_a_plan_counts() -> None:
    with pretended_gpu(), client("cuda", ctx=None) as one:
        assert one.model.plan.budget_bytes == FREE != memory().available
        assert one.view().memory[-1].measured == 0, "main memory is not the device's"
        assert one.model.backend.summary() == "a stand-in"
        assert "a stand-in" in one.model.backend.rounding, "another chip rounds otherwise: blocks on disk are not its"


def test_what_torch_keeps_for_later_counts_as_free(monkeypatch: pytest.MonkeyPatch) -> None:
    with pretended_gpu():
        monkeypatch.setattr(torch.cuda, "memory_reserved", lambda *_: 3 << 30)
        monkeypatch.setattr(torch.cuda, "memory_allocated", lambda *_: 1 << 30)
        assert CudaBackend().memory(memory()).available == FREE + (2 << 30)


class SmallGpu(CudaBackend):
    """An emulated one with memory of its own."""

    in_main_memory = False
    wrong = ""

    def memory(self, main: Memory) -> Memory:
        return Memory(1 << 30, 1 << 20)

    def self_test(self) -> str:
        return self.wrong


@pytest.fixture
def small_gpu(monkeypatch: pytest.MonkeyPatch) -> SmallGpu:
    monkeypatch.setenv(availability.EMULATE, "1")
    monkeypatch.setitem(BACKENDS, "cuda", gpu := SmallGpu())
    return gpu


def test_what_a_gpu_has_no_memory_for_runs_on_the_processor(small_gpu: SmallGpu) -> None:
    with client("auto") as one:
        assert one.info.backend == processor_backend()
        assert [note for note in one.info.notes if note.startswith("slow: the cuda backend cannot run this: ")]
    with pytest.raises(DoesNotFitError):
        client("cuda")


def test_a_gpu_that_computes_something_else_is_not_used(small_gpu: SmallGpu) -> None:
    small_gpu.wrong = "the self-test of the CUDA kernels failed"
    with client("auto") as one:
        assert one.info.backend == processor_backend()
        assert f"slow: the cuda backend cannot run this: {small_gpu.wrong}" in one.info.notes
    with pytest.raises(LocalrunError, match=small_gpu.wrong):
        client("cuda")


def processor_backend() -> str:
    return "reference" if BACKENDS["cpu"].why_unavailable() else "cpu"


def test_products_are_exact_whatever_was_set_before() -> None:
    torch.set_float32_matmul_precision("high")
    with client("reference"):
        assert torch.get_float32_matmul_precision() == "highest"


def test_a_step_without_memory_ends_its_answer_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    request = Request(prompt="Hello!", max_tokens=3)

    def no_room(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    with client("reference") as one:
        with monkeypatch.context() as patch:
            patch.setattr(ReferenceOps, "matmul", no_room)
            with pytest.raises(EngineError, match="memory ran out"):
                list(one.generate(request))
        assert list(one.generate(request))


def test_the_stand_in_refuses_what_cuda_refuses() -> None:
    with pretended_gpu() as device:
        there, here = torch.zeros(3, device=device), torch.zeros(3)
        assert isinstance(there + 1, OnDevice)
        assert (there.sum() + torch.tensor(1.0)).device.type == "cuda"
        assert here.to(device).device.type == there.to("cpu").to(device).device.type == "cuda"
        assert type(there.cpu()) is type(there.to("cpu")) is torch.Tensor
        for refused in (
            lambda: there + here,
            lambda: torch.cat([here, there]),
            lambda: there[here.long()],
            lambda: there.numpy(),
            lambda: there.data_ptr(),
        ):
            with pytest.raises((RuntimeError, TypeError)):
                refused()
    assert torch.zeros(3).to("cpu").numpy().sum() == 0
