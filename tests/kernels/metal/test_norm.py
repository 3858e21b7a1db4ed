"""norm.metal beside torch in double precision."""

import pytest
import torch
from localrun_testing.emulator.metal import emulated_device

from localrun.backends.metal.norms import norm
from localrun.backends.reference.norm import rms_norm

DEVICE = emulated_device()


@pytest.mark.parametrize(
    ("rows", "width", "size"),
    [(3, 100, 100), (1, 1, 1), (2, 33, 33), (2, 64, 16), (5, 288, 96), (2, 4096, 4096), (1, 8195, 8195)],
)
@pytest.mark.parametrize("with_residual", [False, True])
def test_norm_of_every_size(rows: int, width: int, size: int, with_residual: bool) -> None:
    generator = torch.Generator().manual_seed(width)
    x, weight = 3 * torch.randn(rows, width, generator=generator), torch.randn(size, generator=generator)
    residual = torch.randn(rows, width, generator=generator) if with_residual else None
    memory = torch.full((rows + 1, width), torch.nan)
    norm(DEVICE, x, weight, 1e-5, rows, residual=residual, out=memory[:rows])()
    want = rms_norm(x.double().unflatten(-1, (-1, size)), weight.double(), 1e-5).flatten(1)
    want += 0 if residual is None else residual
    torch.testing.assert_close(memory[:rows].double(), want, rtol=2e-6, atol=1e-6)
    assert memory[rows:].isnan().all()


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
    out = torch.empty_like(x)
    norm(DEVICE, x, weight, 1e-6, 7, out=out)()
    for row in range(7):
        one = torch.empty(1, 640)
        norm(DEVICE, x[row : row + 1], weight, 1e-6, 1, out=one)()
        assert torch.equal(one[0], out[row])


def test_what_is_no_number_spoils_its_row() -> None:
    x, out = torch.randn(3, 300), torch.empty(3, 300)
    x[1, 7] = torch.nan
    norm(DEVICE, x, torch.ones(300), 1e-6, 3, out=out)()
    assert out.isnan().all(1).tolist() == [False, True, False]


@pytest.mark.parametrize(("seed", "poison"), [(1, 0x00), (2, 0x3C), (5, 0x7F)])
def test_the_order_of_threads_does_not_matter(seed: int, poison: int) -> None:
    x, weight = torch.randn(2, 2100), torch.rand(2100)
    outs = [torch.empty_like(x) for _ in range(2)]
    for device, out in zip((DEVICE, emulated_device(seed=seed, poison=poison)), outs, strict=True):
        norm(device, x, weight, 1e-6, 2, out=out)()
    assert torch.equal(*outs)
