"""Cost of an adapter (LoRA) beside a model: decoding and reading with one of a rank on all matrices of layers.

    python -m benchmarks.adapter_cost MODEL.gguf [--ranks 16 64] [--rounds 15] [--prompt 512]

The model is loaded once, and its adapter switched off and on in turns, so that both read the same memory. Printed is
the median over the rounds of the time with it, divided by that without it in the same round; then, by the library's
own clock, what it adds to the linears of a decoded token, beside what its bytes would take as fast as the weights.
"""

import argparse
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from benchmarks.kv_quality import machine
from benchmarks.step_profile import Clock, title
from localrun.backends.cpu import abi
from localrun.backends.cpu.library import load_library
from localrun.base.adapter_choice import AdapterChoice
from localrun.base.processors import usual_threads
from localrun.base.request import LoadOptions
from localrun.engine.load import LoadedModel, load
from localrun.engine.scratch_runs import ScratchRuns
from localrun.formats.gguf import open_gguf

DECODED = 8  # tokens of a round
MATRICES = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")


@dataclass(frozen=True)
class Times:
    """Seconds of a decoded token, of a prompt, and of each instruction of the token."""

    token: float
    prompt: float
    instructions: list[float]


class Adapted:
    """A model and the linears of its program, whose adapters can be switched off and on."""

    def __init__(self, model: LoadedModel) -> None:
        self.model, executor = model, model.engine.runner.executor
        self.clock, self.instructions = Clock(executor), executor.instructions  # type: ignore[attr-defined]
        self.linears = [one.linear for one in self.instructions if abi.OPS[one.op] == "linear"]
        self.counts = [list(linear.n_adapters) for linear in self.linears]

    def switch(self, is_on: bool) -> None:
        for linear, counts in zip(self.linears, self.counts, strict=True):
            linear.n_adapters[:] = counts if is_on else [0] * len(counts)

    def times(self, prompt: int, is_on: bool) -> Times:
        self.switch(is_on)
        with ScratchRuns(self.model.engine.runner, self.model.engine.store, depth=0) as runs:
            began = time.perf_counter()
            runs.feed([1 + place % 97 for place in range(prompt)], 0, [prompt - 1])
            read = time.perf_counter()
            self.clock.start()
            for place in range(prompt, prompt + DECODED):
                runs.feed([1 + place % 97], place, [0])
            decoded = time.perf_counter()
        return Times((decoded - read) / DECODED, read - began, [one / DECODED for one in self.clock.read()])

    def added(self, rounds: list[tuple[Times, Times]]) -> Iterator[str]:
        """Rows of the linears that are alike: microseconds of one without adapters, and what those add."""
        self.switch(True)
        alike = defaultdict[str, list[int]](list)
        for index, one in enumerate(self.instructions):
            if abi.OPS[one.op] == "linear" and narrow_bytes(one.linear):
                alike[title(one)].append(index)
        for name, members in alike.items():
            off, on = (
                sum(statistics.median(both[kind].instructions[i] for both in rounds) for i in members) / len(members)
                for kind in (0, 1)
            )
            linear = self.instructions[members[0]].linear
            share = narrow_bytes(linear) / sum(one.contents.n_bytes for one in linear.weight if one)
            yield f"| {len(members)} × {name} | {1e6 * off:.0f} | {1e6 * (on - off):.0f} | {1e6 * off * share:.0f} |"


def narrow_bytes(linear: Any) -> int:
    """Bytes of the two matrices of all adapters of a linear."""
    found = 0
    for index in range(linear.n_weights):
        for adapter in linear.adapter[index][: linear.n_adapters[index]]:
            a = adapter.a.contents
            found += a.n_bytes + 2 * a.n_rows * linear.weight[index].contents.n_rows
    return found


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
    with tempfile.TemporaryDirectory() as folder:
        for rank in asked.ranks:
            measure(asked, write_adapter(asked.model, Path(folder) / f"{rank}.gguf", rank), rank)


def measure(asked: argparse.Namespace, adapter: Path, rank: int) -> None:
    """Print what an adapter costs."""
    choice = (AdapterChoice(adapter),)
    options = LoadOptions(asked.model, threads=asked.threads, ctx=2 * asked.prompt, kv="f16", adapters=choice)
    adapted, rounds = Adapted(load(options)), list[tuple[Times, Times]]()
    for number in range(asked.rounds + 1):
        found = {is_on: adapted.times(asked.prompt, is_on) for is_on in (number % 2 == 0, number % 2 == 1)}
        rounds += [(found[False], found[True])] * (number > 0)
    print("| rank | decode | with the adapter ÷ without | prefill | with ÷ without |\n|---|---|---|---|---|")
    cells = []
    for kind in ("token", "prompt"):
        both = [(getattr(off, kind), getattr(on, kind)) for off, on in rounds]
        cells += [f"{1000 * statistics.median(off for off, _ in both):.1f} ms"]
        cells += [f"{statistics.median(on / off for off, on in both):.3f}"]
    print(f"| {rank} | " + " | ".join(cells) + " |\n", flush=True)
    print("| linears of a decoded token | µs of one | that the adapter adds | by its bytes |\n|---|---|---|---|")
    print(*adapted.added(rounds), sep="\n", end="\n\n", flush=True)
    adapted.model.close()


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
