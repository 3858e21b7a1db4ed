"""How fast attention reads each form of keys and values, at several depths, and how many bytes that takes.

    python -m benchmarks.attention_codecs [--threads 2] [--isa avx512] [--rounds 7] [--rows 1] [codec ...]

A step is attention alone, over as many layers as it takes to fall out of the caches. Codecs take turns (ABCABC…); what
is printed are the medians, over rounds, of the speed against f16 in the same round. --rows 256 measures prefill.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import time
from array import array
from collections.abc import Sequence

import torch

from benchmarks.chosen_library import chosen_library
from localrun.backends.cpu import abi, abi_step
from localrun.backends.cpu.bindings import CpuCalls, calls_of
from localrun.backends.cpu.buffers import CpuBuffers
from localrun.backends.cpu.pool import CpuPool
from localrun.ops.cache_layer import CacheLayer
from localrun.ops.kv import BLOCK_TOKENS, KV_CODECS

SHAPES = {64: (32, 8), 128: (16, 8)}  # head_dim: query heads, KV heads
DEPTHS = (512, 2048, 4096, 8192)
F16_BYTES = 256 << 20  # of all layers together
WRITTEN_ROWS = 512


class Case:
    """Layers of one codec with `depth` tokens in each, and a step of attention for the last `n_rows` of them."""

    def __init__(self, calls: CpuCalls, threads: int, codec: str, head_dim: int, depth: int, n_rows: int) -> None:
        self.calls, self.threads, self.depth = calls, threads, depth
        n_heads, n_kv_heads = SHAPES[head_dim]
        self.n_layers = max(1, F16_BYTES // (depth * n_kv_heads * head_dim * 4))
        layers = [CacheLayer(0, index, n_heads, n_kv_heads, head_dim) for index in range(self.n_layers)]
        n_blocks = -(-depth // BLOCK_TOKENS)
        self.keep: list[object] = []
        self.pool = CpuPool(calls, KV_CODECS[codec], layers, n_blocks)
        self.ring = None if KV_CODECS[codec].native else CpuPool(calls, KV_CODECS["f16"], layers, n_blocks)
        for pool in (self.pool, self.ring):
            if pool:
                pool.use(range(n_blocks))
        self.native = (abi_step.CacheLayerC * len(layers))(
            *(
                abi_step.CacheLayerC(
                    self.pool.place(layer), self.ring.place(layer) if self.ring else abi_step.KVPoolC(),
                    0, n_heads, n_kv_heads, head_dim, self.pool.code,
                )
                for layer in layers
            )
        )  # fmt: skip
        buffers = CpuBuffers(self.zeroed, max(WRITTEN_ROWS, n_rows))
        q, k, v, turned = (buffers.take(n * head_dim, 0) for n in (n_heads, n_kv_heads, n_kv_heads, n_heads))
        for value in (q, k, v):
            fill(value, max(WRITTEN_ROWS, n_rows))
        inputs = [ctypes.pointer(value) for value in (q, k, v, turned)]
        out = ctypes.pointer(buffers.take(n_heads * head_dim, 0))
        appends = [abi.RopeAppend(*inputs, layer=index, rope=-1) for index in range(self.n_layers)]
        attends = [
            abi.Attention(inputs[3], None, out, None, index, 0, 0, head_dim**-0.5) for index in range(self.n_layers)
        ]
        self.keep += [q, k, v, turned, out, buffers]
        write = self.program("rope_append", appends, WRITTEN_ROWS)
        for start in range(0, depth, WRITTEN_ROWS):
            self.calls.program_run(write, self.step(start, min(WRITTEN_ROWS, depth - start)))
        self.calls.program_destroy(write)
        self.attend = self.program("attention", attends, n_rows)
        self.last = self.step(depth - n_rows, n_rows)

    def program(self, name: str, ops: Sequence[ctypes.Structure], max_rows: int) -> int:
        instructions = (abi.Instruction * len(ops))()
        for instruction, op in zip(instructions, ops, strict=True):
            instruction.op = abi.OPS.index(name)
            setattr(instruction, name, op)
        program = abi_step.ProgramC(instructions, self.native, len(ops), self.n_layers)
        self.keep += [instructions, program]
        return self.calls.program_create(program, self.threads, max_rows)

    def step(self, start: int, n_rows: int) -> abi_step.Step:
        def address(values: Sequence[int]) -> int:
            numbers = array("i", values)
            self.keep.append(numbers)
            return int(numbers.buffer_info()[0])

        blocks = range(-(-self.depth // BLOCK_TOKENS))
        tables = (ctypes.c_void_p * 1)(address(blocks))
        sequence = (abi_step.SequenceC * 1)(
            abi_step.SequenceC(table=tables, first=address([0]), ring=tables, length=start + n_rows),
        )
        self.keep += [tables, sequence]
        zeros = address([0] * n_rows)
        return abi_step.Step(
            token=zeros, position=address(range(start, start + n_rows)), row_sequence=zeros, sequence=sequence,
            rope_half=zeros, n_rows=n_rows, n_sequences=1,
        )  # fmt: skip

    def zeroed(self, n_bytes: int) -> int:
        memory = torch.zeros(n_bytes, dtype=torch.uint8)
        self.keep.append(memory)
        return memory.data_ptr()

    def seconds(self) -> float:
        start = time.perf_counter()
        self.calls.program_run(self.attend, self.last)
        return time.perf_counter() - start

    def close(self) -> None:
        self.calls.program_destroy(self.attend)
        for pool in (self.pool, self.ring):
            if pool:
                pool.close()


def fill(value: abi.Value, n_rows: int) -> None:
    """Normal numbers in a buffer."""
    memory = (ctypes.c_float * (n_rows * value.stride)).from_address(value.f32)
    torch.frombuffer(memory, dtype=torch.float32).normal_(generator=torch.Generator().manual_seed(value.width))


def measure(cases: dict[str, Case], rounds: int) -> dict[str, list[float]]:
    """Seconds of every codec in every round."""
    seconds: dict[str, list[float]] = {codec: [] for codec in cases}
    for number in range(rounds + 1):
        for codec, case in cases.items():
            taken = case.seconds()
            if number:  # the first round touches memory
                seconds[codec].append(taken)
    return seconds


def report(cases: dict[str, Case], seconds: dict[str, list[float]]) -> str:
    line = ""
    for codec, case in cases.items():
        faster = statistics.median(f16 / own for f16, own in zip(seconds["f16"], seconds[codec], strict=True))
        share, rate = (
            case.pool.block_bytes / cases["f16"].pool.block_bytes,
            case.pool.nbytes / min(seconds[codec]) / 1e9,
        )
        line += f"   {codec:4} {faster:4.2f}x {share:5.3f} bytes {rate:5.1f} GB/s"
    return line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("codecs", nargs="*", default=["q8", "k8v4", "q4"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--isa")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rows", type=int, default=1, help="query tokens of a step")
    parser.add_argument("--depths", type=int, nargs="*", default=DEPTHS)
    options = parser.parse_args()
    library = chosen_library(parser, options.isa)
    calls = calls_of(library)
    threads = calls.threads_create(options.threads)
    print(f"{library.isa}, {options.threads} threads, {options.rows} rows; speed and bytes against f16")
    for head_dim in SHAPES:
        for depth in options.depths:
            cases = {
                codec: Case(calls, threads, codec, head_dim, depth, options.rows) for codec in ("f16", *options.codecs)
            }
            print(f"head_dim {head_dim:3} depth {depth:5}{report(cases, measure(cases, options.rounds))}", flush=True)
            for case in cases.values():
                case.close()


if __name__ == "__main__":
    main()
