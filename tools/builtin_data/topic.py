"""A topic: the ways people ask about one thing, and what to say at several lengths."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Topic:
    """`names` are asked about through the common question forms, `patterns` are whole questions."""

    key: str
    answer: tuple[str, ...]
    names: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    short: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    simple: tuple[str, ...] = ()
    weight: float = 1.0
