"""At the widths of real models rows together are what each is alone, to the bit, whatever has used the memory.

What a thread keeps from task to task is laid out by width, layout and number of rows: narrow matrices fill none of it.
Between the memory of two threads, and behind every matrix and every row, lies a page that nobody may touch.
"""

import pytest
import torch
from localrun_testing.native_ops import NativeMatrix, NativeValue, instruction, linear_op, run, sample
from localrun_testing.real_widths import CODES, FLOATS, MOST_ROWS, PAIRS, WIDTHS, listed_at, n_rows_of, row_counts
from torch import Tensor


class Case:
    """Weights of one width that share their activations: some side by side, and gate and up of other types."""

    def __init__(
        self, n_cols: int, listed: tuple[str, ...], gated: tuple[str, str], n_tokens: int, act: str = "silu_mul"
    ) -> None:
        self.listed, self.gated = (self.matrices(types, n_cols) for types in (listed, gated))
        x = torch.randn(n_tokens, n_cols, generator=torch.Generator().manual_seed(n_cols))
        self.x = NativeValue(n_tokens, n_cols, data=x)
        self.n_tokens, self.act = n_tokens, act

    @staticmethod
    def matrices(types: tuple[str, ...], n_cols: int) -> list[NativeMatrix]:
        n_rows = n_rows_of(types, n_cols)
        return [NativeMatrix(sample(t, n_rows, n_cols, seed), t, n_cols) for seed, t in enumerate(types)]

    def outputs(self, n: int) -> list[NativeValue]:
        return [NativeValue(n, m.c.n_rows) for m in (*self.listed, self.gated[0], self.listed[0])]

    def products(self, steps: int, n: int, threads: int = 1) -> list[Tensor]:
        """Of the first steps · n rows, n at once; the first weight once more, after the others."""
        outs = self.outputs(steps * n)
        keep, instructions = [], []
        for first in range(0, steps * n, n):
            a, *places = (value.from_row(first) for value in (self.x, *outs))
            keep += [a, *places]
            instructions += [
                instruction(linear_op(a, self.listed, places[:-2])),
                instruction(linear_op(a, self.gated, places[-2:-1], act=self.act)),
                instruction(linear_op(a, self.listed[:1], places[-1:])),
            ]
        run(instructions, n, threads)
        return [out.data for out in outs]

    def check(self, counts: list[int]) -> None:
        alone = self.products(max(counts), 1)
        assert torch.equal(alone[0], alone[-1])
        for n in counts:
            for number, (found, wanted) in enumerate(zip(self.products(1, n, 1 + n % 2), alone, strict=True)):
                wrong = (found != wanted[:n]).any(1).nonzero().flatten().tolist()
                assert not wrong, f"weight {number} of {n} rows: rows {wrong[:8]} … are not what they are alone"


def test_the_counts_have_every_remainder() -> None:
    counts = row_counts(1)
    for tile in (2, 4, 6, 8, 16, 32, 128):
        assert {n % tile for n in counts} == set(range(tile))
    assert min(counts) >= 1
    assert max(counts) <= MOST_ROWS


@pytest.mark.parametrize("n_cols", WIDTHS)
def test_rows_together_are_what_each_is_alone(isa: str, n_cols: int) -> None:
    """Every layout at two widths or more, half of AMX's remainders; there a chunk of 512 at some of the widths, and
    97 at all, which once met what it should not have."""
    index = list(WIDTHS).index(n_cols)
    counts = row_counts(1)[index :: len(WIDTHS)]
    if isa == "generic":  # a tile of it is one token, and it is slow
        counts = [1 + n % 20 for n in counts[:2]]
    elif isa == "amx":
        # a whole slice and a part at most, but for the chunk
        counts = [*(1 + (n - 1) % 256 for n in counts[::2]), 97, *([min(512, MOST_ROWS)] if index % 3 == 0 else [])]
    else:  # tiles of eight tokens at most
        counts = [1 + (n - 1) % 128 for n in counts[::4]]
    Case(n_cols, listed_at(index), PAIRS[index % len(PAIRS)], max(counts)).check(counts)


@pytest.mark.parametrize("gated", [("MXFP4", "MXFP4"), ("MXFP4", "BF16")], ids="-".join)
def test_a_width_that_is_no_multiple_of_256(isa: str, gated: tuple[str, str]) -> None:
    """2880, of gpt-oss: the last block of a row is of 64 columns."""
    counts = [3, 20] if isa == "generic" else [7, 97, 130] if isa == "amx" else [5, 66, 97]
    Case(2880, ("MXFP4", "Q8_0", "Q5_1", "BF16"), gated, max(counts), act="clamped_silu_mul").check(counts)


@pytest.mark.slow
@pytest.mark.parametrize("n_cols", WIDTHS)
def test_every_remainder(isa: str, n_cols: int) -> None:
    index = list(WIDTHS).index(n_cols)
    counts = [*row_counts(1)[index :: len(WIDTHS)], min(512, MOST_ROWS)]
    if isa == "generic":  # it is slow, and has one code for any number of rows
        counts = counts[::8]
    Case(n_cols, listed_at(index), PAIRS[index % len(PAIRS)], max(counts)).check(counts)


@pytest.mark.slow
@pytest.mark.parametrize("qtype", CODES + FLOATS)
def test_every_layout_is_at_every_other_width(isa: str, qtype: str) -> None:
    """Layouts take turns, so that every width has half of them."""
    layouts = CODES + FLOATS
    for index, n_cols in list(enumerate(WIDTHS))[layouts.index(qtype) % 2 :: 2]:
        other = layouts[(layouts.index(qtype) + 1 + index) % len(layouts)]
        counts = [9] if isa == "generic" else [1 + n % 128 for n in row_counts(index)[:3]]
        if isa == "amx":
            counts += [208]  # a whole slice and a part
        Case(n_cols, (qtype,), (qtype, other), max(counts)).check(counts)
