"""Speculation for tests: drafters that know the answer and are wrong as often as wanted, at any depth."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from localrun.base.request import LoadOptions
from localrun.engine.engine import Engine
from localrun.engine.generation import GenerationState
from localrun.engine.load import LoadedModel, load
from localrun.engine.speculation.depth import MOST_DEPTH, Depths
from localrun.engine.speculation.drafter import DraftedTokens, Drafter
from localrun.engine.speculation.speculation import Speculation
from localrun.engine.step_plan import StepWork
from localrun_testing.small_model import VOCAB_SIZE

Program = TypeVar("Program")


class Deepest(Depths):
    """Verifies every draft, whatever it costs, as far as there are rows."""

    def knows_any(self, decoding: Sequence[StepWork]) -> bool:
        return True

    def most(self, sequence: GenerationState) -> int:
        return MOST_DEPTH

    def choose(self, decoding: Sequence[StepWork], drafts: Sequence[DraftedTokens], rows: int) -> list[int]:
        depths = []
        for draft in drafts:
            depths.append(min(len(draft.tokens), rows))
            rows -= depths[-1]
        return depths

    def settle(self, work: StepWork, n_accepted: int) -> float:
        return 0.0

    def lose(self, seconds: float) -> None:
        pass

    def glances(self, sequences: Sequence[GenerationState]) -> int:
        return 1


class Guessing(Deepest):
    """Wishes for guesses of a program, three a step."""

    def wish(self, sequences: Sequence[GenerationState], decoding: Sequence[StepWork], rows: int) -> int:
        return min(3, rows // max(1, len(sequences)))

    def worth_reading(self, sequence: GenerationState, n: int) -> bool:
        return True

    def _allow_guesses(self, seconds: float, step: float) -> None:
        pass


class KnowingText:
    """A drafter that notes nothing."""

    def read(self, token_ids: Sequence[int], most: int) -> bool:
        return True

    def may_draft(self, token_ids: Sequence[int]) -> bool:
        return True

    def close(self) -> None:
        pass


class Guesses(KnowingText):
    """Drafts of 0 … `most` tokens of one of these texts, each right with some probability, else any token."""

    def __init__(self, texts: Sequence[Sequence[int]], right: float, seed: int = 0) -> None:
        self.texts, self.right, self.dice = texts, right, random.Random(seed)

    def draft(self, token_ids: Sequence[int], most: int) -> DraftedTokens:
        n, end, dice = self.dice.randint(0, most), len(token_ids), self.dice
        text = next((one for one in self.texts if list(one[:end]) == list(token_ids)), token_ids)
        known = [*text[end : end + n], *[0] * n][:n]
        wrong = dice.choices(range(VOCAB_SIZE), k=n)
        return DraftedTokens(
            tuple(t if dice.random() < self.right else w for t, w in zip(known, wrong, strict=True)), 1
        )


class Exactly(KnowingText):
    """Drafts of `depth` tokens of a text, of which the first `n_right` are right and no others."""

    def __init__(self, text: Sequence[int], depth: int, n_right: int) -> None:
        self.text, self.depth, self.n_right = text, depth, n_right

    def draft(self, token_ids: Sequence[int], most: int) -> DraftedTokens:
        end, depth = len(token_ids), min(self.depth, most)
        right = self.text[end : end + depth]
        wrong = [(token + 1) % VOCAB_SIZE for token in right[self.n_right :]]
        return DraftedTokens((*right[: self.n_right], *wrong), 1)


def for_all(new_drafter: Callable[[], Drafter]) -> Callable[[GenerationState], Drafter]:
    """Such a drafter for every answer."""
    return lambda sequence: new_drafter()


def speculate(engine: Engine, new_drafter: Callable[[], Drafter] | None, rows: int = 64) -> None:
    """Let an engine draft as deep as it can, up to `rows` rows of logits; None: not at all."""
    speculation = None if new_drafter is None else Speculation(engine.ctx, rows, for_all(new_drafter), Deepest())
    engine.scheduler.speculation = speculation


def opened(path: Path, draft: Path | str = "mtp", depths: Depths | None = None, **options: Any) -> LoadedModel:
    """A model that drafts by a program alone, as often as `depths` wishes: three guesses a step; close it."""
    model = load(LoadOptions(path, **{"draft": str(draft), "ctx": 512, "threads": 1, **options}))
    if (speculation := model.engine.scheduler.speculation) is not None:
        speculation.depths, speculation.new_drafter = depths or Guessing(), None
    return model


def program_of(model: LoadedModel, kind: type[Program]) -> Program:
    """The program that drafts beside a model."""
    speculation = model.engine.scheduler.speculation
    assert speculation is not None
    assert isinstance(speculation.model, kind)
    return speculation.model
