"""What GPUs do to each number by itself, beside torch."""

import pytest
import torch
import torch.nn.functional as F
from localrun_testing.gpu_platforms import PLATFORMS, Platform

from localrun.backends.gpu import elementwise

ENDS = torch.tensor([0.0, -0.0, 1e-30, -1e4, 1e4, float("inf"), float("nan")])


@pytest.mark.parametrize("width", [1, 255, 600])
@pytest.mark.parametrize("platform", PLATFORMS, ids=str)
def test_like_torch(platform: Platform, width: int) -> None:
    device = platform.usual
    x, gate, wide = torch.randn(3, width), 5 * torch.randn(3, width), torch.randn(3, width + 9)
    gate[0, : len(ENDS)] = ENDS[:width]
    out = torch.full_like(x, float("nan"))
    elementwise.sigmoid_mul(device, x, gate, out)()
    torch.testing.assert_close(out, x * gate.sigmoid(), rtol=1e-6, atol=1e-30, equal_nan=True)
    elementwise.gelu_mul(device, gate, wide, 5, out)()
    want = F.gelu(gate.double(), approximate="tanh") * wide[:, 5 : 5 + width]
    torch.testing.assert_close(out.double(), want, rtol=2e-6, atol=3e-6, equal_nan=True)
    elementwise.scale(device, x, 0.37, out)()
    assert torch.equal(out, x * 0.37)


@pytest.mark.parametrize("width", [1, 255, 600])
@pytest.mark.parametrize("platform", PLATFORMS, ids=str)
def test_rows_are_gathered(platform: Platform, width: int) -> None:
    x, out = torch.randn(5, width), torch.full((4, width), 7.0)
    rows, places = (torch.tensor(numbers, dtype=torch.int32) for numbers in ([4, 0, 4, 2, 1], [2, 0, 1, -1, -1]))
    elementwise.gather_rows(platform.usual, x, rows, places, out)()
    assert torch.equal(out[:3], x[[0, 4, 4]])
    assert (out[3] == 7).all()
