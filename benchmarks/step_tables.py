"""What it costs to hand a step of many long sequences to the native library, in milliseconds.

python -m benchmarks.step_tables [--sequences 128] [--tokens 32768]
"""

import argparse
import statistics
import time
from array import array

import numpy as np

from localrun.backends.cpu import abi_step
from localrun.backends.cpu.step import NativeStep
from localrun.ops.interface import SequenceInput, StepInput
from localrun.ops.kv import BLOCK_TOKENS

ROUNDS = 50


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sequences", type=int, default=128)
    parser.add_argument("--tokens", type=int, default=32768)
    asked = parser.parse_args()
    n, length = asked.sequences, asked.tokens // BLOCK_TOKENS
    tables = [array("i", range(i * length, (i + 1) * length)) for i in range(n)]
    native = NativeStep((abi_step.Candidates * n)(), 1, n, n)
    angles = [(np.ones((n, 64), np.float32), np.ones((n, 64), np.float32))]
    rows = range(n)
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        sequences = [SequenceInput(asked.tokens, (table,), (0,)) for table in tables]
        native.translate(StepInput(rows, [asked.tokens - 1] * n, rows, sequences, rows, cos_sin=angles))
        times.append(1000 * (time.perf_counter() - started))
    print(f"{n} sequences of {asked.tokens:,} tokens: {statistics.median(times):.2f} ms a step")


if __name__ == "__main__":
    main()
