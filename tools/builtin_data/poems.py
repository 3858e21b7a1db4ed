# ruff: noqa: E501 - patterns and sentences stand on one line each
"""Verse: rhymes of four lines, limericks of five, and haiku of three lines with five, seven and five syllables."""

from __future__ import annotations

import re
from random import Random

from tools.builtin_data import things
from tools.builtin_data.grammar import answer, article, ask, capital, expand, first_of
from tools.builtin_data.made_up import nonsense_word
from tools.builtin_data.talk import Talk

POEMS = (
    "A little {a} beneath the moon\nwas humming to itself a tune.\nThe stars looked down, the night was deep,\nand soon the {a} fell asleep.",
    "The {a} woke up to greet the day\nand danced along its merry way.\nThe sun was warm, the sky was wide,\nand joy was walking at its side.",
    "I met {A} upon a hill,\nthe wind was soft, the world was still.\nIt looked at me, I looked at it,\nand side by side we stayed a bit.",
)
THEME_POEMS = (
    "When I think of {a} at night,\nmy tiny world is warm and bright.\nThe stars are few, the words are, too,\nbut all of them I give to you.",
)
LIMERICKS = (
    "There once was {A} by the sea\nwho invited the neighbours for tea.\nThey ate all the bread,\nthen they danced on the bed,\nand the {a} laughed loudest with glee.",
    "There once was {A} from the town\nwho went out in a bright yellow gown.\nIt hopped and it ran\nlike no {a} can,\nand it never came home with a frown.",
)
# The first line by the syllables of its subject.
HAIKU_OPENINGS = {
    1: ("This {a} in the rain,", "One {a} in the dusk,"),
    2: ("Quiet {a} waits,", "{a} in the rain,"),
    3: ("{a} at dawn,", "{a} at rest,"),
    4: ("{a} waits,",),
}
HAIKU_ENDINGS = (
    "\na soft wind moves the tall grass,\nthen all is silent.",
    "\nthe moon looks into the pond\nand sees its own face.",
    "\nsnow is falling on the hills,\nno one makes a sound.",
)
MAKE = "[write|give|tell|make|compose|create|do]"
POEM_REQUESTS = (
    MAKE + " [me |us |]a [short |little |small |nice |]poem [about|on|for|with] {x}",
    "a [short |little |][poem|rhyme|verse] [about|on] {x} [please|]",
    "[can|could] you [write|make up|do] [me |]a [poem|rhyme|little poem] about {x}?",
    "[poem|rhyme|verse] [about|on|:] {x}",
    "[i want|i need|i'd like|i would like] a [poem|rhyme|little poem] [about|on] {x}",
    "make up a [rhyme|poem|verse] about {x}",
    "rhyme something about {x}",
)
HAIKU_REQUESTS = (
    MAKE + " [me |us |]a [short |little |nice |]haiku [about|on|for|with] {x}",
    "[a |]haiku [about|on|of|:|with] {x} [please|]",
    "[can|could] you [write|make up|do] [me |]a haiku [about|on] {x}?",
    "[i want|i need|i'd like|i would like] a haiku [about|on] {x}",
    "{x} as a haiku",
)
LIMERICK_REQUESTS = (
    MAKE + " [me |us |]a [short |funny |]limerick [about|on|for|with] {x}",
    "[a |]limerick [about|on|with] {x} [please|]",
    "[can|could] you [write|make up|do] [me |]a limerick [about|on] {x}?",
)
ANY = {
    "poem": (
        MAKE + " [me |]a [short |little |]poem",
        "a poem please",
        "can you [write poems|rhyme|write a poem]?",
        "[poem|a poem|recite a poem]",
    ),
    "haiku": (
        MAKE + " [me |]a haiku",
        "[a haiku please|haiku|a haiku|haiku please]",
        "can you [write|do|make] [a haiku|haikus|haiku]?",
        "do you know [a|any] haiku?",
    ),
    "limerick": (
        MAKE + " [me |]a limerick",
        "[a limerick please|limerick|a limerick]",
        "can you [write|do|make] [a limerick|limericks]?",
    ),
}
AGAIN = ("[another|another one|one more|again|a different one|next|one more please|another please|more]",)
THEMES = (
    "rain",
    "snow",
    "spring",
    "autumn",
    "winter",
    "love",
    "night",
    "sleep",
    "music",
    "hope",
    "summer",
    "time",
    "home",
    "peace",
    "light",
    "morning",
    "friendship",
    "silence",
    "coffee",
    "tea",
)


def syllables(phrase: str) -> int:
    """How many syllables an English phrase has, near enough: its groups of vowels, less a silent last e."""
    return sum(max(1, len(re.findall(r"[aeiouy]+", re.sub(r"(?<=[^aeiouyl])e$", "", word)))) for word in phrase.split())


def haiku(rng: Random, subject: str) -> str:
    openings = HAIKU_OPENINGS.get(syllables(subject), ("{a},",))
    text = expand(rng, first_of(rng, openings) + first_of(rng, HAIKU_ENDINGS), first_of)
    return capital(text.replace("{a}", subject))


def verse(rng: Random, form: str, subject: str, is_theme: bool) -> str:
    if form == "haiku":
        return haiku(rng, subject)
    forms = LIMERICKS if form == "limerick" else THEME_POEMS if is_theme else POEMS
    return answer(rng, forms, {"a": subject, "A": article(subject)})


def poem_turns(talk: Talk) -> None:
    rng = talk.rng
    form = rng.choices(("poem", "haiku", "limerick"), (4, 4, 1))[0]
    is_theme = form != "limerick" and rng.random() < 0.3
    subject = theme(rng) if is_theme else things.animal(rng)
    if rng.random() < 0.2:
        subject, is_theme = first_of(rng, things.ANIMALS[:40]), False
        talk.say(form, ask(rng, ANY[form]), verse(rng, form, subject, is_theme))
    else:
        patterns = {"poem": POEM_REQUESTS, "haiku": HAIKU_REQUESTS, "limerick": LIMERICK_REQUESTS}[form]
        asked = subject if is_theme else rng.choice((article(subject), f"the {subject}", f"my {subject}", subject))
        talk.say(form, ask(rng, patterns, {"x": asked}), verse(rng, form, subject, is_theme))
    if rng.random() < 0.2:
        talk.say(form, ask(rng, AGAIN), verse(rng, form, first_of(rng, things.ANIMALS[:40]), False))


def theme(rng: Random) -> str:
    return rng.choice(THEMES) if rng.random() < 0.75 else nonsense_word(rng)
