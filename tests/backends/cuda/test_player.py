"""Chats on the emulated GPU, of every architecture of the catalogue and every codec: bit for bit those of cold starts.

`make test` plays twelve turns of every architecture, codecs, types of weights and ways to read a prompt in turns; the
slow test forty turns of all of them with every codec.
"""

import random
from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import product

import pytest
from localrun_testing.gpu_engine import gpu_engine, tiny_model
from localrun_testing.small_model import finish, greedy, text

from localrun.backends.gpu.executor import GpuExecutor
from localrun.engine.engine import Engine
from localrun.engine.step_plan import StepPlan
from localrun.hub.catalogue import read_catalogue
from localrun.hub.catalogue_shape import catalogue_shape
from localrun.ops.interface import CancelFlag, Logits

# The recipe of tiny_models that stands for an architecture of the catalogue; Gemma 4 has three kinds of models.
RECIPES = {
    "llama": "llama-llama3-rope",
    "mistral": "mistral",
    "qwen2": "qwen2",
    "qwen3": "qwen3",
    "qwen3moe": "qwen3-moe",
    "qwen3_5": "qwen3.5",
    "qwen3_5_moe": "qwen3.5-moe",
    "gemma2": "gemma2",
    "gemma3": "gemma3",
    "gemma4": "gemma4",
    "gemma4, embeddings of layers": "gemma4-e2b",
    "gemma4, experts": "gemma4-moe",
    "lfm2": "lfm2",
    "lfm2_moe": "lfm2-moe",
    "smollm3": "smollm3",
    "phi3": "phi3",
    "granite_hybrid": "granite-hybrid-moe",
    "olmo2": "olmo2",
    "gpt-oss": "gpt-oss",
    "nemotron_h": "nemotron-h-moe",
    "mixtral": "mixtral",
    "granite": "granite",
}
CODECS = ("q8", "f16", "k8v4", "q4")
WEIGHTS = (("Q8_0", 0), ("F32", 0), ("Q4_0", 0), ("Q8_0", 64), ("F16", 0))  # a type, and a span that is read in bulk
IN_TURNS = [(recipe, CODECS[n % len(CODECS)], *WEIGHTS[n % len(WEIGHTS)]) for n, recipe in enumerate(RECIPES.values())]
MOST_TOKENS = 96  # of a prompt
Rows = dict[tuple[object, ...], bytes]


def watch(engine: Engine) -> Rows:
    """Candidates of every last row from now on, of one request by its prompt and the ids before them."""
    rows, run = Rows(), engine.runner.run

    def watched(plan: StepPlan, cancel: CancelFlag | None = None) -> Logits:
        logits = run(plan, cancel)
        for index, work in enumerate(plan.work):
            sequence, end = work.sequence, work.sequence.n_computed + work.n
            assert sequence.cache is not None
            if end > sequence.cache.reuse.n_tokens:  # not of what is replayed for others to read
                found = (logits.top_ids[index], logits.top_values[index], logits.logsumexp[index])
                key = sequence.request.prompt, tuple(sequence.token_ids[:end])
                rows[key] = b"".join(part.tobytes() for part in found)
        return logits

    engine.runner.run = watched  # type: ignore[method-assign]
    return rows


def prompts(dice: random.Random, turns: int) -> Iterator[list[int]]:
    """A chat: turns, edits, branches and answers that are asked for again. Each answer is sent back."""
    prompt, chats = text(66, dice.randrange(99)), list[list[int]]()
    for turn in range(turns):
        chats.append((yield prompt))  # type: ignore[arg-type]
        what = dice.random()
        if what < 0.45:
            prompt = chats[-1] + text(dice.randint(1, 16), turn)
        elif what > 0.6:
            prompt = dice.choice(chats)
            prompt = prompt[: dice.randint(len(prompt) // 2, len(prompt))] + text(dice.randint(1, 16), turn)
        prompt = prompt[:MOST_TOKENS]


def play(reusing: Engine, cold: Engine, turns: int, every: int) -> tuple[int, int]:
    """Play a chat, at times beside another text, and every so many turns cold, too -> tokens that were not computed
    again, and rows that were compared."""
    dice, saved = random.Random(turns), 0
    found, expected = watch(reusing), watch(cold)
    chat = prompts(dice, turns)
    prompt = next(chat)
    for turn in range(turns):
        reusing.scheduler.cost.rows_per_second = dice.choice((64.0, 200.0, 1000.0))  # chunks of other sizes
        n = dice.randint(1, 4)
        beside = [reusing.submit(greedy(text(dice.randint(1, 30), 99 + turn), 2))] if turn % 4 == 1 else []
        done = finish(reusing.submit(greedy(prompt, n)))
        for other in beside:
            finish(other)
        saved += done.figures.n_cached
        if turn % every == every - 1:
            assert finish(cold.submit(greedy(prompt, n))).token_ids == done.token_ids
        try:
            prompt = chat.send(done.token_ids)  # type: ignore[attr-defined]
        except StopIteration:
            break
    shared = found.keys() & expected.keys()
    assert all(found[key] == expected[key] for key in shared)
    return saved, len(shared)


def compare(recipe: str, codec: str, qtype: str, span: int, turns: int, every: int) -> None:
    model = tiny_model(recipe, qtype)
    with ExitStack() as stack:
        reusing, cold = (stack.enter_context(closing(gpu_engine(model, codec, span, keep))) for keep in (True, False))
        assert isinstance(reusing.runner.executor, GpuExecutor)
        assert not reusing.runner.executor.program.by_torch
        saved, compared = play(reusing, cold, turns, every)
    assert saved > 5 * turns, saved
    assert compared >= turns / every


@pytest.mark.parametrize(("recipe", "codec", "qtype", "span"), IN_TURNS)
def test_twelve_turns_are_those_of_cold_starts(recipe: str, codec: str, qtype: str, span: int) -> None:
    compare(recipe, codec, qtype, span, turns=12, every=6)


@pytest.mark.slow
@pytest.mark.parametrize(("recipe", "codec"), [*product(RECIPES.values(), CODECS)])
def test_forty_turns_are_those_of_cold_starts(recipe: str, codec: str) -> None:
    qtype, span = WEIGHTS[(list(RECIPES.values()).index(recipe) + CODECS.index(codec)) % len(WEIGHTS)]
    compare(recipe, codec, qtype, span, turns=40, every=2)


def test_every_architecture_of_the_catalogue_is_played() -> None:
    shapes = [catalogue_shape(entry) for entry in read_catalogue().values()]
    named = {shape.config.arch for shape in shapes if shape is not None and not shape.obstacle}
    assert named == {arch.partition(",")[0] for arch in RECIPES}
