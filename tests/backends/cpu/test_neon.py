"""Arm by an emulator: layouts, the products of the generic kernels, and rows as wide as real models."""

import struct
import subprocess

import pytest
import torch
from localrun_testing.arithmetics import rounded
from localrun_testing.instruction_sets import emulated
from localrun_testing.native_ops import decoded, sample, type_number
from localrun_testing.real_widths import CODES, FLOATS, PAIRS, WIDTHS, listed_at, n_rows_of
from torch import Tensor

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("emulated Arm")]  # its library is built once

N_ROWS, N_COLS, N_TOKENS = 53, 512, 11
ARITHMETICS = {"generic": "int8/32", "neon": "int8+4/32", "i8mm": "int8+4/32"}


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command that runs the driver."""
    return emulated(tmp_path_factory.mktemp("neon"), "generic;neon;i8mm", "linear_driver.cpp")


def run(command: list[str], isa: str, raws: dict[str, Tensor], x: Tensor, counts: list[int]) -> Tensor:
    """What the driver makes of weights by their types, uint8 [n_rows, row_bytes], and of x, f32 [tokens, n_cols]."""
    n_rows = len(next(iter(raws.values())))
    header = [len(raws), n_rows, x.shape[1], len(x), len(counts), *map(type_number, raws), *counts]
    weights = b"".join(raw.numpy().tobytes() for raw in raws.values())
    data = struct.pack(f"<{len(header)}i", *header) + weights + x.numpy().tobytes()
    done = subprocess.run([*command, isa], input=data, capture_output=True, timeout=600)
    assert done.returncode == 0, done.stderr.decode()
    return torch.frombuffer(bytearray(done.stdout), dtype=torch.float32)


def rows(n: int, n_cols: int) -> Tensor:
    """Neighbours of any size, so that some are outliers of their group."""
    generator = torch.Generator().manual_seed(2)
    return torch.randn(n, n_cols, generator=generator) * torch.randn(n, n_cols, generator=generator).mul(2).exp()


@pytest.mark.parametrize("qtype", CODES + FLOATS)
def test_products_are_those_of_what_activations_are_rounded_to(driver: list[str], qtype: str) -> None:
    """The driver also holds each to the bits of its scalar twin."""
    raw, x = sample(qtype, N_ROWS, N_COLS), rows(N_TOKENS, N_COLS)
    assert not torch.equal(rounded(x, "int8+4/32"), rounded(x, "int8/32"))  # there are outliers
    products = {}
    for isa, arithmetic in ARITHMETICS.items():
        found = run(driver, isa, {qtype: raw}, x, [2, 3, N_TOKENS])
        weight, products[isa] = found[: N_ROWS * N_COLS].view(N_ROWS, -1), found[N_ROWS * N_COLS :].view(N_TOKENS, -1)
        assert torch.equal(weight, decoded(qtype, raw, N_COLS))
        seen = rounded(x, arithmetic).double() if qtype in CODES else x.double()
        terms = seen.abs() @ weight.double().abs().T  # cancellation does not count
        assert float(((products[isa] - seen @ weight.double().T).abs() / terms).max()) < 2e-6
    assert torch.equal(products["neon"], products["i8mm"])


@pytest.mark.parametrize(("n_cols", "isa"), [(n, ("neon", "i8mm")[i % 2]) for i, n in enumerate(WIDTHS)])
def test_rows_together_are_what_each_is_alone(driver: list[str], n_cols: int, isa: str) -> None:
    """The driver compares. Tiles are of four tokens at most, and tasks of 48."""
    index = list(WIDTHS).index(n_cols)
    for types in (listed_at(index), PAIRS[index % len(PAIRS)]):
        n_rows = n_rows_of(types, n_cols)
        raws = {qtype: sample(qtype, n_rows, n_cols) for qtype in types}
        run(driver, isa, raws, rows(51 + index % 4, n_cols), [2 + index % 3, 51 + index % 4])
