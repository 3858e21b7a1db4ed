"""What a device is asked before a model is put on it. With a real one: test_gpu."""

import pytest
import torch

from localrun.base.errors import DoesNotFitError, LocalrunError
from localrun.base.request import Backend, LoadOptions
from localrun.base.resources import resource
from localrun.client.local import LocalClient
from localrun.engine.backend import GPUS, why_no_gpu
from localrun.ops.kv_pool import KVPool


def client(backend: Backend) -> LocalClient:
    return LocalClient(LoadOptions(resource("localrun/builtin/localrun-tiny.gguf"), backend=backend, ctx=512))


def test_a_device_that_cannot_be_used_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("CUDA error: no kernel image is available\nCompile with TORCH_USE_CUDA_DSA")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch, "ones", broken)
    said = "torch cannot use the CUDA device: CUDA error: no kernel image is available"
    assert why_no_gpu("cuda") == said
    with pytest.raises(LocalrunError, match=said):
        client("cuda")


@pytest.mark.parametrize("name", GPUS)
def test_a_missing_device_is_said_so(monkeypatch: pytest.MonkeyPatch, name: Backend) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(LocalrunError, match=f"this machine has no {GPUS[name]}"):
        client(name)


def test_no_memory_for_the_cache_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(KVPool, "__init__", no_room)
    with pytest.raises(DoesNotFitError, match="KV cache") as caught:
        client("reference")
    assert caught.value.__context__ is None, "torch's error holds on to what was allocated"
