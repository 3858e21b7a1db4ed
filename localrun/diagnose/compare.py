"""Two loaded models compared: speed, memory, and the distance of their texts."""

import statistics
from collections.abc import Callable, Sequence

from localrun.base.dataclass import dataclass
from localrun.base.views import MemoryPart
from localrun.diagnose.bench import BenchCase, fitting, run_case
from localrun.diagnose.explain.texts import write
from localrun.diagnose.perplexity import Score, scored_rows
from localrun.engine.load import LoadedModel

ANSWER_TOKENS = 64  # of the greedy answers that are laid side by side
QUESTION = "A lighthouse keeper finds a letter in a bottle. It says"
PASSAGE = (
    "Rain had fallen on the valley for nine days when the miller noticed that the river no longer sang. It had "
    "always sung, louder in spring and softly under the ice, and his family had set their clocks by it. Now it "
    "moved without a sound, brown and wide, and carried fences, apples and once a whole haystack with a cat on it. "
    "He rowed out for the cat. She stepped into the boat as if she had ordered it, shook each paw and sat down "
    "facing forward. On the way back he counted the steps of his own house that were still dry: there were four. "
    "By noon there would be two. The engineers in the town had written that the dam would hold for a hundred years, "
    "and so far it had held for eleven. A wall holds water as a promise holds a friend: a small crack is nothing, "
    "and then it is everything. He packed the flour into the attic, sack by sack, because bread is the first thing "
    "that people ask for after a flood, and the last thing they remember to save. In the evening the rain stopped. "
    "Nobody said anything about it, for fear that it would hear. The next morning the river had gone down by the "
    "width of a hand, and far away, under the bridge, it had begun to hum. "
)


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two models.

    Tokens per second are medians over rounds, None where not measured; memory as predicted before the load and as found
    after the last round, in bytes.
    """

    model: str
    precision: str
    path: str
    backend: str
    prefill_tps: float | None
    decode_tps: float | None
    memory: tuple[MemoryPart, ...]


@dataclass(frozen=True, slots=True)
class TextComparison:
    """Distance of the second model's text from the first's, where both have one vocabulary.

    `first_difference`: the first token of a greedy answer that differs, from 0 on, None where all `answer_tokens` are
    the same; `texts` are the two answers from there on. `kld_mean`: KL(first ∥ second) over the vocabulary in nats,
    mean of the `scored_tokens` of a passage; `same_top1`: the share of them with the same first choice.
    """

    answer_tokens: int
    first_difference: int | None
    texts: tuple[str, str]
    scored_tokens: int
    kld_mean: float
    same_top1: float


@dataclass(frozen=True, slots=True)
class ModelComparison:
    """Both sides; `prefill_ratio` and `decode_ratio` are second ÷ first, medians of rounds run in turn."""

    sides: tuple[Side, Side]
    prefill_ratio: float | None
    decode_ratio: float | None
    words: TextComparison | None  # None: their vocabularies differ


def compare(
    first: LoadedModel,
    second: LoadedModel,
    prompt: int,
    generate: int,
    repeats: int,
    progress: Callable[[str], None] = lambda line: None,
) -> ModelComparison:
    """Measure `prompt` tokens of prefill and `generate` of decode in alternating rounds; 0: none.

    Raises UsageError when a context is too small for them.
    """
    both = (first, second)
    cases = [BenchCase("prefill", prompt, 0)] if prompt else []
    cases += [BenchCase("decode", generate, 0)] if generate else []
    for model in both:
        fitting(model, cases)
    rates = {case: _rates(both, case, repeats, progress) for case in cases}
    found = {case.kind: tuple(map(statistics.median, zip(*rounds, strict=True))) for case, rounds in rates.items()}
    ratios = {case.kind: statistics.median(b / a for a, b in rounds) for case, rounds in rates.items()}
    progress("what they say")
    words = _words(first, second) if same_vocabulary(first, second) else None
    sides = [
        Side(
            model.info.name,
            model.info.precision,
            model.info.path,
            model.info.backend,
            found["prefill"][number] if prompt else None,
            found["decode"][number] if generate else None,
            model.memory(model.engine.view()),
        )
        for number, model in enumerate(both)
    ]
    return ModelComparison((sides[0], sides[1]), ratios.get("prefill"), ratios.get("decode"), words)


def same_vocabulary(first: LoadedModel, second: LoadedModel) -> bool:
    """Whether an id means the same to both, and a text gives the same ids."""
    a, b = first.text.tokenizer, second.text.tokenizer
    alike = first.plan.config.vocab_size == second.plan.config.vocab_size
    return (
        alike
        and list(a.vocabulary.tokens) == list(b.vocabulary.tokens)
        and a.encode(PASSAGE, bos=True) == b.encode(PASSAGE, bos=True)
    )


def _rates(
    both: Sequence[LoadedModel], case: BenchCase, repeats: int, progress: Callable[[str], None]
) -> list[tuple[float, float]]:
    """Tokens per second of both, by round; the first round warms up."""
    rounds = []
    for repeat in range(repeats + 1):
        progress(f"round {repeat} of {repeats}: {case.kind} {case.n}")
        seconds = [0.0, 0.0]
        for side in (0, 1) if repeat % 2 == 0 else (1, 0):
            seconds[side] = run_case(both[side].engine, case, fill=True)
        if repeat:
            rounds.append((case.n / seconds[0], case.n / seconds[1]))
    return rounds


def _words(first: LoadedModel, second: LoadedModel) -> TextComparison:
    tokenizer, ctx = first.text.tokenizer, min(first.info.ctx, second.info.ctx)
    question = tokenizer.encode(QUESTION, bos=True)[: ctx // 2]
    n = min(ANSWER_TOKENS, ctx - len(question))
    answers = [write(model, question, n).tokens for model in (first, second)]
    at = next((place for place, (a, b) in enumerate(zip(*answers, strict=True)) if a != b), None)
    texts = ["" if at is None else tokenizer.decode(answer[at:]) for answer in answers]
    engines = [(model.engine.runner, model.engine.store) for model in (first, second)]
    score = Score()
    for targets, (baseline, found) in scored_rows(engines, tokenizer.encode(PASSAGE, bos=True)[:ctx], first=1):
        score.add(targets, found)
        score.compare(baseline, found)
    apart = score.comparison()
    return TextComparison(n, at, (texts[0], texts[1]), len(score.losses), apart.kld_mean, apart.same_top1)
