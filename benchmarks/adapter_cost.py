"""Cost of an adapter (LoRA) beside a model: decoding and reading with one of a rank on all matrices of layers.

    python -m benchmarks.adapter_cost MODEL.gguf [--ranks 16 64] [--rounds 15] [--prompt 512]

Steps without and with an adapter take turns; printed is the median over the rounds of the time with it, divided by that
without it in the same round.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import gguf
import numpy as np

from benchmarks.kv_quality import machine
from localrun.backends.cpu.library import load_library
from localrun.base.adapter_choice import AdapterChoice
from localrun.base.processors import usual_threads
from localrun.base.request import LoadOptions
from localrun.engine.load import LoadedModel, load
from localrun.engine.scratch_runs import ScratchRuns
from localrun.formats.gguf import open_gguf

DECODED = 8  # tokens of a round
MATRICES = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--ranks", type=int, nargs="+", default=[16])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--threads", type=int, default=usual_threads())
    asked = parser.parse_args()
    library = load_library()
    print(f"{machine()}, {library.isa if library else 'reference'}, {asked.threads} threads, {asked.model.stem}\n")
    print("| rank | decode | with the adapter ÷ without | prefill | with ÷ without |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for rank in asked.ranks:
            adapter = write_adapter(asked.model, Path(folder) / f"{rank}.gguf", rank)
            models = [opened(asked, ()), opened(asked, (AdapterChoice(adapter),))]
            rounds = [[seconds(model, asked.prompt) for model in models] for _ in range(asked.rounds + 1)][1:]
            cells = []
            for kind in (0, 1):
                usual = statistics.median(plain[kind] for plain, _ in rounds)
                ratio = statistics.median(adapted[kind] / plain[kind] for plain, adapted in rounds)
                cells += [f"{1000 * usual:.1f} ms", f"{ratio:.3f}"]
            print(f"| {rank} | " + " | ".join(cells) + " |", flush=True)
            for model in models:
                model.close()


def opened(asked: argparse.Namespace, adapters: tuple[AdapterChoice, ...]) -> LoadedModel:
    options = LoadOptions(asked.model, threads=asked.threads, ctx=2 * asked.prompt, kv="f16", adapters=adapters)
    return load(options)


def seconds(model: LoadedModel, prompt: int) -> tuple[float, float]:
    """Of a decoded token, and of a prompt."""
    with ScratchRuns(model.engine.runner, model.engine.store, depth=0) as runs:
        began = time.perf_counter()
        runs.feed([1 + place % 97 for place in range(prompt)], 0, [prompt - 1])
        read = time.perf_counter()
        for place in range(prompt, prompt + DECODED):
            runs.feed([1 + place % 97], place, [0])
        return (time.perf_counter() - read) / DECODED, read - began


def write_adapter(model: Path, path: Path, rank: int) -> Path:
    """One of random numbers in F16, on all matrices of attention and dense networks."""
    source, rng = open_gguf(model), np.random.default_rng(0)
    writer = gguf.GGUFWriter(path, source.metadata.get_str("general.architecture"))
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", float(rank))
    for name, info in source.tensors.items():
        if name.startswith("blk.") and name.split(".")[2] in MATRICES:
            n_out, n_in = info.shape
            writer.add_tensor(f"{name}.lora_a", rng.normal(0, 0.01, (rank, n_in)).astype(np.float16))
            writer.add_tensor(f"{name}.lora_b", rng.normal(0, 0.01, (n_out, rank)).astype(np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file(progress=False)
    writer.close()
    return path


if __name__ == "__main__":
    main()
