"""Weights as wide as those of real models, of every layout, and numbers of rows with every remainder."""

import random

from .native_ops import AFFINE_TYPES, F32_TYPES, ZERO_POINT_TYPES, library, type_number

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
    "Q4_0", "Q8_0", "Q4_K", "Q6_K", "Q5_0", "Q2_K", "IQ4_NL", "Q3_K", "Q4_1", "Q8_K", "Q5_K", "NVFP4", "Q5_1",
    "MXFP4", "IQ4_XS", *AFFINE_TYPES,
    *ZERO_POINT_TYPES, *F32_TYPES,
)  # fmt: skip
FLOATS = ("BF16", "F16", "F32", "F8_G128", "F8_E4M3", "MXFP8", "NF4_G64")
# Gate and up: with sums of 16 columns in both, in one, in none; with minima; beside floats.
PAIRS = (
    ("Q8_0", "Q4_K"), ("Q2_K", "Q3_K"), ("Q5_1", "BF16"), ("Q4_K", "Q6_K"), ("F16", "Q4_0"), ("Q8_K", "NVFP4"),
    ("INT8_G64", "INT5_G64"), ("INT4_ZP_G128", "INT8_ZP_G32"),
)  # fmt: skip
MOST_ROWS = 600
CHUNK_BYTES = 400 << 10  # a little more than a task takes of a weight: every weight is several tasks


def listed_at(index: int) -> tuple[str, ...]:
    """Four types for width `index`: all widths have those of codes twice, six all of floats."""
    return (*(CODES * 2)[index * 3 % len(CODES) :][:3], FLOATS[index % len(FLOATS)])


def n_rows_of(types: tuple[str, ...], n_cols: int) -> int:
    """As few rows as make several tasks of each, the last group of them not whole."""
    calls = library()
    groups = 3
    for layout in (calls.layout_for(type_number(qtype)) for qtype in types):
        while calls.packed_bytes(layout, 16 * groups, n_cols) < CHUNK_BYTES:
            groups += 1
    return 16 * groups - 5


def row_counts(seed: int) -> list[int]:
    """Numbers of rows with every remainder of 128, in any order: so of every tile of 2, 4, 8, 16, 32 and 64 tokens."""
    draw = random.Random(seed)
    choices = [range(remainder or 128, MOST_ROWS + 1, 128) for remainder in draw.sample(range(128), 128)]
    return [min(draw.choices(numbers, k=2)) for numbers in choices]
