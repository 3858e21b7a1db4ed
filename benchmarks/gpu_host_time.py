"""What a token costs the engine's thread on a GPU, without a GPU: the driver is a stand-in that computes nothing.

    python -m benchmarks.gpu_host_time [--shape 8B] [--tokens 500] [--prompt 64]

Printed are medians of processor time: from the plan of a step until its token is told, and of that between the first
call of the driver and the last; and what the driver was asked for. Needs g++ and NVRTC.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections import Counter
from typing import Any

ON_STUB = "LOCALRUN_ON_STUB_DRIVER"
WARM_UP = 32  # tokens that are not counted: graphs are recorded, memory is touched


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", default="8B", choices=("tiny", "1B", "4B", "8B", "14B"))
    parser.add_argument("--tokens", type=int, default=500)
    parser.add_argument("--prompt", type=int, default=64)
    asked = parser.parse_args()
    if os.environ.get(ON_STUB) != "1":
        from localrun_testing.stub_gpu import run_on_stub

        os.environ[ON_STUB] = "1"
        print(run_on_stub("benchmarks.gpu_host_time", *sys.argv[1:]), end="")
        return
    measure(asked.shape, asked.tokens, asked.prompt)


def measure(shape: str, n_tokens: int, n_prompt: int) -> None:
    from localrun_testing.stub_decode import text_on_stub
    from localrun_testing.stub_gpu import StubDriver

    from localrun.cache.store import CacheStore
    from localrun.engine.engine import Engine
    from localrun.engine.generation import GenerationRequest
    from localrun.engine.sampler import SamplerSettings
    from localrun.model.config import group_layers

    ctx = n_prompt + WARM_UP + n_tokens + 64
    text, driver = text_on_stub(shape, ctx), StubDriver()
    driver.quiet()
    runner = text.runner
    groups = group_layers(text.model.config.layers, runner_codecs(text))
    store = CacheStore(groups, [text.n_blocks] * len(groups), copy=runner.copy)
    engine = Engine(runner, store, ctx)
    clock = Clock(engine, driver)
    same_candidates(runner.executor)
    prompt = tuple(range(n_prompt))
    settings = SamplerSettings(temperature=0.8, top_k=40, top_p=0.95, min_p=0.05)
    request = GenerationRequest(prompt, WARM_UP + n_tokens, frozenset(), settings, seed=1)
    for _ in engine.submit(request):
        pass
    engine.close()
    print_found(shape, clock.tokens[WARM_UP:])


def runner_codecs(text: Any) -> Any:
    from localrun.ops.kv import KV_CODECS

    return (KV_CODECS["f16"],) * len(text.model.config.layers)


def same_candidates(executor: Any) -> None:
    """Have the device find the same candidates after every step, and draw the first, which is by far the likeliest:
    nothing computes others."""
    import torch

    found = executor.program.head.buffers_for(1).found.on_device
    n = (found.shape[1] - 3) // 2
    found[:, :n] = torch.arange(n, dtype=torch.int32)
    logits = found.view(torch.float32)
    logits[:, n : 2 * n] = -torch.arange(n, dtype=torch.float32)
    logits[:, n], logits[:, 2 * n] = 40.0, 50.0  # the first, and the logsumexp at this temperature
    found[:, -2], found[:, -1] = 1, 0


class Clock:
    """Seconds of the engine's thread for every token, those between calls of the driver, and the calls."""

    def __init__(self, engine: Any, driver: Any) -> None:
        self.tokens: list[tuple[float, float, dict[str, int]]] = []
        schedule, go_on, self.driver = engine.scheduler.schedule, engine.generations._go_on, driver

        def started() -> Any:
            self.calls, self.at = driver.counts(), time.thread_time()
            driver.seconds()
            return schedule()

        def told(*given: Any) -> None:
            go_on(*given)
            seconds = time.thread_time() - self.at
            calls = Counter(driver.counts())
            calls.subtract(self.calls)
            self.tokens.append((seconds, driver.seconds(), dict(calls)))

        engine.scheduler.schedule, engine.generations._go_on = started, told


def print_found(shape: str, tokens: list[tuple[float, float, dict[str, int]]]) -> None:
    of_token, of_driver = (1e3 * statistics.median(each[part] for each in tokens) for part in (0, 1))
    usual = Counter(str(each[2]) for each in tokens).most_common(1)[0]
    print(f"{shape}, one text, {len(tokens)} tokens: median of the engine's thread, in ms")
    print(f"from the plan of a step until its token is told  {of_token:.3f}  (aim: 0.5)")
    print(f"of it between the first and the last driver call {of_driver:.3f}  (aim: 0.3)")
    print(f"asked of the driver for {usual[1]} of {len(tokens)} tokens: {usual[0]}")


if __name__ == "__main__":
    main()
