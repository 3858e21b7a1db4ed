"""What a token costs beside the native step: scheduler, step translation, sampler and delivery, in milliseconds.

    python benchmarks/step_overhead.py MODEL.gguf [--rounds 8] [--tokens 96]
    python benchmarks/step_overhead.py [--rounds 8]

Greedy answers, and such with temperature, top-k, top-p and all penalties, take turns. Printed are medians. Without a
model: what choosing the tokens of a step takes, of as many rows as are printed, all at once and one by one.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.kv_quality import machine
from localrun.base.events import Token
from localrun.base.request import LoadOptions, Request, Sampling
from localrun.client.local import LocalClient
from localrun.engine.pick import pick, pick_rows
from localrun.engine.sampler import SamplerSettings
from localrun.engine.sequence import GenerationRequest, Sequence
from localrun.ops.interface import Logits

PROMPT = "one two three four five six seven"
SAMPLING = {
    "greedy": Sampling(temperature=0.0),
    "sampled": Sampling(
        temperature=0.8,
        top_k=40,
        top_p=0.95,
        repeat_penalty=1.1,
        presence_penalty=0.1,
        frequency_penalty=0.1,
        seed=1,
    ),
}


class Clock:
    """The seconds that native steps took, and their number."""

    def __init__(self, calls: Any) -> None:
        self.native, self.steps, self._run = 0.0, 0, calls.program_run
        calls.program_run = self.run

    def run(self, *arguments: Any) -> int:
        started = time.perf_counter()
        status: int = self._run(*arguments)
        self.native += time.perf_counter() - started
        self.steps += 1
        return status


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=96)
    asked = parser.parse_args()
    if asked.model is None:
        for n_rows in (1, 2, 3, 4, 8, 16, 100):
            measure_choice(n_rows, asked.rounds)
        return
    with LocalClient(LoadOptions(asked.model, ctx=1024, backend="cpu")) as client:
        executor: Any = client.model.engine.runner.executor
        clock = Clock(executor.calls)
        rounds = [
            {name: measure(client, clock, sampling, asked.tokens) for name, sampling in SAMPLING.items()}
            for _ in range(asked.rounds + 1)  # the first warms up
        ][1:]
        vocabulary, threads = client.model.plan.config.vocab_size, client.model.threads
    print(f"{asked.model.name}, {vocabulary:,} tokens, {threads} threads, {machine()}")
    for name in SAMPLING:
        beside, step = (statistics.median(column) for column in zip(*(row[name] for row in rounds), strict=True))
        print(f"{name:8} {beside:.2f} ms beside a native step of {step:.1f} ms")


def measure(client: LocalClient, clock: Clock, sampling: Sampling, n_tokens: int) -> tuple[float, float]:
    """Milliseconds a token beside the native step, and in it, from the second token on."""
    started = 0.0
    for event in client.generate(Request(prompt=PROMPT, sampling=sampling, max_tokens=n_tokens)):
        if isinstance(event, Token) and not started:
            started, clock.native, clock.steps = time.perf_counter(), 0.0, 0
    elapsed = time.perf_counter() - started
    return 1000 * (elapsed - clock.native) / clock.steps, 1000 * clock.native / clock.steps


def measure_choice(n_rows: int, rounds: int) -> None:
    """Milliseconds that the tokens of so many sampled rows take, normally distributed over 50,000 ids."""
    chance = np.random.default_rng(0)
    rows = (3 * chance.standard_normal((n_rows, 50_000))).astype(np.float32)
    ids = np.argsort(-rows, axis=1, kind="stable")[:, :256].astype(np.int32)
    chain = SamplerSettings(temperature=0.8, top_k=40, top_p=0.95, min_p=0.05)
    logsumexp = np.log(np.exp(rows.astype(np.float64) / chain.temperature).sum(1))
    logits = Logits(rows, ids, np.take_along_axis(rows, ids, 1), logsumexp, np.ones(n_rows, bool))
    wanted = [(row, Sequence(GenerationRequest((1,), 9, frozenset(), chain, seed=row))) for row in range(n_rows)]
    at_once, alone = [], []
    for _ in range(rounds + 1):
        started = time.perf_counter()
        found = pick_rows(logits, wanted)
        at_once.append(time.perf_counter() - started)
        started = time.perf_counter()
        assert found == {row: pick(logits, row, sequence) for row, sequence in wanted}
        alone.append(time.perf_counter() - started)
    medians = [1000 * statistics.median(seconds[1:]) for seconds in (at_once, alone)]
    print(f"{n_rows:4} rows: {medians[0]:6.3f} ms at once, {medians[1]:6.3f} ms one by one")


if __name__ == "__main__":
    main()
