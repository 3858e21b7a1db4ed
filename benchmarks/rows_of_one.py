"""What a step costs that reads several tokens of one sequence and says what comes after each, as drafts are verified.

    LOCALRUN_ISA=avx2 python -m benchmarks.rows_of_one MODEL.gguf [--rows 2 4 8] [--depth 64 4096] [--rounds 15]

Printed is the median over the rounds of the time divided by that of a step of one token in the same round.
"""

import argparse
import statistics
import time
from pathlib import Path

from benchmarks.kv_quality import machine
from localrun.backends.cpu.library import load_library
from localrun.base.processors import usual_threads
from localrun.base.request import LoadOptions
from localrun.diagnose.bench import BenchCase, run_case
from localrun.engine.load import LoadedModel, load
from localrun.engine.scratch_runs import ScratchRuns


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--rows", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--depth", type=int, nargs="+", default=[64, 4096])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=usual_threads())
    asked = parser.parse_args()
    ctx = max(asked.depth) + max(asked.rows)
    model = load(LoadOptions(asked.model, threads=asked.threads, ctx=ctx, kv="f16"))
    library = load_library()
    print(f"{machine()}, {library.isa if library else 'reference'}, {asked.threads} threads, {asked.model.stem}\n")
    print("| depth | 1 row | " + " | ".join(f"{n} rows ÷ 1" for n in asked.rows) + " |")
    print("|---|---|" + "---|" * len(asked.rows))
    for depth in asked.depth:
        run_case(model.engine, BenchCase("decode", 1, depth), fill=True)
        rounds = [{n: step_seconds(model, n, depth) for n in (1, *asked.rows)} for _ in range(asked.rounds + 1)][1:]
        one = 1000 * statistics.median(times[1] for times in rounds)
        ratios = (statistics.median(times[n] / times[1] for times in rounds) for n in asked.rows)
        print(f"| {depth} | {one:.2f} ms | " + " | ".join(f"{ratio:.2f}" for ratio in ratios) + " |", flush=True)


def step_seconds(model: LoadedModel, n_rows: int, depth: int) -> float:
    ids = [1 + position % 97 for position in range(depth, depth + n_rows)]
    with ScratchRuns(model.engine.runner, model.engine.store, depth=depth) as runs:
        started = time.perf_counter()
        runs.feed(ids, depth, range(n_rows))
        return time.perf_counter() - started


if __name__ == "__main__":
    main()
