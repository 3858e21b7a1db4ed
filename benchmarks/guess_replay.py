"""Guesses of a program in a world of known costs, without a model: `python -m benchmarks.guess_replay [--guess SHARE]`.

The engine's own depths choose how many tokens are guessed; each is right with some probability, and a step of so many
rows takes what was measured of a Qwen3.5-2B shape in Q8_0, up to `--noise`. Layers have a state, so that a step with a
wrong guess is computed again beside the next one. Printed are the speed beside steps of one row, what the learnt costs
promise the same answers, as `benchmarks.layer_drafts` does, and what the engine tells its user; means over `--worlds`.
"""

import argparse
import math
import random
import statistics
from collections.abc import Container
from typing import NamedTuple

from benchmarks.layer_drafts import N_PROMPT, guessed_on, predicted, wrong_places
from localrun.engine.generation import GenerationRequest, GenerationState
from localrun.engine.sampler import SamplerSettings
from localrun.engine.speculation.depth import Depths
from localrun.engine.speculation.drafter import DraftedTokens
from localrun.engine.speculation.speculation import MOST_BEHIND
from localrun.engine.step_plan import StepPlan, StepWork

CHANCES = (0.9, 0.7, 0.5, 0.3, 0.0)
BESIDE = 16  # entries that a pass reads beside drafting
ROWS = (1.0, 1.03, 1.05, 1.09, 1.43, 1.59, 1.79, 1.86, 2.16, 2.2, 2.58, 2.6, 2.95, 3.0, 3.2)  # steps of one row
FURTHER = 0.2  # likewise, of each row beyond these


class Speeds(NamedTuple):
    """Of some answers, in the speed without guesses."""

    gained: float
    predicted: float
    told: float


class World:
    """Answers whose guesses are right with some probability, and the steps of one row that they take."""

    def __init__(self, chance: float, guess: float, entry: float, noise: float, seed: int) -> None:
        """`guess`, `entry`: steps that a pass takes, and an entry that is read before."""
        self.depths, self.dice, self.chance = Depths(), random.Random(seed), chance
        self.guess, self.entry, self.noise = guess, entry, noise
        self.time = self.saved = 0.0

    def speeds(self, rounds: int, n: int) -> Speeds:
        steps = seconds = 0.0
        for _ in range(rounds):
            wrong = wrong_places(n, self.chance, self.dice.getrandbits(32))
            self.answer(n, wrong)
            steps += (n - 1) * self.depths.cost.of(1)
            seconds += predicted(self.depths, self.chance, n, wrong)
        return Speeds(rounds * (n - 1) / self.time, steps / seconds, 1 + self.saved / self.time)

    def answer(self, n: int, wrong: Container[int]) -> None:
        request = GenerationRequest(tuple(range(N_PROMPT)), n, frozenset(), SamplerSettings(temperature=0.0), seed=0)
        answer, n_unread = GenerationState(request), N_PROMPT
        answer.n_computed = N_PROMPT
        answer.append(0, 0.0)
        while answer.n_generated < n:
            work = StepWork(answer, 1 + answer.n_behind)
            wish = self.wish(work)
            if wish and n_unread > BESIDE:
                n_unread = self.read(answer, n_unread)
            draft = self.guesses(wish) if n_unread <= BESIDE else DraftedTokens()
            (depth,) = self.depths.choose([work], [draft], 63)
            self.step(work._replace(drafts=draft.tokens[:depth]), wrong)
        self.depths.forget(answer)

    def wish(self, work: StepWork) -> int:
        if work.n > 1 + MOST_BEHIND:
            return 0
        return min(
            work.sequence.n_to_come - 1, self.depths.most(work.sequence), self.depths.wish([work.sequence], [work], 63)
        )

    def read(self, answer: GenerationState, n: int) -> int:
        """Read entries where that is worth it -> how many are left."""
        if not self.depths.worth_reading(answer, n):
            return n
        seconds = self.took(self.entry * n)
        self.depths.guessing.read(n, seconds)
        self.depths.lose(seconds)
        self.saved -= seconds
        return 0

    def guesses(self, wish: int) -> DraftedTokens:
        n = min(wish, guessed_on(self.chance))
        if not n:
            return DraftedTokens()
        seconds = self.took(self.guess * n)
        self.depths.guessed(n, seconds)
        self.saved -= seconds
        return DraftedTokens.likely((0,) * n, max(0.01, self.chance))

    def step(self, work: StepWork, wrong: Container[int]) -> None:
        answer, n_drafts = work.sequence, len(work.drafts)
        rows = ROWS[min(work.n_rows, len(ROWS)) - 1] + FURTHER * max(0, work.n_rows - len(ROWS))
        self.depths.observe(StepPlan((work,)), self.took(rows))
        place = N_PROMPT + answer.n_generated
        n_right = next((n for n in range(n_drafts) if place + n in wrong), n_drafts)
        for _ in range(1 + n_right):
            answer.append(0, 0.0)
        answer.n_behind = work.n + n_right if n_right < n_drafts else 0
        answer.n_computed = answer.n_tokens - 1 - answer.n_behind
        if n_drafts:
            self.saved += self.depths.settle(work, n_right)

    def took(self, steps: float) -> float:
        steps *= math.exp(self.dice.gauss(0, self.noise))
        self.time += steps
        return steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="answers one after the other")
    parser.add_argument("--tokens", type=int, default=150)
    parser.add_argument("--guess", type=float, default=0.28, help="of a step of one row, that a pass takes")
    parser.add_argument("--entry", type=float, default=0.01, help="likewise, an entry that is read before")
    parser.add_argument("--noise", type=float, default=0.1, help="deviation of what steps and passes take")
    parser.add_argument("--worlds", type=int, default=12)
    options = parser.parse_args()
    for chance in CHANCES:
        worlds = (World(chance, options.guess, options.entry, options.noise, seed) for seed in range(options.worlds))
        found = [world.speeds(options.rounds, options.tokens) for world in worlds]
        gained, promised, told = (statistics.mean(speeds) for speeds in zip(*found, strict=True))
        words = f"{gained:.2f} times as fast, {promised:.2f} predicted, {told:.2f} told"
        print(f"guesses right {chance:.0%}: {words}", flush=True)


if __name__ == "__main__":
    main()
