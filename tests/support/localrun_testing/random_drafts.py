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
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import psutil

from localrun.base.constraint import Constraint
from localrun.engine.figures import GenerationFigures
from localrun.engine.generation import GenerationRequest
from localrun.engine.handle import Finished, GenerationHandle, NewToken
from localrun.engine.sampler import SamplerSettings
from localrun.engine.speculation.model_drafts import ModelDrafts
from localrun_testing.draft_worlds import WORLDS, World, open_world
from localrun_testing.letters import LANGUAGES, TRIGGER, held
from localrun_testing.small_model import greedy

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
