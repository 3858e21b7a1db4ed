"""Report on a topic of `localrun explain`: measured numbers beside the formulas that predict them. Torch-free."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from localrun.base.dataclass import dataclass
from localrun.base.events import Completion

Ask: TypeAlias = Callable[[str], Completion]  # a few tokens after a text, greedily, by the engine as a chat uses it


@dataclass(frozen=True, slots=True)
class Figure:
    """One number. `expected` follows from `formula`, `measured` was found here; None where there is only the other.

    `at_best`: the formula gives a bound that no machine with these limits can beat, rather than the expected value.
    """

    name: str
    unit: str  # tokens, bytes, ms, tok/s, %, x, nats
    formula: str
    expected: float | None
    measured: float | None
    at_best: bool = False


@dataclass(frozen=True, slots=True)
class Bars:
    """Numbers side by side."""

    title: str
    unit: str
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Curve:
    """Series of numbers: `lines` by name, each as long as `x`."""

    title: str
    unit: str
    x_name: str
    x: Sequence[float]
    lines: Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True)
class TopicReport:
    """A topic: what happens, the figures on this machine, and advice.

    `correction`: of a rounded number that is often quoted.
    """

    topic: str
    title: str
    text: str
    figures: tuple[Figure, ...]
    pictures: tuple[Bars | Curve, ...]
    conclusion: str
    correction: str = ""


def as_report(data: Mapping[str, Any]) -> TopicReport:
    """Rebuild a report from JSON."""
    figures = tuple(Figure(**figure) for figure in data["figures"])
    pictures = tuple(Bars(**one) if "values" in one else Curve(**one) for one in data["pictures"])
    return TopicReport(**{**data, "figures": figures, "pictures": pictures})
