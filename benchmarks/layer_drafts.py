"""Drafts of a model's own layer by what they cost: `python -m benchmarks.layer_drafts MODEL [--rounds N] [--tokens N]`.

MODEL has a layer that drafts (MTP); its weights may be random. First the time to the first token, with the layer and
without it. Then answers whose drafts the layer computes as always, but each guess is the token that comes with some
probability, else another: the speed beside that without drafts, and beside what the depth is chosen by predicts. A
ratio is that of medians of answers that took turns.
"""

import argparse
import random
import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from localrun.base.request import LoadOptions
from localrun.engine.generation import GenerationRequest, GenerationState
from localrun.engine.handle import Finished
from localrun.engine.load import LoadedModel, load
from localrun.engine.sampler import SamplerSettings
from localrun.engine.speculation.depth import MOST_DEPTH, Depths
from localrun.engine.speculation.draft_text import Guess
from localrun.engine.speculation.speculation import Speculation

CHANCES = (0.0, 0.5, 0.7, 0.9)
PROMPTS = (64, 512, 1024)


class Oracle:
    """Guesses of a program, changed into the tokens of a known text as often as wanted."""

    def __init__(self, speculation: Speculation, text: Sequence[int], chance: float) -> None:
        assert speculation.model is not None
        self.program, self.text, self.chance = speculation.model.program, text, chance
        self.plain, self.dice = self.program._guesses, random.Random(1)

    def __enter__(self) -> None:
        self.program._guesses = self.guesses  # type: ignore[method-assign]

    def __exit__(self, *_: object) -> None:
        self.program._guesses = self.plain  # type: ignore[method-assign]

    def guesses(self, texts, ids, starts, given) -> list[Guess | None]:  # type: ignore[no-untyped-def]
        found = self.plain(texts, ids, starts, given)
        place = texts[0].first + starts[0] + len(ids[0]) + self.program.lead
        known = self.text[place] if place < len(self.text) else 0
        token = known if self.dice.random() < self.chance else (known + 1) % 250
        return [
            None if guess is None else guess._replace(token=token, chance=max(0.01, self.chance)) for guess in found
        ]


def ask(model: LoadedModel, prompt: Sequence[int], n: int) -> GenerationState:
    """One greedy answer of exactly n tokens."""
    request = GenerationRequest(tuple(prompt), n, frozenset(), SamplerSettings(temperature=0.0), seed=0)
    for event in model.engine.submit(replace(request, priority="interactive")):
        if isinstance(event, Finished):
            return event.sequence
    raise AssertionError("no end")


def first_token(state: GenerationState) -> float:
    return state.figures.token_times[0] - state.figures.started


def decoding(state: GenerationState) -> float:
    return state.figures.token_times[-1] - state.figures.token_times[0]


def text(n: int, seed: int) -> list[int]:
    return random.Random(seed).choices(range(10, 250), k=n)


def predicted(depths: Depths, chance: float) -> float:
    """The gain that the measured costs of rows and guesses promise, at the best depth."""
    plain, gains = depths.cost.of(1), [1.0]
    for depth in range(1, MOST_DEPTH + 1):
        tokens = sum(chance**n for n in range(depth + 1))
        gains.append(tokens * plain / (depths.cost.of(1 + depth) + depths.guessing.of(depth, plain)))
    return max(gains)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=150)
    options = parser.parse_args()
    held = {draft: load(LoadOptions(options.model, draft=draft, prefix_cache=False)) for draft in ("off", "mtp")}
    speculation = held["mtp"].engine.scheduler.speculation
    assert speculation is not None
    speculation.new_drafter = None
    for n in PROMPTS:
        times: dict[str, list[float]] = {draft: [] for draft in held}
        for number in range(options.rounds + 1):
            for draft, model in held.items():
                times[draft].append(first_token(ask(model, text(n, number), 2)))
        plain, with_layer = (statistics.median(times[draft][1:]) for draft in ("off", "mtp"))
        print(
            f"first token of {n:5} tokens: {1000 * plain:7.1f} ms, with the layer {with_layer / plain:.3f} of that",
            flush=True,
        )
    for chance in CHANCES:
        plain_times, times_drafted = list[float](), list[float]()
        for number in range(options.rounds):
            prompt = text(60, number)
            plain_answer = ask(held["off"], prompt, options.tokens)
            with Oracle(speculation, plain_answer.token_ids, chance):
                drafted = ask(held["mtp"], prompt, options.tokens)
            assert drafted.token_ids == plain_answer.token_ids, "drafts changed the answer"
            plain_times.append(decoding(plain_answer))
            times_drafted.append(decoding(drafted))
        gain = statistics.median(plain_times) / statistics.median(times_drafted)
        figures, promised = drafted.figures, predicted(speculation.depths, chance)
        accepted = f"{figures.n_accepted} of {figures.n_drafted} accepted"
        print(f"guesses right {chance:.0%}: {gain:.2f} times as fast, {promised:.2f} predicted, {accepted}", flush=True)
    for model in held.values():
        model.close()


if __name__ == "__main__":
    main()
