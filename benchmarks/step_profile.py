"""Where the time of a step goes, by the native library's own clock: instruction by instruction, alike ones together.

python -m benchmarks.step_profile MODEL.gguf [--kind decode|prefill] [--tokens 512] [--rounds 32] [--depth 0]
                                           [--threads N]

Milliseconds are the median over the steps. Bytes are those of the weights in memory, of as many experts as are used.
"""

import argparse
import ctypes
import statistics
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from localrun.backends.cpu import abi
from localrun.base.processors import usual_threads
from localrun.base.request import LoadOptions
from localrun.diagnose.bench import BenchCase, run_case
from localrun.engine.load import load


class Clock:
    """The library's count of seconds of every instruction of an executor."""

    def __init__(self, executor: Any) -> None:
        self.handle, self.library = executor.handle, executor.calls.c
        self.n = len(executor.instructions)
        self.library.lr_program_set_timing.argtypes = (ctypes.c_void_p, ctypes.c_int32)
        self.library.lr_program_timings.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32)

    def start(self) -> None:
        self.library.lr_program_set_timing(self.handle, 1)

    def read(self) -> list[float]:
        seconds = (ctypes.c_double * self.n)()
        self.library.lr_program_timings(self.handle, seconds, self.n)
        return list(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--kind", choices=("decode", "prefill"), default="decode")
    parser.add_argument("--tokens", type=int, default=512, help="of a prompt")
    parser.add_argument("--rounds", type=int, default=32)
    parser.add_argument("--depth", type=int, default=0)
    parser.add_argument("--threads", type=int, default=usual_threads())
    asked = parser.parse_args()
    n = 1 if asked.kind == "decode" else asked.tokens
    model = load(LoadOptions(asked.model, threads=asked.threads, ctx=asked.depth + n, backend="cpu"))
    executor: Any = model.engine.runner.executor
    clock, case = Clock(executor), BenchCase(asked.kind, n, asked.depth)
    run_case(model.engine, case, fill=True)
    steps, whole = [], []
    for _ in range(asked.rounds):
        clock.start()
        whole.append(run_case(model.engine, case, fill=False))
        steps.append(clock.read())
    show(executor.instructions, [statistics.median(column) for column in zip(*steps, strict=True)])
    print(f"{1000 * statistics.median(whole):9.3f} ms  a whole step, seen from outside")
    model.engine.close()


def show(instructions: Any, seconds: list[float]) -> None:
    groups: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for instruction, taken in zip(instructions, seconds, strict=True):
        groups[title(instruction)].append((taken, sum(bytes_read(instruction))))
    for name, members in sorted(groups.items(), key=lambda item: -sum(taken for taken, _ in item[1])):
        taken, n_bytes = (sum(column) for column in zip(*members, strict=True))
        rate = f"{n_bytes / taken / 1e9:6.1f} GB/s" if n_bytes else ""
        share = taken / sum(seconds)
        print(f"{1000 * taken:9.3f} ms {share:6.1%} {len(members):4} x {n_bytes / 2**20:8.1f} MiB {rate:12} {name}")
    print(f"{1000 * sum(seconds):9.3f} ms  all")


def title(instruction: Any) -> str:
    op = abi.OPS[instruction.op]
    sizes = " + ".join(f"{m.n_rows} x {m.n_cols} ({m.layout})" for m in matrices(instruction))
    return f"{op} {sizes}".rstrip()


def matrices(instruction: Any) -> Iterator[Any]:
    op = abi.OPS[instruction.op]
    if op == "logits":
        yield instruction.logits.weight.contents
    elif op in ("linear", "experts"):
        yield from (pointer.contents for pointer in getattr(instruction, op).weight if pointer)


def bytes_read(instruction: Any) -> Iterator[int]:
    """Of weights, by one token."""
    used = 1.0
    if abi.OPS[instruction.op] == "experts":
        routes = instruction.experts.routes.contents
        used = routes.top_k / routes.n_experts
    return (int(m.n_bytes * used) for m in matrices(instruction))


if __name__ == "__main__":
    main()
