"""The reference computes with what every device has: no float64 and no complex numbers, which MPS lacks."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from localrun_testing.oracle import token_ids
from localrun_testing.stepper import Stepper
from localrun_testing.tiny_models import VOCAB_SIZE
from torch.utils._python_dispatch import TorchDispatchMode

from localrun.backends.reference.ops import ReferenceOps
from localrun.backends.reference.rows import RowReferenceOps

FORBIDDEN = {torch.float64, torch.complex32, torch.complex64, torch.complex128}


class ForbidWideTypes(TorchDispatchMode):
    """Raises when any operation makes a tensor that MPS could not hold."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch leaves it untyped

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in tensors_in(result):
            assert tensor.dtype not in FORBIDDEN, f"{func} made a tensor of {tensor.dtype}"
        return result


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)


@pytest.mark.parametrize("ops", [ReferenceOps, RowReferenceOps])
@pytest.mark.parametrize(
    ("name", "qtype"), [("gemma3", "F32"), ("phi3-longrope", "F16"), ("llama", "Q8_0"), ("smollm3", "BF16")]
)
def test_load_prefill_and_decode(
    name: str, qtype: str, ops: type[ReferenceOps], tiny_gguf: Callable[..., Path]
) -> None:
    path = tiny_gguf(name, qtype)
    with ForbidWideTypes():
        Stepper(path, codec="f16", ops=ops).logits(token_ids(12, VOCAB_SIZE), [8, 1, 1, 2])


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex64])
def test_the_guard_bites(dtype: torch.dtype) -> None:
    with pytest.raises(AssertionError, match="made a tensor"), ForbidWideTypes():
        torch.ones(2).to(dtype)
