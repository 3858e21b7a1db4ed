"""How close the CPU library's linears come to this machine: bytes read when decoding, multiply-adds in a prefill.

    python -m benchmarks.ops_cpu [--threads 2] [--isa avx512] [--rounds 7] [--beside Q8_0] [qtype ...]

Every round measures the limits beside the operations; printed are the best rates, and the median over rounds of the
share of the limit. Bytes are those of the file's own encoding. Matrices are larger than a core's caches; on machines
with very large shared caches take --copies up. With --beside every type is measured in turn with another one, and
printed is the median of how many times as fast it is.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import time
import weakref

import torch
from localrun_testing.native import int32s

from benchmarks.chosen_library import chosen_library
from localrun.backends.cpu import abi, abi_step
from localrun.backends.cpu.bindings import CpuCalls, calls_of
from localrun.backends.cpu.buffers import CpuBuffers
from localrun.formats.quant import QUANT_TYPES

QTYPES = ("Q4_0", "Q8_0", "Q4_K", "Q6_K", "Q5_0", "BF16", "F16")
N_ROWS, N_COLS = 4096, 4096
PREFILL, BATCH = 512, 8
READ_BYTES = 256 << 20
INT8 = 0  # lr_probe_multiply


class Case:
    """A step of linears over `copies` matrices of one type, for a number of tokens."""

    def __init__(self, calls: CpuCalls, threads: int, qtype: str, n_tokens: int, copies: int) -> None:
        self.calls = calls
        self.macs = N_ROWS * N_COLS * n_tokens * copies
        self.file_bytes = QUANT_TYPES[qtype].nbytes((N_ROWS, N_COLS)) * copies
        self.keep: list[object] = []
        buffers = CpuBuffers(self.zeroed, n_tokens)
        matrices = [self.matrix(qtype, seed) for seed in range(copies)]
        form = calls.activation_format(matrices[0].layout)
        a, out = buffers.take(N_COLS, form), buffers.take(N_ROWS, 0)
        instructions = (abi.Instruction * copies)()
        for index, matrix in enumerate(matrices):
            op = abi.Linear(a=ctypes.pointer(a), n_weights=1, out_scale=1.0, make_formats=form if index == 0 else 0)
            op.weight[0], op.out[0] = ctypes.pointer(matrix), ctypes.pointer(out)
            instructions[index].op, instructions[index].linear = abi.OPS.index("linear"), op
        program = abi_step.ProgramC(instructions, None, copies, 0)
        self.handle = calls.program_create(program, threads, n_tokens)
        rows, zeros = int32s(range(n_tokens)), int32s([0] * n_tokens)
        sequence = (abi_step.SequenceC * 1)(abi_step.SequenceC(length=n_tokens))
        self.step = abi_step.Step(
            position=ctypes.addressof(rows), row_sequence=ctypes.addressof(zeros), sequence=sequence
        )
        self.step.token, self.step.n_rows, self.step.n_sequences = ctypes.addressof(zeros), n_tokens, 1
        self.keep += [a, out, matrices, instructions, program, rows, zeros, sequence]

    def zeroed(self, n_bytes: int) -> int:
        memory = torch.zeros(n_bytes, dtype=torch.uint8)
        self.keep.append(memory)
        return memory.data_ptr()

    def matrix(self, qtype: str, seed: int) -> abi.Matrix:
        """Random bytes: the values mean nothing, the time is the same. As in weights, no code of FP8 is subnormal."""
        number = QUANT_TYPES[qtype].number
        assert number is not None
        layout = self.calls.layout_for(number)
        n_bytes = self.calls.packed_bytes(layout, N_ROWS, N_COLS)
        packed = self.calls.reserve(n_bytes)  # as of models: in large pages, or the place of memory decides
        weakref.finalize(self, self.calls.release, packed, n_bytes)
        matrix = abi.Matrix(N_ROWS, N_COLS, layout, 0, packed, n_bytes)
        row_bytes = QUANT_TYPES[qtype].nbytes((1, N_COLS))
        generator = torch.Generator().manual_seed(seed)
        raw = torch.randint(8, 64, (N_ROWS, row_bytes), dtype=torch.uint8, generator=generator)
        self.calls.pack(matrix, number, raw.data_ptr(), 0, N_ROWS)
        return matrix

    def seconds(self) -> float:
        start = time.perf_counter()
        self.calls.program_run(self.handle, self.step)
        return time.perf_counter() - start


class Limits:
    """What the machine reads and multiplies at this moment."""

    def __init__(self, calls: CpuCalls, threads: int) -> None:
        self.threads, self.c = threads, calls.c
        self.c.lr_probe_read.restype = self.c.lr_probe_multiply.restype = ctypes.c_double
        self.c.lr_probe_read.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
        self.c.lr_probe_multiply.argtypes = (ctypes.c_void_p, ctypes.c_int32)
        self.memory = torch.ones(READ_BYTES, dtype=torch.uint8)

    def read(self) -> float:
        return float(self.c.lr_probe_read(self.threads, self.memory.data_ptr(), READ_BYTES))

    def multiply(self) -> float:
        return float(self.c.lr_probe_multiply(self.threads, INT8))


def measure(calls: CpuCalls, threads: int, qtype: str, rounds: int, copies: int) -> str:
    limits = Limits(calls, threads)
    decode, batch = (Case(calls, threads, qtype, n, copies) for n in (1, BATCH))
    prefill = Case(calls, threads, qtype, PREFILL, 1)
    reads, read_shares, macs, mac_shares, gains = [], [], [], [], []
    for _ in range(rounds):
        one, rate = decode.seconds(), limits.read()
        eight = batch.seconds()
        many, peak = prefill.seconds(), limits.multiply()
        reads.append(decode.file_bytes / one)
        read_shares.append(decode.file_bytes / one / rate)
        macs.append(prefill.macs / many)
        mac_shares.append(prefill.macs / many / peak)
        gains.append(BATCH * one / eight)
    return (
        f"{qtype:8} decode {max(reads) / 1e9:6.1f} GB/s ({statistics.median(read_shares):4.0%} of reading)"
        f"   prefill {max(macs) / 1e9:5.0f} GMAC/s ({statistics.median(mac_shares):4.0%} of int8)"
        f"   batch {BATCH} gives {statistics.median(gains):.1f}x"
    )


def compare(calls: CpuCalls, threads: int, qtype: str, other: str, rounds: int, copies: int) -> str:
    """How many times as fast as `other` a type is."""
    decode = times_as_fast(calls, threads, qtype, other, rounds, 1, copies)
    prefill = times_as_fast(calls, threads, qtype, other, rounds, PREFILL, 1)
    bits = QUANT_TYPES[qtype].bits
    return f"{qtype:8} beside {other}: decode {decode:.2f}, prefill {prefill:.2f}; {bits:g} bits in the file"


def times_as_fast(
    calls: CpuCalls, threads: int, qtype: str, other: str, rounds: int, n_tokens: int, copies: int
) -> float:
    """The median of how many times as fast a type is, measured in turn with another."""
    pair = [Case(calls, threads, kind, n_tokens, copies) for kind in (qtype, other)]
    times = [[case.seconds() for case in pair] for _ in range(rounds + 1)][1:]
    return statistics.median(theirs / ours for ours, theirs in times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("qtypes", nargs="*", default=QTYPES)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--isa")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--beside", help="a type that all are compared with")
    parser.add_argument("--copies", type=int, default=8, help="matrices read one after the other")
    options = parser.parse_args()
    library = chosen_library(parser, options.isa)
    calls = calls_of(library)
    threads = calls.threads_create(options.threads)
    print(f"{library.isa}, {options.threads} threads, matrices of {N_ROWS} x {N_COLS}")
    for qtype in options.qtypes:
        if options.beside:
            print(compare(calls, threads, qtype, options.beside, options.rounds, options.copies), flush=True)
        else:
            print(measure(calls, threads, qtype, options.rounds, options.copies), flush=True)


if __name__ == "__main__":
    main()
