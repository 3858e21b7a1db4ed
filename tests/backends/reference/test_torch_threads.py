"""Threads of torch: what a backend asks for lasts as long as its test (conftest's `torch_as_new`)."""

from collections.abc import Iterator

import pytest
import torch

from localrun.backends.reference.backend import ReferenceBackend


@pytest.fixture(scope="module")
def afterwards() -> Iterator[None]:
    yield
    assert torch.get_num_threads() == 1


@pytest.mark.usefixtures("afterwards")
def test_a_layout_tells_torch_its_threads() -> None:
    ReferenceBackend().layout(0, 1 << 30, 3)
    assert torch.get_num_threads() == 3
