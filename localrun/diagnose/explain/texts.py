"""Timed computation of a text, token by token or whole."""

from __future__ import annotations

import time
from collections.abc import Sequence

from localrun.base.dataclass import dataclass
from localrun.engine.load import LoadedModel
from localrun.engine.scratch_runs import ScratchRuns
from localrun.ops.largest_step import MAX_ROWS

SAMPLE = (
    "The cache keeps the keys and values of every token that the model has read. "
    "A new token is compared with all of them, and nothing that was read before is computed again. "
)


@dataclass(frozen=True, slots=True)
class Written:
    """Tokens that followed a prompt, greedily; the seconds of each, and the number of tokens computed in all."""

    tokens: tuple[int, ...]
    seconds: tuple[float, ...]
    computed: int


def sample_ids(model: LoadedModel, n: int) -> list[int]:
    """`n` token ids of a plain English text, repeated as often as necessary."""
    ids = model.text.tokenizer.encode(SAMPLE, bos=True)
    return [ids[0], *((ids[1:] * (n // len(ids[1:]) + 1))[: n - 1])]


def write(model: LoadedModel, prompt: Sequence[int], n: int) -> Written:
    """Generate `n` tokens after `prompt`, with the cache."""
    tokens: list[int] = []
    seconds: list[float] = []
    with ScratchRuns(model.engine.runner, model.engine.store) as run:
        new, at, computed = list(prompt), 0, 0
        for _ in range(n):
            started = time.perf_counter()
            found = read(run, new, at)
            seconds.append(time.perf_counter() - started)
            at, computed = at + len(new), computed + len(new)
            tokens.append(found)
            new = [found]
    return Written(tuple(tokens), tuple(seconds), computed)


def write_without_cache(model: LoadedModel, prompt: Sequence[int], n: int) -> Written:
    """Generate `n` tokens without a cache: the whole text is computed again for every token."""
    tokens: list[int] = []
    seconds: list[float] = []
    computed = 0
    for _ in range(n):
        text = [*prompt, *tokens]
        started = time.perf_counter()
        with ScratchRuns(model.engine.runner, model.engine.store) as run:
            found = read(run, text, 0)
        seconds.append(time.perf_counter() - started)
        tokens.append(found)
        computed += len(text)
    return Written(tuple(tokens), tuple(seconds), computed)


def read(run: ScratchRuns, ids: Sequence[int], start: int) -> int:
    """Compute `ids` at positions start …; returns the most likely next id."""
    for first in range(0, len(ids), MAX_ROWS):
        part = ids[first : first + MAX_ROWS]
        logits = run.feed(part, start + first, [len(part) - 1])
    return int(logits.argmax[0])
