"""Benchmark of drafts: the same answers with and without them, in turns."""

import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from localrun.base.dataclass import dataclass
from localrun.base.errors import EngineError, UsageError
from localrun.engine.engine import Engine
from localrun.engine.figures import GenerationFigures
from localrun.engine.generation import GenerationRequest
from localrun.engine.handle import Finished
from localrun.engine.load import LoadedModel
from localrun.engine.sampler import SamplerSettings
from localrun.engine.speculation.speculation import Speculation

TABLE = "".join(f"| worker {n} | block {64 * n} of 4096 | {n % 7} waiting |\n" for n in range(12))
TEXTS = {
    "quoting": f"A table, and the same table once more:\n\n{TABLE}\nOnce more:\n\n{TABLE[:120]}",
    "prose": "The lighthouse keeper had not expected a letter. When he opened it, he",
}


@dataclass(frozen=True, slots=True)
class DraftRun:
    """Greedy answers to one text; rates in tokens per second, medians of the rounds."""

    text: str  # a key of TEXTS
    n: int  # tokens
    tps: float
    plain_tps: float  # without drafts
    drafted_tokens: int  # in all rounds
    accepted_tokens: int


def bench_drafts(
    model: LoadedModel, n: int, repeats: int, progress: Callable[[str], None] = lambda line: None
) -> list[DraftRun]:
    """Answers of `n` tokens with drafts and without, which goes first in turns, after a round to warm up. UsageError
    where nothing drafts."""
    engine, speculation = model.engine, model.engine.scheduler.speculation
    if speculation is None or n < 2:
        raise UsageError("there is nothing to draft", "draft on the cpu backend, answers of two tokens or more")
    found = []
    for name, text in TEXTS.items():
        ids = tuple(model.text.tokenizer.encode(text, bos=True))
        drafted, plain = list[GenerationFigures](), list[GenerationFigures]()
        for number in range(repeats + 1):
            progress(f"round {number} of {repeats}: drafts, {name}")
            turns = [(plain, None), (drafted, speculation)]
            for figures, drafts in reversed(turns) if number % 2 else turns:
                with speculating(engine, drafts):
                    figures.append(answer(engine, ids, n))
        rates = [statistics.median(map(decode_rate, figures[1:])) for figures in (drafted, plain)]
        n_drafted, n_accepted = (sum(getattr(one, key) for one in drafted[1:]) for key in ("n_drafted", "n_accepted"))
        found.append(DraftRun(name, n, rates[0], rates[1], n_drafted, n_accepted))
    return found


@contextmanager
def speculating(engine: Engine, speculation: Speculation | None) -> Iterator[None]:
    """Draft like this, or not at all, while open."""
    before, engine.scheduler.speculation = engine.scheduler.speculation, speculation
    try:
        yield
    finally:
        engine.scheduler.speculation = before


def answer(engine: Engine, ids: tuple[int, ...], n: int) -> GenerationFigures:
    """Figures of a greedy answer of n tokens."""
    request = GenerationRequest(ids, n, frozenset(), SamplerSettings(temperature=0.0), seed=0)
    for event in engine.submit(request):
        if isinstance(event, Finished):
            return event.sequence.figures
    raise EngineError("the answer did not end", "please report this")


def decode_rate(figures: GenerationFigures) -> float:
    """Tokens per second after the first one."""
    times = figures.token_times
    return (len(times) - 1) / max(times[-1] - times[0], 1e-9)
