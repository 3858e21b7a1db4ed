"""A stand-in for a GPU, for machines without one: it computes on the CPU and refuses what CUDA would refuse.

A tensor that is made on `cuda` or sent there says so from then on, and so does all that is computed from it. Beside a
tensor of main memory, or asked for its bytes, it fails. Numbers are the CPU's: only a real GPU can prove those.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_leaves

from localrun.backends.reference.backend import ReferenceBackend
from localrun.backends.registry import BACKENDS
from localrun.base.machine import Memory

DEVICE = torch.device("cuda", 0)
MAKERS = ("tensor", "zeros", "ones", "empty", "full", "arange", "eye", "linspace")
FREE = 8 << 30
CUDA = {
    "is_available": True,
    "is_initialized": True,
    "mem_get_info": (FREE, 2 * FREE),
    "memory_reserved": 0,
    "memory_allocated": 0,
    "max_memory_allocated": 0,
    "get_device_name": "a stand-in",
    "empty_cache": None,
}
_to = torch.Tensor.to


class OnDevice(torch.Tensor):
    """A tensor of the pretended GPU."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        for one in tree_leaves((args, kwargs)):
            if isinstance(one, torch.Tensor) and not isinstance(one, OnDevice) and one.dim() > 0:
                raise RuntimeError(f"{func.__name__}: expected all tensors on one device, but one is in main memory")
        result: Any = super().__torch_function__(func, types, args, kwargs)  # type: ignore[no-untyped-call]
        return result

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return DEVICE

    def to(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        return moved(self, args, kwargs)

    def cpu(self) -> torch.Tensor:  # type: ignore[override]
        return moved(self, ("cpu",), {})

    def numpy(self, *_: Any, **__: Any) -> Any:
        raise TypeError("can't convert a cuda tensor to numpy: use .cpu() first")

    def data_ptr(self) -> int:
        raise TypeError("the address of a cuda tensor means nothing in main memory")

    __array__ = numpy


def moved(x: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    """`x.to(*args, **kwargs)`, where one of them may name the pretended GPU."""
    named = [one for one in (*args, kwargs.get("device")) if isinstance(one, (str, torch.device))]
    rest = [one for one in args if not isinstance(one, (str, torch.device))]
    others = {name: value for name, value in kwargs.items() if name != "device"}
    there = torch.device(named[0]).type == "cuda" if named else isinstance(x, OnDevice)
    plain = x.as_subclass(torch.Tensor)
    result = _to(plain, *rest, **others) if rest or others else plain
    return result.clone().as_subclass(OnDevice if there else torch.Tensor)


def on_device(maker: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def make(*args: Any, device: Any = None, **kwargs: Any) -> torch.Tensor:
        there = device is not None and torch.device(device).type == "cuda"
        made = maker(*args, device=None if there else device, **kwargs)
        return made.as_subclass(OnDevice) if there else made

    return make


class PretendedBackend(ReferenceBackend):
    """The reference on the pretended GPU."""

    name = "cuda"
    torch_name = "cuda"
    chip = "a stand-in"

    def summary(self) -> str:
        return self.chip

    def memory(self, main: Memory) -> Memory:
        free, total = torch.cuda.mem_get_info()
        return Memory(total, free)

    def peak_bytes(self) -> int:
        return 0


@contextmanager
def pretended_gpu() -> Iterator[torch.device]:
    """While it lasts, torch has one CUDA device, in every thread, and the reference runs on it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(BACKENDS, "cuda", PretendedBackend())
        for name in MAKERS:
            patch.setattr(torch, name, on_device(getattr(torch, name)))
        for name, answer in CUDA.items():
            patch.setattr(torch.cuda, name, lambda *_, answer=answer: answer)
        patch.setattr(torch.Tensor, "to", lambda x, *args, **kwargs: moved(x, args, kwargs))
        yield torch.device("cuda")
