"""norm.cu beside torch in double precision, and beside Q8's own arithmetic."""

import pytest
import torch
from localrun_testing.emulator.cuda import EmulatedDevice

from localrun.backends.cuda.norms import norm, quantize
from localrun.backends.gpu.q8 import Q8
from localrun.backends.reference.norm import rms_norm

DEVICE = EmulatedDevice()
CPU = DEVICE.torch_device
NAN, INFINITY = float("nan"), float("inf")


def room(n_cols: int, rows: int) -> Q8:
    """Codes that hold something else before; groups of padding rows are zeros."""
    q8 = Q8.of(n_cols, rows, CPU)
    q8.codes.fill_(77)
    q8.groups[:, :rows] = -1
    return q8


def same_codes(a: Q8, b: Q8) -> bool:
    return torch.equal(a.codes, b.codes) and torch.equal(a.groups, b.groups)


@pytest.mark.parametrize(
    ("rows", "width", "size"),
    [(3, 100, 100), (1, 1, 1), (2, 33, 33), (2, 64, 16), (5, 288, 96), (2, 4096, 4096), (1, 8192, 8192)],
)
@pytest.mark.parametrize("with_residual", [False, True])
def test_norm_of_every_size(rows: int, width: int, size: int, with_residual: bool) -> None:
    generator = torch.Generator().manual_seed(width)
    x, weight = 3 * torch.randn(rows, width, generator=generator), torch.randn(size, generator=generator)
    residual = torch.randn(rows, width, generator=generator) if with_residual else None
    out = torch.full_like(x, NAN)
    q8 = room(width, rows) if size in (width, 96) else None
    norm(DEVICE, x, weight, 1e-5, rows, residual=residual, out=out, q8=q8)()
    want = rms_norm(x.double().unflatten(-1, (-1, size)), weight.double(), 1e-5).flatten(1)
    torch.testing.assert_close(out.double(), want + (0 if residual is None else residual), rtol=2e-6, atol=1e-6)
    if q8 is not None:
        twin, alone = Q8.of(width, rows, CPU), room(width, rows)
        twin.quantize(out)
        assert same_codes(q8, twin)
        norm(DEVICE, x, weight, 1e-5, rows, residual=residual, q8=alone)()
        assert same_codes(alone, twin)


def test_norm_in_place_of_its_operands() -> None:
    x, weight, residual = torch.randn(2, 3000), torch.rand(3000), torch.randn(2, 3000)
    want = torch.empty_like(x)
    norm(DEVICE, x, weight, 1e-6, 2, residual=residual, out=want)()
    for out, other in ((x.clone(), residual), (residual.clone(), residual)):
        source, added = (out, other) if torch.equal(out, x) else (x, out)
        norm(DEVICE, source, weight, 1e-6, 2, residual=added, out=out)()
        assert torch.equal(out, want)


def test_a_row_is_the_same_beside_any_others() -> None:
    x, weight = torch.randn(7, 640), torch.rand(640)
    out, q8 = torch.empty_like(x), room(640, 7)
    norm(DEVICE, x, weight, 1e-6, 7, out=out, q8=q8)()
    for row in range(7):
        one, codes = torch.empty(1, 640), room(640, 1)
        norm(DEVICE, x[row : row + 1], weight, 1e-6, 1, out=one, q8=codes)()
        assert torch.equal(one[0], out[row])
        assert torch.equal(codes.codes[0], q8.codes[row])
        assert torch.equal(codes.groups[:, 0], q8.groups[:, row])


@pytest.mark.parametrize(
    ("width", "seed"), [(1, 0), (31, 0), (64, 0), (100, 0), (1500, 0), (1500, 235), (1500, 247), (1500, 288)]
)
def test_quantize(width: int, seed: int) -> None:
    """Some of the last have products so near a half that 127 · (1 / max) in the place of 127 / max is another code."""
    x = torch.randn(3, width, generator=torch.Generator().manual_seed(seed)) * torch.logspace(-3, 3, 3)[:, None]
    x[1, width // 2] = 0.0
    q8, twin = room(width, 3), Q8.of(width, 3, CPU)
    quantize(DEVICE, x, 3, q8)()
    twin.quantize(x)
    assert same_codes(q8, twin)


def test_what_is_no_number_shows_in_the_scale() -> None:
    x = torch.randn(4, 96)
    x[0, 5], x[1, 40], x[2] = NAN, -INFINITY, 1e-32
    x[3, 64:] = 0.0
    q8, twin = room(96, 4), Q8.of(96, 4, CPU)
    quantize(DEVICE, x, 4, q8)()
    twin.quantize(x)
    assert same_codes(q8, twin)
    scales = q8.groups[..., 0].contiguous().view(torch.float32)
    assert scales[0, 0].isnan()
    assert scales[1, 1].isinf()
    assert bool((scales[:, 2] == 0).all())


@pytest.mark.parametrize(("seed", "poison"), [(1, 0x00), (2, 0x3C), (5, 0x7F)])
def test_the_order_of_threads_does_not_matter(seed: int, poison: int) -> None:
    x, weight = torch.randn(2, 2100), torch.rand(2100)
    outs = [torch.empty_like(x) for _ in range(2)]
    for device, out in zip((DEVICE, EmulatedDevice(seed=seed, poison=poison)), outs, strict=True):
        norm(device, x, weight, 1e-6, 2, out=out)()
    assert torch.equal(*outs)
