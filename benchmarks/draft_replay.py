"""Drafts by lookup for recorded answers, without their model: `python -m benchmarks.draft_replay MODEL --answers FILE`.

The answers of `benchmarks.drafts` are computed once and kept in FILE. Then the engine's own lookup and depths draft for
them by a clock of their own, which a step moves on by `--step` and a share of it, `--row`, for each further row, and a
look by `--look`, a glance by a tenth of that. So what another policy gains is known in seconds, whatever else runs.
Printed are the geometric means of the speeds beside steps of one row, those of the best drafts that any earlier place
of the text and any depth would have given, and the shares of the time that looks and rejected rows took.
"""

import argparse
import json
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from benchmarks.drafts import PROSE, QUOTING, is_quoted, repeated_share
from localrun.cache.node import common_prefix
from localrun.client.llm import LLM
from localrun.engine.generation import GenerationRequest, GenerationState
from localrun.engine.sampler import SamplerSettings
from localrun.engine.speculation import speculation
from localrun.engine.speculation.depth import MOST_DEPTH
from localrun.engine.speculation.drafter import DraftedTokens
from localrun.engine.speculation.lookup import Lookup
from localrun.engine.step_plan import StepPlan, StepWork
from localrun.formats.detect import open_model_file
from localrun.text.tokenizer import tokenizer_from_gguf

CTX = 4096
GLANCE = 0.1  # of a look, that a glance takes


class Replay:
    """The engine's speculation for recorded answers, one after the other, and the seconds that these take."""

    def __init__(self, step: float, row: float, look: float) -> None:
        self.step, self.row, self.look = step, row, look
        self.now = self.looks = self.rejected = 0.0  # seconds
        self.speculation = speculation.Speculation(CTX, speculation.MOST_ROWS, lambda _: self.drafter())

    def drafter(self) -> Lookup:
        replay = self

        class Timed(Lookup):
            def may_draft(self, token_ids: Sequence[int]) -> bool:
                replay.take(GLANCE * replay.look)
                return super().may_draft(token_ids)

            def draft(self, token_ids: Sequence[int], most: int) -> DraftedTokens:
                replay.take(replay.look)
                return super().draft(token_ids, most)

        return Timed()

    def take(self, seconds: float) -> None:
        self.now, self.looks = self.now + seconds, self.looks + seconds

    def cost(self, n_drafts: int) -> float:
        return self.step * (1 + self.row * n_drafts)

    def speed(self, prompt: Sequence[int], answer: Sequence[int]) -> float:
        """How many times as fast as without drafts an answer comes."""
        request = GenerationRequest(tuple(prompt), len(answer), frozenset(), SamplerSettings(), seed=0)
        state, n, began = GenerationState(request), 1, self.now
        state.cache = SimpleNamespace(reuse=SimpleNamespace(n_tokens=0))  # type: ignore[assignment]
        state.n_computed = len(prompt)
        state.append(answer[0], 0.0)
        self.speculation.propose([StepWork(state, 1)])
        while n < len(answer):
            drafts = self.speculation.propose([StepWork(state, 1)])
            work = StepWork(state, 1, drafts[0] if drafts else ())
            self.now += self.cost(len(work.drafts))
            self.speculation.observe(StepPlan((work,)), self.cost(len(work.drafts)))
            n_right = common_prefix(work.drafts, answer[n:])
            if depth := len(work.drafts):
                self.rejected += (self.cost(depth) - self.cost(0)) * (depth - n_right) / depth
                self.speculation.settle(work, n_right)
            for token in answer[n : n + n_right + 1]:
                state.append(token, 0.0)
            state.n_computed = state.n_tokens - 1
            n += n_right + 1
        self.speculation.forget(state)
        return (len(answer) - 1) * self.cost(0) / (self.now - began)

    def best_speed(self, prompt: Sequence[int], answer: Sequence[int]) -> float:
        """The same with the best drafts of all, which take no time."""
        ids, n, seconds = [*prompt, *answer], 1, 0.0
        while n < len(answer):
            end = len(prompt) + n
            most = max(common_prefix(ids[end : end + MOST_DEPTH], ids[place:]) for place in range(end))
            depth = max(range(most + 1), key=lambda depth: (1 + depth) / self.cost(depth))
            seconds, n = seconds + self.cost(depth), n + 1 + depth
        return (len(answer) - 1) * self.cost(0) / seconds


class Found:
    """What was found for answers of a kind."""

    def __init__(self) -> None:
        self.speeds: list[float] = []
        self.best: list[float] = []
        self.seconds = self.looks = self.rejected = 0.0

    def add(self, replay: Replay, prompt: Sequence[int], answer: Sequence[int]) -> None:
        seconds, looks, rejected = replay.now, replay.looks, replay.rejected
        self.speeds.append(replay.speed(prompt, answer))
        self.best.append(replay.best_speed(prompt, answer))
        self.seconds += replay.now - seconds
        self.looks += replay.looks - looks
        self.rejected += replay.rejected - rejected

    def __str__(self) -> str:
        speed, best = map(statistics.geometric_mean, (self.speeds, self.best))
        shares = f"looks {self.looks / self.seconds:.2%}, rejected rows {self.rejected / self.seconds:.2%}"
        return f"{speed:5.2f} of at most {best:5.2f}, {shares} ({len(self.speeds)} answers)"


def answers(model: str, rounds: int, n_tokens: int) -> Iterator[dict[str, Any]]:
    """The answers of `benchmarks.drafts` that count there, by kind of work and temperature."""
    source = open_model_file(Path(model))
    tokenizer = tokenizer_from_gguf(source.metadata, source.path)
    with LLM(model, ctx=CTX, prefix_cache=False) as llm:
        for kind, tasks in (("quoting", QUOTING), ("prose", PROSE)):
            for name, prompt in tasks.items():
                for seed, temperature in ((0, 0.0), *((n, 0.7) for n in range(rounds))):
                    answer = llm.generate(
                        prompt, temperature=temperature, max_tokens=n_tokens, seed=seed, stop_on_loop=True
                    )
                    if kind == "prose" or is_quoted(repeated_share(tokenizer, prompt, answer), answer):
                        told = f"{kind}, temperature {temperature}: {name if kind == 'quoting' else 'all'}"
                        yield {"work": told, "prompt": tokenizer.encode(prompt), "answer": list(answer.token_ids)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="a GGUF file")
    parser.add_argument("--answers", type=Path, required=True, help="where they are kept, as JSON")
    parser.add_argument("--rounds", type=int, default=4, help="of every task, at temperature 0.7")
    parser.add_argument("--tokens", type=int, default=300)
    parser.add_argument("--step", type=float, default=4.0, help="milliseconds of one row")
    parser.add_argument("--row", type=float, default=0.15, help="of a step, that each further row takes")
    parser.add_argument("--look", type=float, default=100, help="microseconds, as long as one takes between two steps")
    options = parser.parse_args()
    if not options.answers.exists():
        options.answers.write_text(json.dumps(list(answers(options.model, options.rounds, options.tokens))))
    replay, found = Replay(options.step / 1e3, options.row, options.look / 1e6), dict[str, Found]()
    with patch.object(time, "perf_counter", lambda: replay.now):
        for one in json.loads(options.answers.read_text()):
            if len(one["answer"]) > 1:
                found.setdefault(one["work"], Found()).add(replay, one["prompt"], one["answer"])
    for work, told in sorted(found.items()):
        print(f"{work:50} {told}")


if __name__ == "__main__":
    main()
