"""What a token costs beside the native step: scheduler, step translation, sampler and delivery, in milliseconds.

    python -m benchmarks.step_overhead MODEL.gguf [--rounds 8] [--tokens 96] [--draft off]
    python -m benchmarks.step_overhead [--rounds 8]

Greedy answers, and such with temperature, top-k, top-p and all penalties, take turns. Printed are medians. Without a
model: what choosing the tokens of a step takes, of as many rows as are printed, by usual settings and by such that the
best candidates cannot decide.
"""

import argparse
import dataclasses
import itertools
import os
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.kv_quality import machine
from localrun.backends.cpu.bindings import calls_of
from localrun.backends.cpu.library import load_library, why_no_library
from localrun.backends.cpu.logits import LogitsMemory
from localrun.base.events import Token
from localrun.base.request import LoadOptions, Request, Sampling
from localrun.client.local import LocalClient
from localrun.engine.generation import GenerationRequest, GenerationState
from localrun.engine.next_tokens import NextRow, sample_next
from localrun.engine.sampler import SamplerSettings
from localrun.ops.interface import Logits
from localrun.ops.largest_step import MAX_CANDIDATES

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
CHAINS = {
    "usual": SamplerSettings(temperature=0.8, top_k=40, top_p=0.95, min_p=0.05),
    "flat": SamplerSettings(temperature=1.5, top_k=0, top_p=0.99, min_p=0.0),
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
    parser.add_argument("--draft", default="off", help="with drafts a step has several tokens (default: off)")
    asked = parser.parse_args()
    if asked.model is None:
        for vocab in (50_000, 151_936):
            for name, n_rows in itertools.product(CHAINS, (1, 8, 100)):
                measure_choice(name, n_rows, vocab, asked.rounds)
        return
    with LocalClient(LoadOptions(asked.model, ctx=1024, backend="cpu", draft=asked.draft)) as client:
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


class Choice:
    """Rows of logits as a step leaves them, normally distributed over a vocabulary, and sequences that want tokens."""

    def __init__(self, n_rows: int, vocab: int, chain: SamplerSettings) -> None:
        self.memory = (3 * np.random.default_rng(0).standard_normal((n_rows, vocab))).astype(np.float32)
        library = load_library()
        assert library is not None, why_no_library()
        self.calls = calls_of(library)
        self.threads = self.calls.threads_create(os.cpu_count() or 1)
        native = LogitsMemory(self.calls, self.threads, self.memory.ctypes.data, n_rows, vocab)
        native.found["ids"] = np.argsort(-self.memory, axis=1, kind="stable")[:, :MAX_CANDIDATES]
        native.found["values"] = np.take_along_axis(self.memory, native.found["ids"], 1)
        native.found["logsumexp"] = np.log(np.exp(self.memory.astype(np.float64) / chain.temperature).sum(1))
        native.found["n_candidates"], native.found["finite"] = MAX_CANDIDATES, 1
        self.native = native.logits(n_rows)
        self.plain = Logits(*(getattr(self.native, field.name) for field in dataclasses.fields(Logits)))
        requests = [GenerationRequest((1,), 9, frozenset(), chain, seed=row) for row in range(n_rows)]
        self.wanted = [NextRow(row, GenerationState(request)) for row, request in enumerate(requests)]

    def close(self) -> None:
        self.calls.threads_destroy(self.threads)


def measure_choice(name: str, n_rows: int, vocab: int, rounds: int) -> None:
    """Milliseconds that the tokens of so many rows take, by one native call and by the plain chain in Python."""
    choice = Choice(n_rows, vocab, CHAINS[name])
    seconds: dict[str, list[float]] = {"native": [], "plain": []}
    for _ in range(rounds + 1):  # the first warms up
        for way, logits in (("native", choice.native), ("plain", choice.plain)):
            started = time.perf_counter()
            sample_next(logits, choice.wanted)
            seconds[way].append(1000 * (time.perf_counter() - started))
    choice.close()
    native, plain = (statistics.median(taken[1:]) for taken in seconds.values())
    print(f"{name:6} {n_rows:4} rows of {vocab:,}: {native:7.3f} ms in one native call, {plain:8.3f} ms in Python")


if __name__ == "__main__":
    main()
