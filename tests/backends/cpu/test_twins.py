"""The two hardest kernels beside their scalar twins: matmul to the bit, flash attention but for rounding."""

import struct
import subprocess
from functools import cache
from pathlib import Path

import pytest
import torch
from localrun_testing.instruction_sets import SOURCES, SUPPORT, compiled, library_in_use, tool
from localrun_testing.native_ops import AFFINE_TYPES, sample, type_number
from localrun_testing.real_widths import CODES

from localrun.formats.quant import QUANT_TYPES

N_ROWS, N_TOKENS, COUNTS = 37, 67, (2, 3, 4, 8, 33, 67)  # micro-tiles, tile registers, and more than pass by at once


@cache
def driver(name: str, library: Path) -> Path:
    """A program of tests/support, linked to a library. It compares, and fails where the two differ."""
    command = [tool("c++"), "-std=c++17", "-O2", "-ffp-contract=off", f"-I{SOURCES}"]
    link = [f"-L{library.parent}", "-llocalrun_cpu", f"-Wl,-rpath,{library.parent}"]
    return compiled(command, SUPPORT / f"{name}.cpp", link=link)


def drive(name: str, isa: str, header: list[int], *numbers: torch.Tensor) -> None:
    data = struct.pack(f"<{len(header)}i", *header) + b"".join(x.numpy().tobytes() for x in numbers)
    command: list[str | Path] = [driver(name, library_in_use().path), isa]
    done = subprocess.run(command, input=data, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize("qtype", CODES)
def test_a_quantized_matmul_has_the_bits_of_its_twin(isa: str, qtype: str) -> None:
    n_cols = 768 if qtype.endswith(("K", "XS")) else 896  # the last block of a row is shorter where it may be
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(N_TOKENS, n_cols, generator=generator)
    x *= torch.randn(N_TOKENS, n_cols, generator=generator).mul(2).exp()  # neighbours of any size
    header = [1, N_ROWS, n_cols, N_TOKENS, len(COUNTS), type_number(qtype), *COUNTS]
    drive("linear_driver", isa, header, sample(qtype, N_ROWS, n_cols), x)


# The bytes of a block that hold codes.
CODE_BYTES = {
    "Q4_0": slice(2, 18), "Q4_1": slice(4, 20), "Q5_0": slice(2, 22), "Q5_1": slice(4, 24), "Q8_0": slice(2, 34),
    "Q2_K": slice(16, 80), "Q3_K": slice(0, 96),
    "Q4_K": slice(16, 144), "Q5_K": slice(16, 176), "Q6_K": slice(0, 192), "Q8_K": slice(4, 260),
    "IQ4_NL": slice(2, 18), "IQ4_XS": slice(8, 136), "MXFP4": slice(1, 17), "NVFP4": slice(4, 36),
    **dict.fromkeys(AFFINE_TYPES, slice(4, None)),
}  # fmt: skip


# Of 8 bits the least code and -1; of fewer the largest and the least; of IQ4's table the least, of FP4's the largest.
EXTREMES = torch.tensor([0x80, 0xFF, 0x00, 0x77], dtype=torch.uint8)


@pytest.mark.parametrize("qtype", CODE_BYTES)
def test_sums_of_the_largest_products_have_room(isa: str, qtype: str) -> None:
    """Rows of one extreme each, in turn: every byte of codes is the same."""
    n_cols, block = 768, QUANT_TYPES[qtype].block_bytes
    weights = sample(qtype, N_ROWS, n_cols).reshape(N_ROWS, -1, block).clone()
    weights[:, :, CODE_BYTES[qtype]] = EXTREMES[torch.arange(N_ROWS) % len(EXTREMES)].view(-1, 1, 1)
    x = torch.full((N_TOKENS, n_cols), 15 * 127 / 2048)  # codes of 127 and factors of 15, where there are any
    x[1::2] *= -1
    header = [1, N_ROWS, n_cols, N_TOKENS, len(COUNTS), type_number(qtype), *COUNTS]
    drive("linear_driver", isa, header, weights.view(-1, block), x)


@pytest.mark.parametrize("window", [0, 100])
@pytest.mark.parametrize(
    ("n_heads", "n_kv_heads", "head_dim", "value_dim"), [(4, 2, 40, 0), (3, 3, 128, 0), (5, 1, 40, 32)]
)
def test_flash_attention_is_what_its_twin_says(
    isa: str, n_heads: int, n_kv_heads: int, head_dim: int, value_dim: int, window: int
) -> None:
    n_rows, f32 = 650, 0
    runs = [(1, [n_rows]), (2, [1, 13, 600, 7, 29])]  # threads, and rows of each step
    header = [n_heads, n_kv_heads, head_dim, value_dim, f32, window, n_rows, len(runs)]
    for n_threads, chunks in runs:
        header += [n_threads, len(chunks), *chunks]
    g = torch.Generator().manual_seed(4)
    drive(
        "attention_driver",
        isa,
        header,
        *(torch.randn(n_rows, n * head_dim, generator=g) for n in (n_heads, *[n_kv_heads] * (1 if value_dim else 2))),
    )
