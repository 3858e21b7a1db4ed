# ruff: noqa: E501 - patterns and sentences stand on one line each
"""What users tell about others: where a sister lives, how old a brother is, what a friend likes."""

from __future__ import annotations

from dataclasses import replace

from tools.builtin_data import names, things
from tools.builtin_data.fact import Fact, called
from tools.builtin_data.grammar import words
from tools.builtin_data.own_facts import AGE, JOB
from tools.builtin_data.tastes import LIKES

KIN = words(
    "sister brother mother father friend wife husband son daughter uncle aunt cousin teacher boss neighbour baby grandma grandpa boyfriend girlfriend mom dad roommate"
)
PETS = words("dog cat parrot horse hamster rabbit goldfish turtle pony snake bird fish puppy kitten")
MANY = words("cats dogs kids children brothers sisters sons daughters parrots rabbits")


def known_as(noun: str, weight: float = 0.4) -> Fact:
    """A person's name, also told as `my brother is Tim`."""
    fact = called(noun, weight)
    return replace(fact, tell=(*fact.tell, f"my {noun} is {{v}}", f"my {noun} is {{v}}"))


def home_of(noun: str) -> Fact:
    return Fact(
        f"home of {noun}",
        (
            f"my {noun} lives in {{v}}",
            f"my {noun} is living in {{v}}",
            f"my {noun} moved to {{v}}",
            f"my {noun}'s home is [in |]{{v}}",
        ),
        (
            f"where does my {noun} live?",
            f"do you [remember|know] where my {noun} lives?",
            f"[what|which] [city|town] does my {noun} live in?",
            f"where is my {noun}'s home?",
            f"tell me where my {noun} lives",
        ),
        f"your {noun} lives in {{v}}",
        f"You have not told me where your {noun} lives.",
        things.city,
        weight=0.14,
    )


def age_of(noun: str) -> Fact:
    return Fact(
        f"age of {noun}",
        (
            f"my {noun} is {{v}} years old",
            f"my {noun} is {{v}}",
            f"my {noun} turned {{v}}",
            f"my {noun}'s age is {{v}}",
        ),
        (
            f"how old is my {noun}?",
            f"what is my {noun}'s age?",
            f"do you [remember|know] how old my {noun} is?",
            f"what age is my {noun}?",
        ),
        f"your {noun} is {{v}} years old",
        f"You have not told me how old your {noun} is.",
        AGE.value,
        weight=0.14,
    )


def job_of(noun: str) -> Fact:
    return Fact(
        f"job of {noun}",
        (f"my {noun} works as a {{v}}", f"my {noun} is a {{v}}", f"my {noun}'s job is {{v}}"),
        (f"what does my {noun} do[ for a living|]?", f"what is my {noun}'s job?", f"what does my {noun} work as?"),
        f"your {noun} works as a {{v}}",
        f"You have not told me what your {noun} does.",
        JOB.value,
        weight=0.08,
    )


def likes_of(noun: str) -> Fact:
    return Fact(
        f"likes of {noun}",
        (f"my {noun} [likes|loves|enjoys] {{v}}", f"my {noun} is a fan of {{v}}", f"my {noun}'s hobby is {{v}}"),
        (
            f"what does my {noun} [like|love|enjoy]?",
            f"what is my {noun}'s hobby?",
            f"do you remember what my {noun} likes?",
        ),
        f"your {noun} likes {{v}}",
        f"You have not told me what your {noun} likes.",
        LIKES.value,
        weight=0.1,
    )


def all_called(nouns: str) -> Fact:
    """The names of several pets or children."""
    return Fact(
        f"names of {nouns}",
        (
            f"my {nouns} are [called|named] {{v}}",
            f"i have two {nouns}[, | and ]their names are {{v}}",
            f"i have two {nouns}[:| called| named|, called|,] {{v}}",
            f"the names of my {nouns} are {{v}}",
        ),
        (
            f"what are my {nouns} called?",
            f"what are [my {nouns}' names|the names of my {nouns}]?",
            f"how are my {nouns} called?",
            f"do you remember [the names of my {nouns}|what my {nouns} are called]?",
        ),
        f"your {nouns} are called {{v}}",
        f"You have not told me what your {nouns} are called.",
        lambda rng: f"{names.one_word_name(rng)} and {names.one_word_name(rng)}",
        weight=0.12,
    )


WITH_A_LIFE = (
    "sister",
    "brother",
    "mother",
    "father",
    "friend",
    "wife",
    "husband",
    "son",
    "daughter",
    "uncle",
    "aunt",
    "cousin",
)
OTHERS = (
    *(known_as(noun) for noun in KIN),
    *(called(noun, 0.4) for noun in PETS),
    called("dog", 1.5),
    called("cat", 1.2),
    known_as("best friend", 0.8),
    *(of(noun) for noun in WITH_A_LIFE for of in (home_of, age_of, job_of, likes_of)),
    *(age_of(noun) for noun in ("dog", "cat", "horse", "baby")),
    *(all_called(nouns) for nouns in MANY),
)
