"""One line in, one line out: ways to say one thing, and what fits as an answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Exchange:
    """Ways to say one thing, and fitting answers. `weight` is how often it comes up beside the others.

    `{w}` in a pattern is any word.
    """

    key: str
    patterns: tuple[str, ...]
    answers: tuple[str, ...]
    weight: float = 1.0
    wrap: bool = True
