"""Worlds of random requests with drafts: engines of every architecture, codec and window, with every drafter."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from localrun.base.request import LoadOptions
from localrun.cache.store import CacheStore
from localrun.engine.constraints import Constraints
from localrun.engine.engine import Engine
from localrun.engine.generation import GenerationState
from localrun.engine.load import LoadedModel, load
from localrun.engine.speculation.drafter import DraftedTokens, Drafter, GuessingProgram
from localrun.engine.speculation.lookup import Lookups
from localrun.engine.speculation.model_drafts import ModelDrafts
from localrun.engine.speculation.speculation import Speculation
from localrun.engine.step_plan import StepWork
from localrun_testing import cache_engine as engines
from localrun_testing.assistants import AssistantOracle
from localrun_testing.cache_engine import CacheCase
from localrun_testing.drafts import Deepest, Guesses, Guessing, for_all
from localrun_testing.dspark import DSparkOracle
from localrun_testing.letters import letter_constraints
from localrun_testing.mtp import save_with_mtp
from localrun_testing.small_model import VOCAB_SIZE
from localrun_testing.tiny_models import save

CASES = {
    "llama q8": CacheCase(engines.LLAMA, "q8", "q8"),
    "llama q4": CacheCase(engines.LLAMA, "q4", "q4"),
    "llama f32": CacheCase(engines.LLAMA, "f32", "f32"),
    "sinks k8v4": CacheCase(engines.LLAMA, "k8v4", user_window=128),
    "gemma f16": CacheCase(engines.GEMMA, window_blocks=40),
    "gemma q8": CacheCase(engines.GEMMA, "q8", "q8", window_blocks=40),
    "mistral": CacheCase(engines.MISTRAL),
    "gpt-oss": CacheCase(engines.GPT_OSS, window_blocks=40),
    "hybrid": CacheCase(engines.HYBRID),
    "nemotron-h": CacheCase(engines.NEMOTRON_H),
    "lfm": CacheCase(engines.LFM, "q8"),
    "rolling": CacheCase(engines.LLAMA, "q8", ctx=192, rolls=True),
    "short of room": CacheCase(engines.LLAMA, "q8", n_blocks=9, ring_blocks=9),
}
PROGRAMS = (
    "layer f16",
    "layer q8",
    "layer of experts",
    "file f16",
    "file q4",
    "assistant f16",
    "assistant q4",
    "block f16",
    "block q8",
)
WORLDS = (*CASES, *PROGRAMS)


class AnyDepth(Guessing):
    """Wishes for any number of guesses, and verifies any number of them."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.dice = random.Random(seed)

    def wish(self, sequences: Sequence[GenerationState], decoding: Sequence[StepWork], rows: int) -> int:
        return self.dice.randint(0, max(0, min(5, rows // max(1, len(sequences)))))  # lookups may take all rows


class ToldRight:
    """Gives a program that drafts the right tokens, every other time: random weights guess few of them."""

    def __init__(self, model: GuessingProgram | None, seed: int) -> None:
        assert model is not None
        self.plain, self.dice = model.draft, random.Random(seed)
        self.answers: Sequence[Sequence[int]] = ()
        model.draft = self.draft  # type: ignore[method-assign]

    def draft(self, sequences: Sequence[GenerationState], depth: int) -> list[DraftedTokens]:
        drafts = self.plain(sequences, depth)
        return [self.told(s.token_ids, draft) for s, draft in zip(sequences, drafts, strict=True)]

    def told(self, ids: Sequence[int], draft: DraftedTokens) -> DraftedTokens:
        text = next((one for one in self.answers if list(one[: len(ids)]) == list(ids)), ids)
        right = text[len(ids) : len(ids) + len(draft.tokens)]
        return draft._replace(tokens=tuple(right)) if self.dice.random() < 0.5 else draft


@dataclass
class World:
    """Engines on the same weights without drafts and with them, which may be one."""

    plain: Engine
    drafting: Engine
    set_drafts: Callable[[Sequence[Sequence[int]] | None, random.Random], None]  # the answers; None: no drafts
    constraints: Constraints
    n_tokens: int
    opened: tuple[Engine | LoadedModel | Constraints, ...]

    def close(self) -> None:
        for one in self.opened:
            one.close()

    @property
    def stores(self) -> list[CacheStore]:
        speculation = self.drafting.scheduler.speculation
        model = None if speculation is None else speculation.model
        own = [model.program.store] if isinstance(model, ModelDrafts) else []
        return [self.plain.store, self.drafting.store, *own]


def open_world(name: str, folder: Path, seed: int) -> World:
    """Open a world by its name."""
    if name in CASES:
        engine, made = CASES[name].engine(native=True), letter_constraints()
        lookups = Lookups(engine.store.tree)

        def set_drafts(answers: Sequence[Sequence[int]] | None, dice: random.Random) -> None:
            wrong = [for_all(partial(Guesses, answers or (), right, dice.randrange(1000))) for right in (0.9, 0.6, 0.1)]
            kinds: list[Callable[[GenerationState], Drafter]] = [lookups, *wrong]
            speculation = Speculation(engine.ctx, dice.choice((8, 64)), dice.choice(kinds), Deepest())
            engine.scheduler.speculation = None if answers is None else speculation

        return World(engine, engine, set_drafts, made, VOCAB_SIZE, (engine, made))
    kind, codec = name.split()[0], name.split()[-1]
    path, options = folder / name.replace(" ", "-"), {"ctx": 512, "threads": 1, "kv": codec}
    drafts = ("off", "mtp" if kind == "layer" else str(path))
    if kind == "layer":
        save_with_mtp("qwen3.5-moe" if codec == "experts" else "qwen3.5", path)
        options["kv"] = "f16" if codec == "experts" else codec
    elif kind == "assistant":
        body = "gemma4-e2b" if codec == "f16" else "gemma4"
        save(body, path)
        drafts = ("off", str(AssistantOracle(body, ordered=codec == "f16").save(folder / f"{path.name}-draft")))
    elif kind == "block":
        save("qwen3", path)
        drafts = ("off", str(DSparkOracle().save(folder / f"{path.name}-draft")))
    else:
        save("llama", path)
    plain, drafting = (load(LoadOptions(path, draft=draft, **options)) for draft in drafts)  # type: ignore[arg-type]
    speculation = drafting.engine.scheduler.speculation
    assert speculation is not None
    speculation.depths, lookup = AnyDepth(seed), speculation.new_drafter
    told_right = ToldRight(speculation.model, seed)
    n_logits = plain.plan.config.vocab_size
    made = letter_constraints(n_logits)

    def choose(answers: Sequence[Sequence[int]] | None, dice: random.Random) -> None:
        speculation.new_drafter, told_right.answers = dice.choice((None, lookup)), answers or ()

    return World(plain.engine, drafting.engine, choose, made, n_logits, (plain, drafting, made))
