"""How fast types of quantised checkpoints are beside those of GGUF files of the same shape: the table of the results.

    python -m benchmarks.checkpoint_types [--threads 2] [--rounds 15] [--isa amx] [qtype ...]

Each type is measured in turn with another one, on every instruction set asked for, by default all that this machine
has: decoding, from matrices that no cache holds, and a prefill of 512 tokens. Printed are medians of how many times as
fast it is; bits are those of a weight as it lies in memory.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.ops_cpu import N_COLS, N_ROWS, PREFILL, times_as_fast
from localrun.backends.cpu.bindings import CpuCalls, calls_of
from localrun.backends.cpu.library import load_library, why_no_library
from localrun.formats.quant import QUANT_TYPES

COPIES = 8  # matrices read one after the other


@dataclass(frozen=True, slots=True)
class Row:
    """A type, the files that have it, and the types that its decoding and its prefill are held beside."""

    qtype: str
    files: str
    decode: str
    prefill: str


ROWS = (
    Row("INT8_G64", "MLX 8 bit", "Q8_0", "Q8_0"),
    Row("INT6_G64", "MLX 6 bit", "Q6_K", "Q6_K"),
    Row("INT5_G64", "MLX 5 bit", "Q5_1", "Q5_1"),
    Row("INT4_G64", "MLX 4 bit", "Q4_1", "Q4_1"),
    Row("INT2_G64", "MLX 2 bit", "Q4_1", "Q4_1"),
    Row("INT4_ZP_G128", "AWQ, GPTQ g128", "Q4_0", "Q4_0"),
    Row("INT4_ZP_G128", "AWQ, GPTQ g128", "Q4_1", "Q4_1"),
    Row("INT4_ZP_G32", "AWQ, GPTQ g32", "Q4_1", "Q4_1"),
    Row("INT8_ZP_G32", "GPTQ 8 bit", "Q8_0", "Q8_0"),
    Row("INT4_SYM_F32_G128", "Gemma for phones", "Q4_0", "Q4_0"),
    Row("INT8_SYM_F32_G128", "LLM.int8", "Q8_0", "Q8_0"),
    Row("INT4_ZP_F32_G32", "AWQ, GPTQ with f32 scales", "Q4_1", "Q4_1"),
    Row("INT4_F32_G32", "MLX 4 bit with f32 scales", "Q4_1", "Q4_1"),
    Row("INT8_F32_G32", "MLX 8 bit with f32 scales", "Q8_0", "Q8_0"),
    Row("NF4_G64", "bitsandbytes NF4", "Q4_1", "F16"),
    Row("F8_G128", "FP8 blocks, rows", "Q8_0", "F16"),
    Row("F8_E4M3", "FP8 whole matrix", "Q8_0", "F16"),
)


def table(calls: CpuCalls, threads: int, rows: Sequence[Row], rounds: int, has_amx: bool) -> Iterator[str]:
    """Lines of the table of one instruction set."""
    yield "| | files | bits a weight | decode beside | | prefill beside | |"
    yield "|---|---|---|---|---|---|---|"
    for row in rows:
        prefill = "BF16" if has_amx and row.prefill == "F16" else row.prefill
        one = times_as_fast(calls, threads, row.qtype, row.decode, rounds, 1, COPIES)
        many = times_as_fast(calls, threads, row.qtype, prefill, rounds, PREFILL, 1)
        held, other = (bits_held(calls, qtype) for qtype in (row.qtype, row.decode))
        cells = row.qtype, row.files, f"{held:.4g}", f"{row.decode} ({other:.4g})", f"{one:.2f}", prefill, f"{many:.2f}"
        yield f"| {' | '.join(cells)} |"


def bits_held(calls: CpuCalls, qtype: str) -> float:
    """Bits of a weight in memory."""
    number = QUANT_TYPES[qtype].number
    assert number is not None
    return 8 * calls.packed_bytes(calls.layout_for(number), N_ROWS, N_COLS) / (N_ROWS * N_COLS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("qtypes", nargs="*", choices=[[], *{row.qtype for row in ROWS}])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--isa", action="append")
    options = parser.parse_args()
    library = load_library()
    if library is None:
        parser.error(why_no_library())
    rows = [row for row in ROWS if not options.qtypes or row.qtype in options.qtypes]
    for isa in options.isa or [name for name in library.isas if name not in ("generic", "neon")]:
        library.use_isa(isa)
        calls = calls_of(library)
        threads = calls.threads_create(options.threads)
        print(f"\n{isa}, {options.threads} threads, {PREFILL} tokens, matrices of {N_ROWS} x {N_COLS}\n")
        for line in table(calls, threads, rows, options.rounds, isa == "amx"):
            print(line, flush=True)
        calls.threads_destroy(threads)


if __name__ == "__main__":
    main()
