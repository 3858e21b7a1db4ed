"""Decoding through the server beside decoding as `localrun run` does it, by one engine.

    python -m benchmarks.server_decode MODEL.gguf [--processes 4] [--pairs 15] [--tokens 64] [--ctx 8192] [--threads N]
                                       [--itself]

Two processes differ by several per cent, whatever they do: where each happens to have its memory decides. And a machine
changes its pace within a minute. So one worker answers both ways (silent_worker.py), in turns of a second or two, every
other pair the other way round, and a few processes show that it is not one's. With `--itself` both are `run`: what that
differs from 1 is chance. The standard error is that of the median over pairs drawn again.

The client is a program of its own that costs little (plain_client.py). "CPU beside the engine" is that of the client,
the server, and all threads of the worker but those of the engine, which compute most; other load changes it little.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import psutil
from localrun_testing.served import Served, serving

from benchmarks.http_answers import ALWAYS, SEED, p95
from benchmarks.kv_quality import machine
from benchmarks.one_server import QUESTION
from benchmarks.silent_worker import UNTIL_THE_END
from localrun.base.events import Done
from localrun.base.processors import usual_threads
from localrun.base.request import LoadOptions, Request, Sampling
from localrun.base.startup import switch_threads_often
from localrun.client.worker.client import WorkerClient

DRAWS = 2000
MESSAGES = [{"role": "user", "content": QUESTION}]


@dataclass(frozen=True)
class Answer:
    """Tokens a second, milliseconds of a core a token beside the engine, and seconds between pieces of text."""

    rate: float
    beside: float
    gaps: tuple[float, ...] = ()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--pairs", type=int, default=15, help="of each process")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--ctx", type=int, default=8192)
    parser.add_argument("--threads", type=int, default=usual_threads())
    parser.add_argument("--itself", action="store_true", help="run beside run: what is chance")
    asked = parser.parse_args()
    switch_threads_often()
    print(machine())
    pairs: list[tuple[Answer, Answer]] = []
    for number in range(1, asked.processes + 1):
        with engine(asked) as one:
            here = [one.pair(asked.itself, turn) for turn in range(asked.pairs)]
        print(f"process {number}: {ratio(here):.3f}", flush=True)
        pairs += here
    report(pairs, "run" if asked.itself else "server")


@contextmanager
def engine(asked: argparse.Namespace) -> Iterator["Engine"]:
    """A new worker and a server that has it, both warmed up."""
    options = LoadOptions(asked.model, ctx=asked.ctx, threads=asked.threads)
    worker = WorkerClient(options, module="benchmarks.silent_worker")
    with serving(lambda choice: worker) as served:
        one = Engine(worker, served, asked.threads, asked.tokens)
        one.serve()
        one.run()
        yield one


class Engine:
    """One worker, asked either way."""

    def __init__(self, worker: WorkerClient, served: Served, threads: int, tokens: int) -> None:
        self._worker, self._served, self._threads, self._tokens = worker, served, threads, tokens
        (self._process,) = psutil.Process().children()

    def pair(self, is_itself: bool, turn: int) -> tuple[Answer, Answer]:
        """An answer of each side, and that of `run` second; every other turn it is the first to be computed."""
        sides = self.run if is_itself else self.serve, self.run
        first, second = (side() for side in (sides if turn % 2 else reversed(sides)))
        return (first, second) if turn % 2 else (second, first)

    def run(self) -> Answer:
        """An answer as `localrun run` has it, which says how fast it was."""
        request = Request(
            messages=tuple(MESSAGES),
            sampling=Sampling(seed=SEED),
            max_tokens=self._tokens,
            priority="api",
            gather_ms=UNTIL_THE_END,
        )
        before = self._computed()
        *_, done = self._worker.generate(request)
        assert isinstance(done, Done)
        figures = done.completion
        return Answer(figures.timings.decode_tps or 0.0, self._beside(before) / figures.completion_tokens)

    def serve(self) -> Answer:
        """An answer over HTTP, as its client sees it."""
        client = (sys.executable, "-m", "benchmarks.plain_client", f"{self._served.url}/v1/chat/completions")
        body = json.dumps({**ALWAYS, "messages": MESSAGES, "max_tokens": self._tokens})
        before = self._computed()
        heard = json.loads(subprocess.check_output(client, input=body, text=True))
        pieces, n_tokens = heard["pieces"], heard["n_tokens"]
        gaps = tuple(later - one for one, later in pairwise(pieces))
        return Answer((n_tokens - 1) / sum(gaps), (self._beside(before) + 1000 * heard["computed"]) / n_tokens, gaps)

    def _computed(self) -> dict[str, int]:
        """Nanoseconds that each thread of the worker has computed, and, under an empty name, this process."""
        tasks = Path(f"/proc/{self._process.pid}/task").iterdir()
        threads = {task.name: int((task / "schedstat").read_text().split()[0]) for task in tasks}
        return {**threads, "": time.process_time_ns()}

    def _beside(self, before: dict[str, int]) -> float:
        """Milliseconds computed since then, without the engine."""
        since = {name: ns - before.get(name, 0) for name, ns in self._computed().items()}
        own = since.pop("")
        return (own + sum(sorted(since.values())[: -self._threads])) / 1e6


def report(pairs: list[tuple[Answer, Answer]], name: str) -> None:
    drawn = [ratio(random.choices(pairs, k=len(pairs))) for _ in range(DRAWS)]
    ratios = sorted(first.rate / second.rate for first, second in pairs)
    quarter = len(ratios) // 4
    half = f"half of them {ratios[quarter]:.2f} to {ratios[-1 - quarter]:.2f}"
    print(f"decode: {name} ÷ run        {ratio(pairs):.3f} ± {statistics.stdev(drawn):.3f} ({len(pairs)} pairs, {half};"
          " wanted: 0.98, or 0.97 with pieces of 30 ms)")  # fmt: skip
    sides = [statistics.median(answer.beside for answer in side) for side in zip(*pairs, strict=True)]
    step = 1000 / statistics.median(run.rate for _, run in pairs)
    print(f"CPU beside the engine       {sides[0]:.2f} ms a token, run {sides[1]:.2f}; a step takes {step:.1f}")
    if gaps := [gap for answer, _ in pairs for gap in answer.gaps]:
        print(f"between pieces of text      median {1000 * statistics.median(gaps):.1f} ms, 95 % {1000 * p95(gaps):.1f}"
              f" ms, most {1000 * max(gaps):.1f} ms")  # fmt: skip


def ratio(pairs: list[tuple[Answer, Answer]]) -> float:
    return statistics.median(first.rate / second.rate for first, second in pairs)


if __name__ == "__main__":
    main()
