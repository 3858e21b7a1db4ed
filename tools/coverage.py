"""Share of downloads that can be read, for docs/models.md: `downloads.csv` beside the tables that the loader reads."""

import csv
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from localrun.formats.checkpoints.registry import METHODS
from localrun.model.archs.hf_classes import MODEL_TYPES, TEXT_TYPES
from localrun.model.archs.hf_values import CLASSES
from tools.count_downloads import COUNTED, FLOATS, OTHERS

METHOD_OF = {  # of formats that are checkpoints with codes: a key of METHODS
    "MLX": "mlx",
    "MXFP4": "mxfp4",
    "NVFP4": "modelopt NVFP4",
    "FP8": "fp8",
    "AWQ": "awq",
    "GPTQ": "gptq",
    "AutoRound": "auto-round",
    "bitsandbytes": "bitsandbytes nf4",
    "compressed-tensors": "compressed-tensors pack-quantized",
}
READ_FORMATS = {FLOATS, "GGUF", *(word for word, method in METHOD_OF.items() if method in METHODS)}
READ_TYPES = {*MODEL_TYPES.values(), *TEXT_TYPES.values(), *CLASSES}
AGES = {"all": ("before", "2026", "since 2026-07"), "2026": ("2026", "since 2026-07"), "July": ("since 2026-07",)}
SHOWN = 0.003  # of all downloads of an age: smaller shares are told together

HEAD = """
How much of what people download that is: of {millions:.0f} million downloads of language models up to 40 billion
parameters, in the table that the `llmfit` package 1.1.17 carries (2026-10-08), those whose architecture is one of these
and whose files are in a format of this page. Beside all of them, those of models released in 2026, and since its July:

| | of all | of 2026 | since July |
|---|---|---|---|
"""
MISSING = """
What cannot be read, and why; smaller shares are told together:

| | of all | of 2026 | since July |
|---|---|---|---|
"""
TAIL = """
Formats are told by the names of repositories, and a repository that is read may hold tensors that are not; `localrun
fit` says so of each. Repositories that hold nothing but GGUF files are hardly in that table, and downloads of servers
and tests are. `python -m tools.count_downloads` counts again.
"""


@dataclass(frozen=True, slots=True)
class Downloads:
    """Downloads of the models of one architecture and age in one format."""

    model_type: str
    format: str
    released: str
    n: int

    @property
    def obstacle(self) -> str:
        """Why they cannot be read; empty where they can."""
        if self.model_type not in READ_TYPES:
            name = f"`{self.model_type}`" if self.model_type not in (OTHERS, "unknown") else self.model_type
            return f"architecture {name}"
        return "" if self.format in READ_FORMATS else f"format {self.format}"


def read_downloads() -> list[Downloads]:
    with COUNTED.open(newline="", encoding="utf-8") as file:
        return [
            Downloads(r["model_type"], r["format"], r["released"], int(r["downloads"])) for r in csv.DictReader(file)
        ]


def shares(downloads: Iterable[Downloads], word: Callable[[Downloads], str]) -> dict[str, tuple[float, ...]]:
    """What share of the downloads of every age each word has, largest first."""
    counts = {age: Counter[str]() for age in AGES}
    for one in downloads:
        for age, released in AGES.items():
            counts[age][word(one)] += one.n * (one.released in released)
    totals = {age: count.total() or 1 for age, count in counts.items()}
    return {key: tuple(counts[age][key] / totals[age] for age in AGES) for key, _ in counts["all"].most_common()}


def coverage() -> str:
    """The section about it."""
    downloads = read_downloads()
    missing = shares(downloads, lambda one: one.obstacle)
    read = missing.pop("")
    architectures = shares(downloads, lambda one: str(one.obstacle.startswith("architecture")))["False"]
    formats = shares(downloads, lambda one: one.format)
    formats = {word: each for word, each in formats.items() if word in READ_FORMATS and max(each) >= SHOWN}
    large = {word: each for word, each in missing.items() if max(each) >= SHOWN and OTHERS not in word}
    rest = tuple(sum(each[i] for word, each in missing.items() if word not in large) for i in range(len(AGES)))
    return "".join(
        (
            HEAD.format(millions=sum(one.n for one in downloads) / 1e6),
            row("**can be read**", read),
            row("have one of these architectures", architectures),
            *(row(f"are {word}", each) for word, each in formats.items()),
            MISSING,
            *(row(word, each) for word, each in sorted(large.items(), key=lambda one: -max(one[1]))),
            row("all others", rest),
            TAIL,
        )
    )


def row(word: str, each: Iterable[float]) -> str:
    return f"| {word} | {' | '.join(f'{share:.1%}'.replace('%', ' %') for share in each)} |\n"
