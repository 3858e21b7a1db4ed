"""A topic: the ways people ask about one thing, and what to say at several lengths."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Topic:
    """What is asked, in pieces that the common forms of `frames` turn into questions, and what is answered.

    The first sentence of an answer stands by itself: it is the short answer where `short` has none.
    """

    key: str
    answer: tuple[str, ...]
    names: tuple[str, ...] = ()  # nouns, the plain one first: "the KV cache"
    tasks: tuple[str, ...] = ()  # what one wants to do: "download a model"
    facts: tuple[str, ...] = ()  # what one noticed: "the first token is slow"
    pairs: tuple[tuple[str, str], ...] = ()  # what one cannot tell apart
    patterns: tuple[str, ...] = ()  # whole questions
    bare: tuple[str, ...] = ()  # names that are understood only after a neighbour: "and rm?"
    short: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    simple: tuple[str, ...] = ()
    example: tuple[str, ...] = ()
    weight: float = 1.0
