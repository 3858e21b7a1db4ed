"""localrun beside the strongest peers of one instruction set: builds what is missing, then measures.

    python -m benchmarks.peers avx2 --folder /tmp/peers --models /tmp/models [--peers llama.cpp ik_llama.cpp openvino]
        [--shape qwen3-0.6b] [--types Q4_K_M Q4_0] [--rounds 5] [--depth 0] [--kv f16] [--prompt 512]
        [--generate 64] [--json FILE]

localrun is held to that set by LOCALRUN_ISA, and each of its peers by how build_peers.py makes it; needs the package
llama-cpp-python of the same version, for its Python side and to make the model files. In every round each case runs on
all engines in turn. A ratio is the median over the rounds of ours divided by the peer's, in that of the peer's settings
that is the fastest in this case; least and most are those of single rounds. OpenVINO's instructions cannot be chosen,
so it belongs beside the best set the machine has. Limits are those that localrun measures with the same set in the same
rounds.
"""

import argparse
import json
import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.build_peers import Builder, add_arguments
from benchmarks.engine_worker import bindings
from benchmarks.kv_quality import machine
from benchmarks.side_by_side import Case, Engine, Measured, measure
from benchmarks.synthetic_models import model_file
from localrun.backends.cpu.library import load_library, why_no_library
from localrun.backends.limits import Limits
from localrun.backends.registry import BACKENDS
from localrun.base.processors import usual_threads

SETTINGS: dict[str, dict[str, dict[str, bool]]] = {
    "llama.cpp": {"flash off": {"flash": False}, "flash on": {"flash": True}},
    "ik_llama.cpp": {
        "flash off": {"flash": False},
        "flash on": {"flash": True},
        "flash on, repacked": {"flash": True, "repack": True},
    },
    "openvino": {"as it comes": {}},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    parser.add_argument("--models", type=Path, required=True, help="where the model files are made and kept")
    parser.add_argument("--shape", default="qwen3-0.6b")
    parser.add_argument("--types", nargs="+", default=["Q4_K_M", "Q4_0", "Q8_0", "Q6_K"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=usual_threads())
    parser.add_argument("--depth", type=int, default=0)
    parser.add_argument("--kv", choices=("f16", "q8", "q4"), default="f16", help="the cache of localrun and llama.cpp")
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--generate", type=int, default=64)
    parser.add_argument("--json", type=Path, help="also write every single rate to this file")
    asked = parser.parse_args()
    if asked.kv != "f16" and asked.peers != ["llama.cpp"]:
        parser.error("only the cache of llama.cpp can be chosen: --peers llama.cpp")
    os.environ["LOCALRUN_ISA"] = asked.isa  # of the probe as of the worker, and before either loads the library
    if load_library() is None:
        raise SystemExit(why_no_library())
    builder = Builder(asked.folder.resolve(), asked.compiler, asked.jobs)
    built = {peer: builder.build(peer, asked.isa) for peer in asked.peers}
    cases = [Case("prefill", asked.prompt, asked.depth, 1), Case("decode", asked.generate, asked.depth, 1)]
    print(f"{machine()}, {asked.isa}, {asked.threads} threads, medians of {asked.rounds} rounds\n")
    print("| model | case | localrun | peer | its tok/s | ratio | least to most |\n|---|---|---|---|---|---|---|")
    rows = []
    for qtype in asked.types:
        path = model_file(asked.models, asked.shape, qtype, bindings())
        rows += compare(path, built, cases, asked.threads, asked.rounds, asked.kv)
    if asked.json:
        asked.json.write_text(json.dumps(rows, indent=1) + "\n")


def compare(
    path: Path, built: Mapping[str, Path], cases: Sequence[Case], threads: int, rounds: int, kv: str
) -> list[dict[str, Any]]:
    """Print and give the rows of one file."""
    ctx = max(case.depth + case.n for case in cases)
    common: dict[str, Any] = {"path": str(path), "threads": threads, "ctx": ctx, "batch": 1}
    engines = {"localrun": Engine("localrun", **common, flash=False, kv=kv)}
    for peer, place in built.items():
        for setting, flags in SETTINGS[peer].items():
            if kv == "f16" or flags["flash"]:  # llama.cpp reads codes only with flash attention
                engines[f"{peer} ({setting})"] = started(peer, place, kv, **common, **flags)
    probe = BACKENDS["cpu"].limit_probe(threads)
    results = measure(engines, cases, rounds, probe)
    probe.close()
    for engine in engines.values():
        engine.close()
    model = path.stem if kv == "f16" else f"{path.stem}, {kv} cache"
    rows = [row(model, case, peer, measured) for case, measured in results.items() for peer in built]
    limits = Limits.median([one for measured in results.values() for one in measured.limits])
    print(
        f"\nIn these rounds {limits.read_gbps:.1f} GB/s read, {limits.int8_gmacs:.0f} · 10⁹ int8 products a second.\n"
    )
    return rows


def started(peer: str, place: Path, kv: str, **opened: Any) -> Engine:
    if peer == "llama.cpp":
        return Engine(peer, environment={"LLAMA_CPP_LIB_PATH": str(place)}, kv=kv, **opened)
    if peer == "ik_llama.cpp":
        return Engine(peer, library=str(place), **opened)
    return Engine(peer, python=place, **opened)


def row(model: str, case: Case, peer: str, measured: Measured) -> dict[str, Any]:
    """Print and give a case beside the fastest setting of a peer."""
    best = measured.fastest([name for name in measured.rates if name.startswith(f"{peer} (")])
    ours, theirs = (statistics.median(measured.rates[name]) for name in ("localrun", best))
    ratios = measured.ratios(best)
    print(
        f"| {model} | {case.title} | {ours:.1f} | {best} | {theirs:.1f} |"
        f" {statistics.median(ratios):.2f} | {min(ratios):.2f} to {max(ratios):.2f} |",
        flush=True,
    )
    of_peer = {name: rates for name, rates in measured.rates.items() if name in ("localrun", best)}
    limits = [asdict(one) for one in measured.limits]
    return {"model": model, "case": case.title, "peer": best, "ratios": ratios, "rates": of_peer, "limits": limits}


if __name__ == "__main__":
    main()
