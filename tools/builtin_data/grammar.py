"""Small tools to phrase one thing in many ways: alternatives, slots, and the noise of real typing."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import TypeVar

from tools.builtin_data.typing_noise import noisy, wrapped

ALTERNATIVES = re.compile(r"\[([^\[\]]*)\]")
SLOT = re.compile(r"\{(\w+)\}")
# Slot values travel through the noise as private-use characters, so that names and numbers stay as given.
FIRST_PLACEHOLDER = 0xE000


T = TypeVar("T")
Choose = Callable[[Random, Sequence[T]], T]
FIRST_SHARE = 0.6


def any_of(rng: Random, options: Sequence[T]) -> T:
    return rng.choice(options)


def first_of(rng: Random, options: Sequence[T]) -> T:
    """Any of them, the first a little more often.

    The model's own words are chosen so: between options of equal weight, the likeliest token would hang on rounding,
    and two engines would greedily tell two different stories.
    """
    return options[0] if rng.random() < FIRST_SHARE / len(options) else rng.choice(options)


def expand(rng: Random, pattern: str, choose: Choose[str] = any_of) -> str:
    """Pick one of every `[a|b|c]` (innermost first, an empty one allowed) and tidy the spaces."""
    while match := ALTERNATIVES.search(pattern):
        choice = choose(rng, match.group(1).split("|"))
        pattern = pattern[: match.start()] + choice + pattern[match.end() :]
    return re.sub(r" +([,.?!])", r"\1", re.sub(r" {2,}", " ", pattern)).strip()


def ask(rng: Random, patterns: Sequence[str], slots: Mapping[str, str] | None = None, wrap: bool = True) -> str:
    """A user's message: one expanded pattern, perhaps wrapped in politeness, with slots filled and typing noise."""
    text = expand(rng, rng.choice(patterns))
    if wrap and rng.random() < 0.28:
        text = wrapped(rng, text)
    return fill_noisily(rng, text, slots or {})


def fill_noisily(rng: Random, text: str, slots: Mapping[str, str]) -> str:
    values: list[str] = []

    def hide(match: re.Match[str]) -> str:
        values.append(slots[match.group(1)])
        return chr(FIRST_PLACEHOLDER + len(values) - 1)

    text = noisy(rng, SLOT.sub(hide, text))
    for i, value in enumerate(values):
        text = text.replace(chr(FIRST_PLACEHOLDER + i), value)
    return text


def answer(rng: Random, patterns: Sequence[str], slots: Mapping[str, str] | None = None) -> str:
    """The model's message: expanded and filled, always well spelt."""
    text = expand(rng, first_of(rng, patterns), first_of)
    return SLOT.sub(lambda match: (slots or {})[match.group(1)], text)


def article(noun: str) -> str:
    """The noun with "a" or "an", by its first sound: an owl, but a unicorn and a ewe."""
    first = noun.lower()
    return ("an " if first[:1] in "aeiou" and not first.startswith(LIKE_CONSONANTS) else "a ") + noun


LIKE_CONSONANTS = ("uni", "uku", "eu", "ewe", "one")
IRREGULAR = {
    "mouse": "mice",
    "goose": "geese",
    "wolf": "wolves",
    "calf": "calves",
    "sheep": "sheep",
    "deer": "deer",
    "child": "children",
    "snowman": "snowmen",
    "fish": "fish",
    "goldfish": "goldfish",
}


def plural(noun: str) -> str:
    if noun in IRREGULAR:
        return IRREGULAR[noun]
    if noun.endswith(("s", "x", "z", "ch", "sh")):
        return noun + "es"
    return noun[:-1] + "ies" if noun.endswith("y") and noun[-2:-1] not in "aeiou" else noun + "s"


def capital(text: str) -> str:
    """The same text with a capital first letter, the rest as it was."""
    return text[:1].upper() + text[1:]


def normalised(text: str) -> str:
    """Letters and digits only, lower case: what makes two phrasings the same. Signs alone stay as they are."""
    return " ".join(re.findall(r"[^\W_]+|[-+*/×÷=]", text.lower().replace("'", "").replace("’", ""))) or text.strip()


def words(text: str) -> list[str]:
    """Word lists are written as running text."""
    return text.split()


def phrases(text: str) -> list[str]:
    """Things of several words, written with commas between."""
    return [" ".join(phrase.split()) for phrase in text.split(",")]


def lines(text: str) -> list[str]:
    """Sentences, one a line."""
    return [line.strip() for line in text.strip().splitlines()]
