"""What a request costs at the end of a long chat: the next turn, another answer, an edit, another branch.

`conversations.py --depth 8192` runs this. The next turn is measured against its new tokens alone: one step of the same
rows over the same filled blocks, with nothing of engine, cache and prefix tree around it.
"""

import random
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass

from localrun.engine.engine import Engine
from localrun.engine.generation import GenerationRequest, GenerationState
from localrun.engine.handle import Finished
from localrun.engine.runner import cache_input
from localrun.engine.sampler import SamplerSettings

NEW = 20  # tokens of a question
ANSWER = 32
GREEDY = SamplerSettings(temperature=0.0)


@dataclass(frozen=True)
class Deep:
    """Medians over the rounds; `ratio` of its TTFT to the new tokens alone, where that was measured."""

    case: str
    prompt: int
    reused: float
    computed: float
    ttft_ms: float
    ratio: float | None = None


class DeepChat:
    """A chat of `depth` tokens: a prompt, its answer, and a second branch that parts at three quarters."""

    def __init__(self, engine: Engine, depth: int, vocab_size: int) -> None:
        self.engine, self.dice, self.vocab_size = engine, random.Random(0), vocab_size
        self.history = self.text(depth - NEW - ANSWER)
        self.prompt = self.history + self.text(NEW)
        self.prefill = self.ask(self.prompt, ANSWER)
        self.leaf = self.prefill.token_ids
        self.other = self.history[: depth * 3 // 4] + self.text(depth // 4)

    def text(self, n: int) -> list[int]:
        return self.dice.choices(range(10, min(self.vocab_size, 5000)), k=n)

    def ask(self, prompt: list[int], n: int = 1) -> GenerationState:
        request = GenerationRequest(tuple(prompt), n, frozenset(), GREEDY, seed=0)
        return next(event.sequence for event in self.engine.submit(request) if isinstance(event, Finished))

    def alone(self, prompt: list[int]) -> float:
        """Milliseconds of one step over the last tokens of a prompt whose beginning is cached."""
        runner, store = self.engine.runner, self.engine.store
        sequence = store.open(prompt)
        try:
            start = sequence.reuse.start
            store.extend(sequence, start, len(prompt))
            view = cache_input(runner.groups, sequence, start, len(prompt) - start)
            started = time.perf_counter()
            runner.compute([(prompt[start:], start)], [view], [len(prompt) - start - 1])
            return 1000 * (time.perf_counter() - started)
        finally:
            store.abandon(sequence)

    def measure(self, rounds: int) -> Iterator[Deep]:
        yield summed("first prompt", [self.prefill])
        turns, ratios = [], []
        for number in range(rounds):
            before = self.alone(self.leaf + self.text(NEW)) if number % 2 else None
            turns.append(self.ask(self.leaf + self.text(NEW)))
            ratios.append(ttft_ms(turns[-1]) / (before or self.alone(self.leaf + self.text(NEW))))
        yield summed("next turn", turns, statistics.median(ratios))
        yield summed("regenerate", [self.ask(self.prompt) for _ in range(rounds)])
        yield summed("edit the last turn", [self.ask(self.history + self.text(NEW)) for _ in range(rounds)])
        yield summed("new branch at 3/4", [self.ask(self.other, ANSWER)])
        there, back = [], []
        for _ in range(rounds):
            back.append(self.ask(self.leaf + self.text(NEW)))
            there.append(self.ask(self.other + self.text(NEW)))
        yield summed("switch branch", back + there)


def ttft_ms(done: GenerationState) -> float:
    return 1000 * (done.figures.token_times[0] - done.figures.started)


def summed(case: str, done: list[GenerationState], ratio: float | None = None) -> Deep:
    return Deep(
        case,
        done[0].n_prompt,
        statistics.median(one.figures.n_cached / one.n_prompt for one in done),
        statistics.median(one.n_prompt - one.figures.n_cached for one in done),
        statistics.median(map(ttft_ms, done)),
        ratio,
    )
