# ruff: noqa: E501 - patterns and sentences stand on one line each
"""What people ask to be kept in mind: numbers, words, plans, where things lie, how many there are."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tools.builtin_data import things
from tools.builtin_data.fact import Fact
from tools.builtin_data.grammar import article
from tools.builtin_data.kept_things import KEPT, kept
from tools.builtin_data.made_up import nonsense_word, rough
from tools.builtin_data.rare_words import RARE_WORDS


def number_text(rng: Random) -> str:
    return str(rng.randint(0, 99) if rng.random() < 0.7 else rng.randint(100, 9999))


def any_word(rng: Random) -> str:
    if rng.random() < 0.55:
        return (rough if rng.random() < 0.25 else nonsense_word)(rng)
    return (
        rng.choice(RARE_WORDS).lower()
        if rng.random() < 0.4
        else rng.choice(things.FOODS + things.ANIMALS + things.COLOURS)
    )


NUMBER = Fact(
    "number",
    (
        "remember the number {v}",
        "please remember the number {v}",
        "the number is {v}",
        "keep the number {v} in mind",
        "remember this number: {v}",
        "my number is {v}",
        "don't forget the number {v}",
        "note the number {v}",
        "remember {v}[ for me| please|]",
        "[please |]keep {v} in mind",
        "[my|the] [pin|code|lucky|secret] number is {v}",
    ),
    (
        "what was the number?",
        "what is the number?",
        "which number did i [tell you|give you|ask you to remember|say|mention]?",
        "what number did i [tell you|give you|ask you to remember|say|mention]?",
        "tell me the number",
        "do you remember the number?",
        "what's the number [again|]?",
        "the number?",
        "what is my number?",
        "[which|what] number should you [remember|keep in mind]?",
        "[which|what] number [was it|did i mention]?",
    ),
    "the number is {v}",
    "You have not told me a number.",
    number_text,
    weight=1.0,
)
WORD = Fact(
    "word",
    (
        "remember the word {v}",
        "please remember the word {v}",
        "[the|my] [secret |magic |code |]word is {v}",
        "remember this word: {v}",
        "keep the word {v} in mind",
        "don't forget the word {v}",
    ),
    (
        "what was the [secret |magic |code |]word?",
        "what is the [secret |magic |code |]word?",
        "which word did i [tell you|give you|ask you to remember|say]?",
        "what word did i [tell you|give you|ask you to remember|say]?",
        "tell me the word",
        "do you remember the [secret |]word?",
        "the word?",
    ),
    "the word is {v}",
    "You have not told me a word to remember.",
    any_word,
    weight=1.0,
)
TWO_WORD_PLANS = (
    "visit {c}",
    "bake {f}",
    "buy {f}",
    "cook {f}",
    "go to {c}",
    "see {p}",
    "call {p}",
    "meet {p}",
    "play {s}",
    "paint {an}",
    "look for your {a}",
    "visit your {k}",
    "call your {k}",
    "meet your {k}",
    "clean your {o}",
    "wash your {o}",
    "paint your {o}",
    "write a letter",
    "go fishing",
    "go to the dentist",
    "buy new shoes",
    "see a movie",
    "stay at home",
    "play with your {a}",
)


KIN = ("grandma", "mother", "brother", "sister", "friend", "uncle", "aunt", "boss", "doctor", "parents", "teacher")


def plan_text(rng: Random) -> str:
    made = rng.choice(TWO_WORD_PLANS)
    slots: dict[str, Callable[[Random], str]] = {
        "c": things.city,
        "f": things.food,
        "p": lambda r: nonsense_word(r).title(),
        "a": things.animal,
        "an": lambda r: article(things.animal(r)),
    }
    slots["k"] = lambda r: r.choice(KIN)
    slots["o"] = lambda r: r.choice(("car", "house", "room", "bike", "kitchen", "fence", "windows", "desk"))
    slots["s"] = lambda r: things.rarely_new(r, things.SPORTS, 0.2)
    for slot, value in slots.items():
        made = made.replace("{" + slot + "}", value(rng))
    return made


def plan(when: str) -> Fact:
    return Fact(
        f"plan {when}",
        (
            f"{when} i [will|want to|am going to|plan to|have to|must|'m going to] {{v}}",
            f"i [will|want to|am going to|plan to|have to|need to|'m going to|wanna] {{v}} {when}",
            f"my plan {when}: {{v}}",
        ),
        (
            f"what [will i do|am i going to do|do i have to do|are my plans|am i doing|do i want to do|did i plan] {when}?",
            f"what is my plan {when}?",
            f"do you [know|remember] [what i will do|my plan|what i am doing|my plans] {when}?",
            f"{when}, what [will i do|do i want to do|was my plan]?",
        ),
        f"{when} you want to {{v}}",
        f"You have not told me your plan for {when}.",
        plan_text,
        weight=0.4,
    )


def count_of(what: str) -> Fact:
    return Fact(
        f"number of {what}",
        (f"i have {{v}} {what}", f"i've got {{v}} {what}", f"there are {{v}} {what} [in my family|at my home|here]"),
        (
            f"how many {what} do i have?",
            f"how many {what} have i got?",
            f"do you [know|remember] how many {what} i have?",
            f"the number of my {what}?",
        ),
        f"you have {{v}} {what}",
        f"You have not told me how many {what} you have.",
        lambda rng: (
            str(rng.randint(2, 12))
            if rng.random() < 0.7
            else rng.choice(("two", "three", "four", "five", "six", "seven"))
        ),
        weight=0.3,
    )


NOTED = (
    NUMBER,
    WORD,
    *(
        plan(when)
        for when in (
            "tomorrow",
            "tonight",
            "today",
            "on Saturday",
            "on Monday",
            "next week",
            "this weekend",
            "after work",
        )
    ),
    *(kept(thing) for thing in KEPT),
    *(
        count_of(what)
        for what in ("brothers", "sisters", "cats", "dogs", "children", "kids", "books", "bikes", "plants", "friends")
    ),
)
