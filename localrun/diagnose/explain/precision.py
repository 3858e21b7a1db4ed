"""The same weights in 16, 8, 4 and 2 bits: size, speed, and distance from the first."""

import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import prod
from pathlib import Path
from statistics import median

from localrun.base.dataclass import dataclass
from localrun.base.request import LoadOptions
from localrun.base.units import count, gib, ms
from localrun.diagnose.explain.float_weights import FloatWeights
from localrun.diagnose.explain.sampled_texts import sampled_texts
from localrun.diagnose.explain.texts import write
from localrun.diagnose.explain.topic_report import Bars, Figure, TopicReport
from localrun.diagnose.explain.words import WORDS
from localrun.diagnose.perplexity import Score, scored_rows
from localrun.engine.load import LoadedModel, load_on
from localrun.engine.opened_model import OpenedModel, open_model
from localrun.fit.machine_rates import machine_rates
from localrun.fit.precisions import bits_of
from localrun.fit.roofline import roofline
from localrun.fit.weights import held_share
from localrun.formats.requantize import FLOAT_TYPES, PRECISIONS, RequantizedSource
from localrun.formats.source import TensorSource
from localrun.model.headers import read_weight_refs
from localrun.model.weight_sizes import allocated_bytes, held_bytes

LARGEST = 50_000_000  # parameters that are encoded while one waits
SECONDS_EACH = 300e-9  # about, to encode a parameter in all of them and to compare them
CONTEXT, ANSWER = 512, 16  # tokens
CLOSE = 0.02  # nats of divergence that nobody notices

Texts = Sequence[tuple[Sequence[int], int]]  # ids, and from where on they are scored


@dataclass(frozen=True, slots=True)
class Taken:
    """One precision: bytes by formula and as allocated, tokens per second, and the scores of the texts."""

    predicted_bytes: float
    held_bytes: float
    at_best_tps: float
    tps: float
    nll: float  # mean of -ln p
    kld: float
    same_top1: float  # percent


def explain(model: LoadedModel) -> TopicReport:
    opened = open_model(LoadOptions(path=Path(model.info.path), prefix_cache=False))
    n_params = sum(prod(ref.shape) for ref in opened.refs.values())
    return too_large(model, n_params) if n_params > LARGEST else report(opened.source, take(model, opened))


def variants(source: TensorSource) -> Mapping[str, TensorSource]:
    """The weights of a file in every precision, all made from the same floats."""
    floats = FloatWeights(source)
    return {"F16": floats, **{name.upper(): RequantizedSource(floats, qtype) for name, qtype in PRECISIONS.items()}}


def take(model: LoadedModel, opened: OpenedModel) -> dict[str, Taken]:
    """Load and measure each precision beside the first, one after the other."""
    sources = variants(opened.source)
    with loaded(model, opened, sources["F16"]) as first:
        texts = sampled_texts(first)
        found = {"F16": measured(first, first, texts, sources["F16"])}
        for name, source in [*sources.items()][1:]:
            with loaded(model, opened, source) as other:
                found[name] = measured(first, other, texts, source)
    return found


@contextmanager
def loaded(model: LoadedModel, opened: OpenedModel, source: TensorSource) -> Iterator[LoadedModel]:
    """The model with other weights, on the same backend, while it is measured."""
    ctx = min(CONTEXT, opened.config.max_context)
    options = LoadOptions(opened.source.path, ctx=ctx, kv="f16", threads=model.threads, prefix_cache=False)
    other = replace(opened, source=source, refs=read_weight_refs(source, opened.config), identity=None)
    found = load_on(model.backend, (), options, other, lambda done, total: None, time.perf_counter())
    try:
        yield found
    finally:
        found.close()


def measured(first: LoadedModel, other: LoadedModel, texts: Texts, source: TensorSource) -> Taken:
    """Score `other` on the texts, and its distance from `first` over the whole vocabulary."""
    score = Score()
    engines = [(one.engine.runner, one.engine.store) for one in ((first, other) if other is not first else (first,))]
    for ids, begin in texts:
        for targets, logits in scored_rows(engines, ids, begin - 1):
            score.add(targets, logits[-1])
            score.compare(logits[0], logits[-1])
    compared = score.comparison()
    refs = read_weight_refs(source, other.plan.config)
    return Taken(
        predicted_bytes=held_bytes(source, refs, other.backend.matrix_bytes),
        held_bytes=allocated_bytes(other.model.weights),
        at_best_tps=machine_rates().read_bytes / other.file_bytes_per_token,
        tps=1 / median(write(other, texts[0][0], ANSWER).seconds[1:]),
        nll=score.nll,
        kld=compared.kld_mean,
        same_top1=100 * compared.same_top1,
    )


def report(source: TensorSource, taken: Mapping[str, Taken]) -> TopicReport:
    """The report of all measurements."""
    words = WORDS["precision"]
    figures: list[Figure] = []
    for name, one in taken.items():
        figures += (
            Figure(f"{name}: weights in memory", "bytes", "", one.predicted_bytes, one.held_bytes),
            Figure(f"{name}: an answer", "tok/s", "", one.at_best_tps, one.tps, at_best=True),
            Figure(f"{name}: KL divergence from F16", "nats", "", None, one.kld),
            Figure(f"{name}: perplexity", "", "", None, math.exp(one.nll)),
            Figure(f"{name}: the same likeliest token", "%", "", None, one.same_top1),
        )
    pictures = (
        Bars("Bytes of the weights in memory", "bytes", {name: one.held_bytes for name, one in taken.items()}),
        Bars("Tokens a second of an answer", "tok/s", {name: one.tps for name, one in taken.items()}),
        Bars("KL divergence from F16: less is better", "nats", {name: one.kld for name, one in taken.items()}),
        Bars(
            "Perplexity of what F16 wrote: less is better", "", {name: math.exp(one.nll) for name, one in taken.items()}
        ),
    )
    text = f"{words.text} {truth(source)}".strip()
    return TopicReport("precision", words.title, text, tuple(figures), pictures, advice(taken))


def advice(taken: Mapping[str, Taken]) -> str:
    """Which precision to use."""
    close = [name for name, one in taken.items() if one.kld < CLOSE]
    small = min(close, key=lambda name: taken[name].held_bytes)
    fast = max(taken, key=lambda name: taken[name].tps)
    lost = math.exp(taken["INT2"].nll - taken["F16"].nll)
    unpacked = taken["INT2"].held_bytes > taken["INT4"].held_bytes
    return (
        f"{small} is the smallest that stays within {CLOSE} nats of F16 here, {fast} the fastest. With INT2 the text "
        f"is {lost:.2f} times as surprising"
        + (", and it takes more memory than INT4, for it is unpacked to be computed" if unpacked else "")
        + ": it is for trying out."
    )


def truth(source: TensorSource) -> str:
    """Describe the weights in the file, and say where few of them can be held in two bits."""
    matrices = [info.qtype for info in source.tensors.values() if len(info.shape) > 1]
    kind = Counter(matrices).most_common(1)[0][0]
    said = f"The file holds {kind}: those weights, decoded, are the truth here; what making them cost is not seen."
    made = [info.qtype for info in RequantizedSource(FloatWeights(source), PRECISIONS["int2"]).tensors.values()]
    n = made.count(PRECISIONS["int2"])
    few = f"Only {n} of {len(matrices)} matrices have rows that INT2 can hold; the others stay in 4 and 8 bits."
    return " ".join(part for part in (said * (kind not in FLOAT_TYPES), few * (2 * n < len(matrices))) if part)


def too_large(model: LoadedModel, n_params: int) -> TopicReport:
    """The report by formula for a model that would take long to measure, and the cost of measuring it."""
    words = WORDS["precision"]
    kinds = {"F16": "F16", **{name.upper(): qtype for name, qtype in PRECISIONS.items()}}
    bits = {name: bits_of(name) * held_share(qtype) for name, qtype in kinds.items()}  # in memory: some are unpacked
    sizes = {name: n_params * of / 8 for name, of in bits.items()}
    rates = machine_rates()
    share = model.file_bytes_per_token / max(model.plan.weights_bytes + model.plan.mapped_bytes, 1)
    limits = roofline(rates, model.file_bytes_per_token)[0]
    speeds = {name: 1 / limits.reading(n * share) for name, n in sizes.items()}
    figures: list[Figure] = []
    for name, n in sizes.items():
        figures += (
            Figure(f"{name}: the weights", "bytes", f"parameters · {bits[name]:g} bits / 8", n, None),
            Figure(f"{name}: an answer", "tok/s", "bytes a second / bytes", speeds[name], None),
        )
    return TopicReport(
        "precision",
        words.title,
        words.text,
        tuple(figures),
        (Bars("Bytes of the weights", "bytes", sizes), Bars("Tokens a second of an answer", "tok/s", speeds)),
        f"These are formulas: to encode {count(n_params)} parameters in each precision and to compare them would take "
        f"about {ms(1000 * SECONDS_EACH * n_params)} and {gib(sizes['F16'] + sizes['INT8'])}. Smaller models are "
        "measured: `localrun explain precision -m builtin`; `localrun bench --compare A B` compares two of any size.",
    )
