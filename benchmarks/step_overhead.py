"""What a token costs beside the native step: scheduler, step translation, sampler and delivery, in milliseconds.

    python benchmarks/step_overhead.py MODEL.gguf [--rounds 8] [--tokens 96]

Greedy answers, and such with temperature, top-k, top-p and all penalties, take turns. Printed are medians.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.kv_quality import machine
from localrun.base.events import Token
from localrun.base.request import LoadOptions, Request, Sampling
from localrun.client.local import LocalClient

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
    parser.add_argument("model", type=Path)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=96)
    asked = parser.parse_args()
    with LocalClient(LoadOptions(asked.model, ctx=1024, backend="cpu")) as client:
        executor: Any = client.model.engine.runner.executor
        clock = Clock(executor.calls)
        rounds = [
            {name: measure(client, clock, sampling, asked.tokens) for name, sampling in SAMPLING.items()}
            for _ in range(asked.rounds + 1)  # the first warms up
        ][1:]
        vocabulary, threads = client.model.config.vocab_size, client.model.threads
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


if __name__ == "__main__":
    main()
