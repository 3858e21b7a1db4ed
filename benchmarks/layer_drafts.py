"""Drafts of a model's own layer by what they cost: `python -m benchmarks.layer_drafts MODEL [--rounds N] [--tokens N]`.

MODEL has a layer that drafts (MTP), or one beside it; its weights may be random. `--shape qwen3.5-2b` writes MODEL with
such a layer first, where it is not there. First the time to the first token with the layer by that without it, in pairs
that take turns and change order, for `--seconds`: the median, and the range that the median of more pairs lies in with
95 %. `--first` measures nothing else. Then answers whose drafts the layer computes as always, but each guess is the
token that comes with some probability, else another: the speed beside that without drafts, beside what the costs that
the depth is chosen by promise these very answers at their end, and beside the gain that the engine tells of them; over
all rounds.
"""

import argparse
import math
import random
import statistics
import time
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from localrun.base.request import LoadOptions
from localrun.engine.generation import GenerationRequest, GenerationState
from localrun.engine.handle import Finished
from localrun.engine.load import LoadedModel, load
from localrun.engine.sampler import SamplerSettings
from localrun.engine.speculation.depth import MOST_DEPTH, Depths
from localrun.engine.speculation.draft_text import Guess
from localrun.engine.speculation.model_drafts import LEAST_CHANCE, ModelDrafts
from localrun.engine.speculation.speculation import MOST_BEHIND, Speculation

CHANCES = (0.9, 0.7, 0.5, 0.0)  # at last the one after which guesses rest
PROMPTS = (64, 256, 512)
N_PROMPT = 60  # tokens before answers whose speed is measured
LEAST_PAIRS = 6  # of which the least and the greatest enclose the median with 95 %


class Oracle:
    """Guesses of a program, changed into the tokens of a known text but where they are to be wrong."""

    def __init__(self, speculation: Speculation, text: Sequence[int], chance: float, wrong: Container[int]) -> None:
        """`chance`: that the guesses tell. `wrong`: places in the text."""
        assert isinstance(speculation.model, ModelDrafts)
        self.program, self.text, self.chance, self.wrong = speculation.model.program, text, chance, wrong
        self.plain = self.program._guesses

    def __enter__(self) -> None:
        self.program._guesses = self.guesses  # type: ignore[method-assign]

    def __exit__(self, *_: object) -> None:
        self.program._guesses = self.plain  # type: ignore[method-assign]

    def guesses(self, texts, ids, starts, given) -> list[Guess | None]:  # type: ignore[no-untyped-def]
        found = self.plain(texts, ids, starts, given)
        place = texts[0].first + starts[0] + len(ids[0]) + self.program.lead
        known = self.text[place] if place < len(self.text) else 0
        token = (known + 1) % 250 if place in self.wrong else known
        return [
            None if guess is None else guess._replace(token=token, chance=max(0.01, self.chance)) for guess in found
        ]


def wrong_places(n: int, chance: float, seed: int) -> set[int]:
    """Places of an answer of n tokens whose guesses are wrong."""
    dice = random.Random(seed)
    return {place for place in range(N_PROMPT, N_PROMPT + n) if dice.random() >= chance}


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


def predicted(depths: Depths, chance: float, n_tokens: int, wrong: Container[int]) -> float:
    """Seconds that the measured costs of rows and guesses promise an answer of so many tokens, which are guessed right
    but at some places, at the depths that the engine would choose if it knew the chance."""
    plain = depths.cost.of(1)
    seconds = plain + depths.between + depths.guessing.reading(N_PROMPT)  # a step without guesses comes first
    n, behind = 2, 0
    while n < n_tokens:
        depth = depths.best_guess([(chance, 1 + behind)], 1, 1 + behind, MOST_DEPTH)[0]
        depth = min(depth if behind <= MOST_BEHIND else 0, guessed_on(chance), n_tokens - 1 - n)
        right = next((k for k in range(depth) if N_PROMPT + n + k in wrong), depth)
        seconds += depths.cost.of(1 + behind + depth) + depths.between
        seconds += depths.guessing.of(depth, plain) if depth else 0.0
        behind = behind + 1 + right if right < depth and depths.takes_back else 0
        n += 1 + right
    return seconds


def guessed_on(chance: float) -> int:
    """Guesses in a row, each so likely, after which no further one is made."""
    return next((n for n in range(1, MOST_DEPTH) if chance**n < LEAST_CHANCE), MOST_DEPTH)


def first_tokens(held: Mapping[str, LoadedModel], seconds: float) -> None:
    """Print the time to the first token with the layer by that without it, for prompts of some lengths in turns."""
    ratios: dict[int, list[float]] = {n: [] for n in PROMPTS}
    times: dict[int, list[float]] = {n: [] for n in PROMPTS}
    end, number = time.perf_counter() + seconds, 0
    while time.perf_counter() < end or number <= LEAST_PAIRS:
        for n in PROMPTS:
            order = ("off", "mtp") if number % 2 else ("mtp", "off")
            found = {draft: first_token(ask(held[draft], text(n, number), 2)) for draft in order}
            if number:  # the first pair warms up
                ratios[n].append(found["mtp"] / found["off"])
                times[n].append(found["off"])
        number += 1
    for n in PROMPTS:
        low, high = median_range(ratios[n])
        took, ratio = 1000 * statistics.median(times[n]), statistics.median(ratios[n])
        told = f"with the layer {ratio:.3f} of that (95 %: {low:.3f} to {high:.3f}, {len(ratios[n])} pairs)"
        print(f"first token of {n:4} tokens: {took:7.1f} ms, {told}", flush=True)


def median_range(values: Sequence[float]) -> tuple[float, float]:
    """The order statistics between which the median of what `values` are drawn from lies with 95 %."""
    n, below, left_out = len(values), 0.5 ** len(values), 0
    while below <= 0.025:
        left_out += 1
        below += math.comb(n, left_out) * 0.5**n
    ordered = sorted(values)
    return ordered[max(0, left_out - 1)], ordered[n - max(1, left_out)]


def speeds(held: Mapping[str, LoadedModel], rounds: int, n_tokens: int) -> None:
    """Print the speed of answers whose guesses are right with some probability, beside those without drafts."""
    speculation = held["mtp"].engine.scheduler.speculation
    assert speculation is not None
    for model in held.values():
        ask(model, text(N_PROMPT, rounds), 2)  # warms up
    for chance in CHANCES:
        plain, drafted = list[GenerationState](), list[GenerationState]()
        steps = seconds = 0.0  # that the costs promise without drafts, and with them
        for number in range(rounds):
            prompt, wrong = text(N_PROMPT, number), wrong_places(n_tokens, chance, number)
            plain.append(ask(held["off"], prompt, n_tokens))
            with Oracle(speculation, plain[-1].token_ids, chance, wrong):
                drafted.append(ask(held["mtp"], prompt, n_tokens))
            assert drafted[-1].token_ids == plain[-1].token_ids, "drafts changed the answer"
            depths = speculation.depths
            steps += (n_tokens - 1) * (depths.cost.of(1) + depths.between)
            seconds += predicted(depths, chance, n_tokens, wrong)
        took = sum(map(decoding, drafted))
        gain, told = sum(map(decoding, plain)) / took, 1 + sum(one.figures.saved_seconds for one in drafted) / took
        n_drafted, n_accepted = (
            sum(getattr(one.figures, f"n_{key}") for one in drafted) for key in ("drafted", "accepted")
        )
        words = f"{gain:.2f} times as fast, {steps / seconds:.2f} predicted, {told:.2f} told"
        print(f"guesses right {chance:.0%}: {words}, {n_accepted} of {n_drafted} accepted", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=150)
    parser.add_argument(
        "--seconds", type=float, default=60, help="that pairs of first tokens take; 0: none are measured"
    )
    parser.add_argument("--first", action="store_true", help="measure first tokens alone")
    parser.add_argument("--shape", help="of `synthetic_models`, that MODEL is written in where it is missing")
    options = parser.parse_args()
    if options.shape:
        from benchmarks.drafting_shapes import drafting_file  # and with it gguf's writer
        from benchmarks.synthetic_models import SHAPES

        drafting_file(options.model, SHAPES[options.shape])
    held = {draft: load(LoadOptions(options.model, draft=draft, prefix_cache=False)) for draft in ("off", "mtp")}
    speculation = held["mtp"].engine.scheduler.speculation
    assert speculation is not None
    speculation.new_drafter = None
    if options.seconds:
        first_tokens(held, options.seconds)
    if not options.first:
        speeds(held, options.rounds, options.tokens)
    for model in held.values():
        model.close()


if __name__ == "__main__":
    main()
