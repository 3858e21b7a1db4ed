"""At the widths of real models rows together are what each is alone, to the bit, whatever has used the memory.

What a thread keeps from task to task is laid out by width, layout and number of rows: narrow matrices fill none of it.
Between the memory of two threads, and behind every matrix and every row, lies a page that nobody may touch.
"""

import random

import pytest
import torch
from localrun_testing.native_ops import NativeMatrix, NativeValue, gguf_id, instruction, library, linear_op, run, sample
from torch import Tensor

WIDTHS = {
    2048: "Qwen2.5-3B",
    2560: "Qwen3-4B",
    3584: "Gemma-2-9B",
    3840: "Gemma-3-12B",
    4096: "Llama-3-8B, Mistral-7B, Qwen3-8B",
    5120: "Qwen3-14B",
    7168: "Yi-34B",
    8192: "Llama-3-70B",
    9728: "down of Qwen3-4B",
    11008: "down of Qwen2.5-3B",
    12288: "down of Qwen3-8B",
    14336: "down of Llama-3-8B, Mistral-7B, Gemma-2-9B",
    15360: "down of Gemma-3-12B",
    17408: "down of Qwen3-14B",
    28672: "down of Llama-3-70B",
}
# One type a layout of the library: those of codes, and those of floats.
CODES = (
    "Q4_0", "Q8_0", "Q4_K", "Q6_K", "Q5_0", "Q2_K", "IQ4_NL", "Q3_K", "Q4_1", "IQ2_XS", "Q5_K", "NVFP4", "Q5_1",
    "MXFP4", "IQ4_XS",
)  # fmt: skip
FLOATS = ("BF16", "F16", "F32")
# Gate and up: with sums of 16 columns in both, in one, in none; with minima; beside floats.
PAIRS = (("Q8_0", "Q4_K"), ("Q2_K", "Q3_K"), ("Q5_1", "BF16"), ("Q4_K", "Q6_K"), ("F16", "Q4_0"), ("IQ2_XS", "NVFP4"))
MOST_ROWS = 600
CHUNK_BYTES = 400 << 10  # a little more than a task takes of a weight: every weight is several tasks


def n_rows_of(types: tuple[str, ...], n_cols: int) -> int:
    """As few rows as make several tasks of each, the last group of them not whole."""
    calls = library()
    groups = 3
    for layout in (calls.layout_for(gguf_id(qtype)) for qtype in types):
        while calls.packed_bytes(layout, 16 * groups, n_cols) < CHUNK_BYTES:
            groups += 1
    return 16 * groups - 5


class Case:
    """Weights of one width that share their activations: some side by side, and gate and up of other types."""

    def __init__(self, n_cols: int, listed: tuple[str, ...], gated: tuple[str, str], n_tokens: int) -> None:
        self.listed, self.gated = (self.matrices(types, n_cols) for types in (listed, gated))
        x = torch.randn(n_tokens, n_cols, generator=torch.Generator().manual_seed(n_cols))
        self.x = NativeValue(n_tokens, n_cols, data=x)
        self.n_tokens = n_tokens

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
                instruction(linear_op(a, self.gated, places[-2:-1], act="silu_mul")),
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


def row_counts(seed: int) -> list[int]:
    """Numbers of rows with every remainder of 128, in any order: so of every tile of 2, 4, 8, 16, 32 and 64 tokens."""
    draw = random.Random(seed)
    return [draw.choice(range(remainder or 128, MOST_ROWS + 1, 128)) for remainder in draw.sample(range(128), 128)]


def test_the_counts_have_every_remainder() -> None:
    counts = row_counts(1)
    for tile in (2, 4, 6, 8, 16, 32, 128):
        assert {n % tile for n in counts} == set(range(tile))
    assert min(counts) >= 1
    assert max(counts) <= MOST_ROWS


@pytest.mark.parametrize("n_cols", WIDTHS)
def test_rows_together_are_what_each_is_alone(isa: str, n_cols: int) -> None:
    """Every layout at three widths or more, and every remainder of AMX at one; there a chunk of 512 at all of them."""
    index = list(WIDTHS).index(n_cols)
    listed = (*(CODES * 2)[index % 5 * 3 :][:3], FLOATS[index % 3])
    counts = row_counts(1)[index :: len(WIDTHS)]
    if isa == "generic":  # a tile of it is one token, and it is slow
        counts = [1 + n % 20 for n in counts[:2]]
    elif isa == "amx":
        counts += [512]
    else:  # tiles of eight tokens at most
        counts = counts[::3]
    Case(n_cols, listed, PAIRS[index % len(PAIRS)], max(counts)).check(counts)


@pytest.mark.slow
@pytest.mark.parametrize("qtype", CODES + FLOATS)
def test_every_layout_is_at_every_width(isa: str, qtype: str) -> None:
    for index, n_cols in enumerate(WIDTHS):
        other = (CODES + FLOATS)[((CODES + FLOATS).index(qtype) + 1 + index) % 18]
        counts = [*row_counts(index)[:10], 512]
        if isa == "generic":
            counts = [9]
        Case(n_cols, (qtype,), (qtype, other), max(counts)).check(counts)
