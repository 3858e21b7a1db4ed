"""This checkout beside another of localrun: what a change made faster or slower, as ratios of rounds.

    python -m benchmarks.two_checkouts OTHER MODEL.gguf [--rounds 9]

Each has its own .venv with its library compiled. They take turns, every other round the other way round, so that what
else the machine does meets both. Printed are the medians of each and the median of the ratios, of which more than 1
means that this checkout is faster: of a prompt, of answers, of starts with weights to pack and packed before, of what
a token costs beside the native step.
"""

import argparse
import re
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks import ROOT
from benchmarks.cold_start import localrun_seconds, pack_all
from benchmarks.kv_quality import machine
from benchmarks.side_by_side import Case, Engine
from localrun.base.processors import usual_threads

CASES = Case("prefill", 512, 0, 1), Case("decode", 64, 0, 1)
OVERHEAD = re.compile(r"^(\w+) +([\d.]+) ms beside", re.MULTILINE)


class Checkout:
    """A checkout with its homes, one with and one without packed weights."""

    def __init__(self, folder: Path, model: Path, homes: Path) -> None:
        self.folder, self.model, self.python = folder, model, folder / ".venv/bin/python"
        self.first, self.later = homes / "first", homes / "later"
        self.first.mkdir(parents=True)
        (self.first / "config.toml").write_text("packed_weights = 0\n")
        pack_all(model, self.later, self.python)

    def rates(self) -> dict[str, float]:
        """Tokens a second, of a new process each time: pages and threads of one process may suit it better or worse."""
        options = {"path": str(self.model), "threads": usual_threads(), "ctx": 1024, "batch": 1, "flash": True}
        worker = self.folder / "benchmarks/engine_worker.py"
        engine = Engine("localrun", self.python, {"LOCALRUN_HOME": str(self.later)}, worker, **options)
        for case in CASES:
            engine.rate(case)  # warms up
        rates = {case.title: engine.rate(case) for case in CASES}
        engine.close()
        return rates

    def starts(self) -> dict[str, float]:
        """Starts a second, to the first token."""
        homes = {"start, weights to pack": self.first, "start, packed before": self.later}
        return {name: 1 / localrun_seconds(self.model, home, self.python) for name, home in homes.items()}

    def overheads(self) -> dict[str, float]:
        """Tokens a second if the native steps took no time."""
        command = [str(self.python), "-m", "benchmarks.step_overhead", str(self.model), "--rounds", "2"]
        told = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=True).stdout
        return {f"beside a step, {name}": 1000 / float(ms) for name, ms in OVERHEAD.findall(told)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--rounds", type=int, default=9)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as homes:
        other, this = (
            Checkout(folder.resolve(), asked.model.resolve(), Path(homes) / name)
            for name, folder in (("other", asked.other), ("this", ROOT))
        )
        print(f"{asked.model.name}, {usual_threads()} threads, {machine()}, {asked.rounds} rounds")
        for measure in (Checkout.rates, Checkout.starts, Checkout.overheads):
            compare(measure, this, other, asked.rounds)


def compare(measure: Callable[[Checkout], dict[str, float]], this: Checkout, other: Checkout, n_rounds: int) -> None:
    rounds = []
    for number in range(n_rounds + 1):
        order = (this, other) if number % 2 else (other, this)
        rates = {checkout: measure(checkout) for checkout in order}
        rounds.append((rates[this], rates[other]))
    for name in rounds[0][0]:
        ours, theirs = ([rates[name] for rates in column] for column in zip(*rounds[1:], strict=True))
        ratios = sorted(a / b for a, b in zip(ours, theirs, strict=True))
        print(
            f"{name:24} {statistics.median(theirs):8.2f} → {statistics.median(ours):8.2f} a second,"
            f" ratio {statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})",
            flush=True,
        )


if __name__ == "__main__":
    main()
