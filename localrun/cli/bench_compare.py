"""`localrun bench --compare`: two models, or two precisions of one model, side by side."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from localrun.base.sanitize import clean
from localrun.base.units import gib, percent, tps
from localrun.cli.console import show_progress, write, write_json, write_table
from localrun.cli.groups import LoadOptionFlags, ModelOptions
from localrun.cli.session import find_model, open_measured

if TYPE_CHECKING:
    from localrun.diagnose.compare import ModelComparison, TextComparison

LEAST_CONTEXT = 512  # tokens: what is compared of their words fits
SHOWN = 60  # characters of answers that differ


def bench_compare(
    model: ModelOptions, load: LoadOptionFlags, wanted: tuple[str, str], sizes: tuple[int, int, int], json: bool
) -> int:
    """Compare two models.

    `wanted` are two precisions of the named model, or two models where none is named. `sizes`: tokens of prefill,
    tokens of decode, and rounds.
    """
    prompt, generate, repeats = sizes
    options = [replace(model, precision=name) if model.model else replace(model, model=name) for name in wanted]
    first, second = (find_model(one) for one in options)
    flags = replace(load, ctx=load.ctx or max(LEAST_CONTEXT, prompt, generate))
    with open_measured(first, flags) as a, open_measured(second, flags) as b:
        from localrun.diagnose.compare import compare

        found = compare(a.model, b.model, prompt, generate, repeats, show_progress)
    show_progress("")
    if json:
        write_json(asdict(found))
    else:
        _print(found)
    return 0


def _print(found: ModelComparison) -> None:
    a, b = found.sides
    rows = [("", *(f"{side.model} {side.precision}" for side in found.sides), "SECOND ÷ FIRST")]
    rows += _rates("prefill", a.prefill_tps, b.prefill_tps, found.prefill_ratio)
    rows += _rates("decode", a.decode_tps, b.decode_tps, found.decode_ratio)
    for number, part in enumerate(a.memory):
        both = part, b.memory[number]
        share = f"{both[1].measured / both[0].measured:.2f}" if both[0].measured else "-"
        rows.append((part.name, *(f"{gib(one.measured)} of {gib(one.predicted)} predicted" for one in both), share))
    write_table(rows)
    write(f"\n{_words(found.words)}\n")


def _rates(what: str, a: float | None, b: float | None, ratio: float | None) -> list[tuple[str, ...]]:
    return [] if a is None or b is None or ratio is None else [(what, tps(a), tps(b), f"{ratio:.2f}")]


def _words(words: TextComparison | None) -> str:
    if words is None:
        return "Their vocabularies differ: their texts cannot be compared token by token."
    kept = f"On {words.scored_tokens} tokens of a text the first choice is the same for {percent(words.same_top1, 1)}"
    kept += f", mean KL divergence {words.kld_mean:.4f}."
    if words.first_difference is None:
        return f"{kept}\nGreedy answers of {words.answer_tokens} tokens are the same."
    texts = [repr(clean(text, keep_newlines=False)[:SHOWN]) for text in words.texts]
    return (
        f"{kept}\nGreedy answers differ from token {words.first_difference + 1} of {words.answer_tokens} on:"
        f"\n  {texts[0]}\n  {texts[1]}"
    )
