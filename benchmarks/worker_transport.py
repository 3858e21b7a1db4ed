"""What a worker process costs: the same answers from an engine in this process and from one in a worker, in turn.

    python -m benchmarks.worker_transport [--rounds 40] [--backend cpu]

`between tokens` is the median time from one token to the next as the engine measures it; `processor` is what all
threads of the process with the engine take for one token. Ratios are medians over pairs of rounds. Linux only.
"""

import argparse
import os
import statistics
import time

from localrun.base.events import Completion, Done
from localrun.base.request import LoadOptions, Request, Sampling
from localrun.base.resources import resource
from localrun.client.interface import EngineClient
from localrun.client.local import LocalClient
from localrun.client.worker.client import WorkerClient

REQUEST = Request(
    messages=({"role": "user", "content": "Tell me a story about an otter."},), sampling=Sampling(temperature=0.0)
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--backend", default="cpu")
    arguments = parser.parse_args()
    options = LoadOptions(resource("localrun/builtin/localrun-tiny.gguf"), backend=arguments.backend, threads=1)
    with LocalClient(options) as here, WorkerClient(options) as there:
        assert there._worker is not None
        assert there._worker.pid is not None
        pids = os.getpid(), there._worker.pid
        rounds: list[list[tuple[float, float]]] = [[], []]
        for number in range(arguments.rounds + 1):
            pairs = list(zip(rounds, (here, there), pids, strict=True))
            for results, client, pid in pairs if number % 2 else reversed(pairs):
                results.append(measure(client, pid))
    for column, what in enumerate(("between tokens", "processor")):
        own, other = ([row[column] for row in results[1:]] for results in rounds)  # the first warms up
        ratio = statistics.median(b / a for a, b in zip(own, other, strict=True))
        print(f"{what:15} here {statistics.median(own):.3f} ms  worker {statistics.median(other):.3f} ms  {ratio:.3f}")


def measure(client: EngineClient, pid: int) -> tuple[float, float]:
    """Milliseconds between tokens, and of processor time a token."""
    before = processor_seconds(pid)
    done = answer(client)
    return done.timings.itl_ms_p50, 1000 * (processor_seconds(pid) - before) / done.completion_tokens


def answer(client: EngineClient) -> Completion:
    *_, last = client.generate(REQUEST)
    assert isinstance(last, Done)
    return last.completion


def processor_seconds(pid: int) -> float:
    """Of all threads of a process, those that have ended included."""
    return time.clock_gettime((~pid << 3) | 2)  # how Linux numbers the clocks of processes


if __name__ == "__main__":
    main()
