"""Small tools to phrase one thing in many ways: alternatives, slots, and the noise of real typing."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import TypeVar

ALTERNATIVES = re.compile(r"\[([^\[\]]*)\]")
SLOT = re.compile(r"\{(\w+)\}")
# Slot values travel through the noise as private-use characters, so that names and numbers stay as given.
FIRST_PLACEHOLDER = 0xE000
KEYBOARD = ("qwertyuiop", "asdfghjkl", "zxcvbnm")


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


OPENERS = (
    "hey, ",
    "hi, ",
    "hi! ",
    "hello, ",
    "hello! ",
    "ok, ",
    "okay, ",
    "so, ",
    "so ",
    "well, ",
    "um, ",
    "please, ",
    "now ",
    "and ",
    "but ",
    "quick question: ",
    "question: ",
    "one question: ",
    "alright, ",
    "just curious: ",
    "hmm, ",
    "oh, ",
    "another question: ",
    "sorry, ",
    "right, ",
    "good, ",
    "great, ",
    "cool, ",
    "thanks. ",
    "i was wondering, ",
    "nice. ",
)
CLOSERS = (
    " please",
    ", please",
    " thanks",
    ", thanks",
    " pls",
    " thx",
    " buddy",
    ", friend",
    " then",
    " again",
    " plz",
)


LEADS = (
    "can you tell me ",
    "could you tell me ",
    "do you know ",
    "tell me ",
    "please tell me ",
    "i want to know ",
    "i'd like to know ",
    "i would like to know ",
    "i wonder ",
    "may i ask ",
    "can i ask ",
    "any idea ",
    "explain to me ",
    "could you explain ",
    "can you explain ",
    "would you tell me ",
    "let me ask: ",
    "my question is: ",
    "i don't understand ",
    "help me understand ",
)
TAILS = (
    " i am new to this",
    " i'm curious",
    " just wondering",
    " any idea?",
    " please explain",
    " explain it to me",
    " i never understood that",
    " tell me please",
    " can you answer that?",
    " i'd like to know",
    " do you know?",
    " be honest",
    " what do you say?",
    " i forgot",
    " can you help me with that?",
    " i need it now",
    " thank you",
    " thanks in advance",
)
QUESTION_WORDS = ("why", "what", "how", "which", "where", "who", "when")


def wrapped(rng: Random, text: str) -> str:
    """The same message with a word of politeness before it, a question in front of the question, or an afterthought."""
    first_lower = text[:1].lower() + text[1:]
    body = text.rstrip(".?!")
    end = text[len(body) :]
    roll = rng.random()
    if text.lower().startswith(QUESTION_WORDS) and roll < 0.4:
        return rng.choice(LEADS) + first_lower
    if roll < 0.7:
        return rng.choice(OPENERS) + first_lower
    if roll < 0.85:
        return body + rng.choice(CLOSERS) + end
    return body + (end or ".") + rng.choice(TAILS)


def noisy(rng: Random, text: str) -> str:
    """Case, end punctuation and now and then a typo, as people type."""
    roll = rng.random()
    if roll < 0.40:
        text = text[:1].upper() + text[1:]
    elif roll < 0.82:
        text = text.lower()
    elif roll < 0.86:
        text = text.upper()
    elif roll < 0.88:
        text = text.title()
    if rng.random() < 0.14:
        text = mistyped(rng, text)
    return repunctuated(rng, text)


def repunctuated(rng: Random, text: str) -> str:
    roll = rng.random()
    if roll < 0.30:
        text = text.rstrip(".?!")
    elif roll < 0.34:
        text = text.rstrip(".?!") + rng.choice(("!", "!!", "??", "...", " ?", " !", "?!", "."))
    if rng.random() < 0.15:
        text = text.replace("'", "")
    elif rng.random() < 0.05:
        text = text.replace("'", "’")
    if rng.random() < 0.08:
        text = text.replace(",", "")
    return text


def mistyped(rng: Random, text: str) -> str:
    parts = text.split(" ")
    candidates = [i for i, word in enumerate(parts) if len(word) > 3 and word.isalpha() and word.isascii()]
    for i in rng.sample(candidates, min(len(candidates), rng.choice((1, 1, 1, 2)))):
        parts[i] = typo(rng, parts[i])
    return " ".join(parts)


def swap(rng: Random, word: str, at: int) -> str:
    return word[: at - 1] + word[at] + word[at - 1] + word[at + 1 :]


def drop(rng: Random, word: str, at: int) -> str:
    return word[:at] + word[at + 1 :]


def double(rng: Random, word: str, at: int) -> str:
    return word[:at] + word[at] + word[at:]


def neighbour(rng: Random, word: str, at: int) -> str:
    for row in KEYBOARD:
        if (column := row.find(word[at].lower())) >= 0:
            near = row[max(0, column - 1) : column] + row[column + 1 : column + 2]
            return word[:at] + rng.choice(near) + word[at + 1 :]
    return word


TYPOS: tuple[Callable[[Random, str, int], str], ...] = (swap, drop, double, neighbour)


def typo(rng: Random, word: str) -> str:
    """One slip of the fingers after the first letter: swapped, dropped, doubled or neighbouring key."""
    return rng.choice(TYPOS)(rng, word, rng.randrange(1, len(word)))


def article(noun: str) -> str:
    return ("an " if noun[:1].lower() in "aeiou" else "a ") + noun


def normalised(text: str) -> str:
    """Letters and digits only, lower case: what makes two phrasings the same."""
    return " ".join(re.findall(r"[^\W_]+|[-+*/×÷=]", text.lower().replace("'", "").replace("’", "")))


def words(text: str) -> list[str]:
    """Word lists are written as running text."""
    return text.split()


def phrases(text: str) -> list[str]:
    """Things of several words, written with commas between."""
    return [" ".join(phrase.split()) for phrase in text.split(",")]


def lines(text: str) -> list[str]:
    """Sentences, one a line."""
    return [line.strip() for line in text.strip().splitlines()]
