"""localrun beside llama.cpp: the same files, the same threads, the same minutes.

    python -m benchmarks.vs_llama_cpp --folder /tmp/models [--shapes qwen3-0.6b llama-3.2-1b] [--types Q4_0 Q8_0]
                                      [--rounds 7] [--threads N] [--depth 0 4096] [--batch 1 8] [--json FILE]
    python -m benchmarks.vs_llama_cpp --files MODEL.gguf…

Needs llama-cpp-python (its libllama, and its quantiser to make the files). In every round each case runs on llama.cpp
without and with flash attention, then on localrun, then the machine's limits are measured. A case's ratio is the median
over the rounds of ours divided by the better of llama.cpp's two settings; percent is of the bytes the file has for a
token, read at the bandwidth measured in that round, or of its multiplications.
"""

import argparse
import datetime
import json
import platform
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.engine_worker import bindings
from benchmarks.published_configs import PUBLISHED
from benchmarks.side_by_side import Case, Engine, Measured, measure
from benchmarks.synthetic_models import SHAPES, model_file
from localrun.backends.registry import BACKENDS
from localrun.base.processors import usual_threads

PEERS = {"flash off": {"flash": False}, "flash on": {"flash": True}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    files = parser.add_mutually_exclusive_group(required=True)
    files.add_argument("--folder", type=Path, help="where the model files are made and kept")
    files.add_argument("--files", type=Path, nargs="+", help="these instead of made ones")
    parser.add_argument("--shapes", nargs="+", default=["qwen3-0.6b", "llama-3.2-1b"], choices=[*SHAPES, *PUBLISHED])
    parser.add_argument("--types", nargs="+", default=["Q4_0", "Q4_K_M", "Q8_0"])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=usual_threads())
    parser.add_argument("--depth", type=int, nargs="+", default=[0])
    parser.add_argument("--batch", type=int, nargs="+", default=[1])
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--generate", type=int, default=64)
    parser.add_argument("--json", type=Path, help="also write every single rate to this file")
    options = parser.parse_args()
    print(f"{platform.processor() or platform.machine()}, {options.threads} threads, {datetime.date.today()}\n")
    print("| model | type | case | localrun | llama.cpp | ratio | of the limit |\n|---|---|---|---|---|---|---|")
    rows = []
    for path in options.files or ():
        rows += compare(path, path.stem, "as published", cases_of(options), options.threads, options.rounds)
    for shape in () if options.files else options.shapes:
        for qtype in options.types:
            path = model_file(options.folder, shape, qtype, bindings())
            rows += compare(path, shape, qtype, cases_of(options), options.threads, options.rounds)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


def cases_of(options: argparse.Namespace) -> list[Case]:
    cases = [Case("prefill", options.prompt, depth, 1) for depth in options.depth if options.prompt]
    return cases + [Case("decode", options.generate, d, b) for d in options.depth for b in options.batch]


def compare(
    path: Path, shape: str, qtype: str, cases: Sequence[Case], threads: int, rounds: int
) -> list[dict[str, Any]]:
    """Print and give the rows of one file."""
    batch = max(case.batch for case in cases)
    common = {"path": str(path), "threads": threads, "ctx": max(c.depth + c.n for c in cases), "batch": batch}
    engines = {name: Engine("llama.cpp", **common, **flags) for name, flags in PEERS.items()}
    engines["localrun"] = Engine("localrun", **common, flash=False)
    probe = BACKENDS["cpu"].limit_probe(threads)
    results = measure(engines, cases, rounds, probe)
    rows = [row(shape, qtype, case, measured) for case, measured in results.items()]
    for name, engine in engines.items():
        rss = engine.ask(measure={"kind": "decode", "n": 1, "depth": 0, "batch": 1})["rss"] / 2**20
        opened = engine.opened["seconds"]
        print(f"| {shape} | {qtype} | memory, load | {name}: {rss:.0f} MiB, {opened:.2f} s | | | |")
        engine.close()
    probe.close()
    return rows


def row(shape: str, qtype: str, case: Case, measured: Measured) -> dict[str, Any]:
    best = measured.fastest(PEERS)
    ours, theirs = (statistics.median(measured.rates[name]) for name in ("localrun", best))
    ratio, share = statistics.median(measured.ratios(best)), measured.share_of_limit
    print(
        f"| {shape} | {qtype} | {case.title} | {ours:.1f} tok/s | {theirs:.1f} tok/s ({best}) |"
        f" {ratio:.2f} | {100 * share:.0f} % |",
        flush=True,
    )
    return {
        "shape": shape, "qtype": qtype, "case": case.title, "ratio": ratio, "share_of_limit": share,
        "rates": measured.rates, "read_gbps": [limits.read_gbps for limits in measured.limits],
    }  # fmt: skip


if __name__ == "__main__":
    main()
