"""Random requests with drafts beside the same ones without: `python -m localrun_testing.random_drafts --help`.

Every drafter × architecture × codec × window × sampling × constraint, alone and side by side, in chats and without,
with different depths, cancelled, limited and gone on with; each is answered twice with drafts. A difference
ends it with the seed that shows it again.
"""

import argparse
import gc
import json
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import psutil

from localrun.base.constraint import Constraint
from localrun.base.request import LoadOptions
from localrun.cache.store import CacheStore
from localrun.engine.constraints import Constraints
from localrun.engine.engine import Engine
from localrun.engine.figures import GenerationFigures
from localrun.engine.generation import GenerationRequest, GenerationState
from localrun.engine.handle import Finished, GenerationHandle, NewToken
from localrun.engine.load import LoadedModel, load
from localrun.engine.sampler import SamplerSettings
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
from localrun_testing.letters import LANGUAGES, TRIGGER, held, letter_constraints
from localrun_testing.mtp import save_with_mtp
from localrun_testing.small_model import VOCAB_SIZE, greedy
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
FREE = (None,) * 6
WORDS = Constraint("regex", "[a-f]{1,40}")
CALL = Constraint("lark", f"start: <[{TRIGGER}]> /(ab|b[cd]){{9}}x?/")
CONSTRAINTS = (*FREE, *(one.constraint for one in LANGUAGES.values()), WORDS, CALL)
SETTINGS = (
    SamplerSettings(0.0),
    SamplerSettings(0.7),
    SamplerSettings(1.3, top_k=20, top_p=0.9),
    SamplerSettings(0.7, repeat_penalty=1.3, presence_penalty=0.4, frequency_penalty=0.2),
)
LONGEST = 300  # prompt
KEPT = 40  # answers that others go on with
CHATS = ("", "a", "b")  # whose lookups go on with the next answer, and read its other branches
TIMES = 2  # that requests are answered with drafts, by other drafters: the second ones find what the first ones left


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


def random_request(world: World, texts: Sequence[Sequence[int]], dice: random.Random) -> GenerationRequest:
    """A request that goes on with an earlier text, quotes one, or neither."""
    new = dice.choices(range(world.n_tokens - 2), k=dice.randint(1, dice.choice((8, 60, 200))))
    begun = list(dice.choice(texts)) if texts and dice.random() < 0.6 else []
    prompt = [*begun[: dice.choice((len(begun), dice.randint(0, len(begun))))], *new][-LONGEST:]
    request = replace(
        greedy(prompt, dice.randint(1, 24)),
        settings=dice.choice(SETTINGS),
        seed=dice.randrange(1000),
        logprobs=dice.choice((None, None, 2)),
        chat=dice.choice(CHATS),
        rolls=world.plain.can_roll,
        stop_ids=frozenset(dice.sample(range(world.n_tokens), dice.choice((0, 0, 3)))),
    )
    constraint = dice.choice(CONSTRAINTS)
    if constraint is None:
        return request
    return held(world.constraints, constraint, request, TRIGGER if constraint is CALL else None)


def told(handle: GenerationHandle, most: int | None = None) -> list[object]:
    """Tokens of an answer and its end; cancelled after `most` tokens."""
    found: list[object] = []
    for event in handle:
        if isinstance(event, NewToken):
            found.append(event)
            if most is not None and len(found) == most:
                handle.cancel()
        elif isinstance(event, Finished):
            found.append(event.sequence.stop_reason)
    return found[:most]


def play(world: World, texts: list[list[int]], dice: random.Random) -> tuple[int, int, int]:
    """A few requests without drafts, then with -> how many of the latter, tokens drafted and accepted. Raises
    AssertionError."""
    requests = [random_request(world, texts, dice) for _ in range(dice.choice((1, 1, 2, 3, 5)))]
    world.set_drafts(None, dice)
    plain = [world.plain.submit(request) for request in requests]
    before = [told(handle) for handle in plain]
    answers, figures = [handle.sequence.token_ids for handle in plain], list[GenerationFigures]()
    for _ in range(TIMES):
        world.set_drafts(answers, dice)
        most = [dice.choice((None, None, None, 4)) for _ in requests]
        drafted = [world.drafting.submit(request) for request in requests]
        after = [told(handle, cut) for handle, cut in zip(drafted, most, strict=True)]
        for request, cut, one, other in zip(requests, most, before, after, strict=True):
            assert one[:cut] == other, (request, one, other)
        figures += [handle.sequence.figures for handle in drafted]
    texts += answers
    del texts[:-KEPT]
    return len(figures), sum(one.n_drafted for one in figures), sum(one.n_accepted for one in figures)


def check_nothing_is_lost(world: World) -> None:
    """Once no text is kept, every block is free. Raises AssertionError."""
    world.set_drafts((), random.Random(0))
    for engine in (world.plain, world.drafting):
        told(engine.submit(greedy([1, 2, 3], 2)))
        assert not engine.scheduler.running
        speculation = engine.scheduler.speculation
        if speculation is not None and isinstance(speculation.model, ModelDrafts):
            speculation.model.read_ended()
    for store in world.stores:
        store.tree.clear()
        assert all(pool.n_free == pool.n_blocks for pool in store.pools)


def run(world: World, seeds: range) -> tuple[int, int, int]:
    """Rounds of requests by their seeds -> the sums of `play`."""
    texts, sums = list[list[int]](), (0, 0, 0)
    for seed in seeds:
        dice = random.Random(seed)
        if dice.random() < 0.02:
            texts.clear()
        try:
            played = play(world, texts, dice)
        except AssertionError as error:
            raise AssertionError(f"rounds {seeds.start} to {seed}: {error}") from error
        sums = (sums[0] + played[0], sums[1] + played[1], sums[2] + played[2])
    return sums


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=200, help="of one world before the next one's turn")
    parser.add_argument("--world", choices=WORLDS, action="append", help="of these alone, in turns (default: of all)")
    parser.add_argument("--first", type=int, default=0, help="seed to begin with")
    parser.add_argument("--checkpoint", type=Path, help="JSON that is gone on with, and written after every turn")
    options = parser.parse_args()
    done: dict[str, int] = {"turns": 0, "requests": 0, "drafted": 0, "accepted": 0}
    if options.checkpoint and options.checkpoint.exists():
        done = json.loads(options.checkpoint.read_text())
    names = options.world or WORLDS
    with tempfile.TemporaryDirectory() as folder:
        worlds = {name: open_world(name, Path(folder), number) for number, name in enumerate(names)}
        while done["requests"] < options.requests:
            started, name = time.perf_counter(), names[done["turns"] % len(names)]
            first = options.first + done["turns"] * options.rounds
            sums = run(worlds[name], range(first, first + options.rounds))
            check_nothing_is_lost(worlds[name])
            for key, n in zip(("requests", "drafted", "accepted"), sums, strict=True):
                done[key] += n
            done["turns"] += 1
            gc.collect()
            megabytes = psutil.Process().memory_info().rss / 1e6
            took = time.perf_counter() - started
            print(f"{done['requests']:7,} requests, {done['accepted']:,} of {done['drafted']:,} drafts accepted, "
                  f"{megabytes:.0f} MB; {name}: {sums[0]} in {took:.0f} s", flush=True)  # fmt: skip
            if options.checkpoint:
                options.checkpoint.write_text(json.dumps(done))
        for world in worlds.values():
            world.close()


if __name__ == "__main__":
    main()
