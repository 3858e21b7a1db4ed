# ruff: noqa: E501 - patterns and sentences stand on one line each
"""Everything a user may tell about themselves: the single facts, favourites, possessions, and who is called what."""

from __future__ import annotations

from random import Random

from tools.builtin_data import names, things
from tools.builtin_data.fact import Fact, called, favourite, open_fact, possession, sentence
from tools.builtin_data.grammar import words
from tools.builtin_data.kin import OTHERS, WITH_A_LIFE
from tools.builtin_data.made_up import nonsense_word
from tools.builtin_data.noted_facts import NOTED, any_word, number_text
from tools.builtin_data.own_facts import ABOUT_ONESELF, pick
from tools.builtin_data.own_name import NAME
from tools.builtin_data.tastes import TASTES

KNOW_NOTHING = "You have not told me anything about yourself yet."
OWNABLE = words(
    "car bike house phone laptop team school street hobby goal dream garden hat guitar boat computer theme motto secret desk dessert title code plan size height mood team mascot weapon staff ship bicycle budget talent ringtone dress coat"
)
QUALITIES = words("old new red first second little wizard magic school garden space toy pet family wooden blue big")
FAVOURITES = (
    favourite("colour", things.colour, 5.0),
    favourite("animal", lambda rng: ("the " if rng.random() < 0.2 else "") + things.animal(rng), 3.0),
    favourite("food", things.food, 2.0),
    favourite("city", things.city, 1.5),
    favourite("drink", pick(things.DRINKS)),
    favourite("season", pick(things.SEASONS, 0)),
    favourite("sport", pick(things.SPORTS)),
    favourite("number", number_text, 1.0),
    favourite("instrument", pick(things.INSTRUMENTS)),
    favourite("hobby", pick(things.HOBBIES)),
    favourite("book", lambda rng: nonsense_word(rng).title()),
    favourite("movie", lambda rng: nonsense_word(rng).title()),
    favourite("song", lambda rng: nonsense_word(rng).title()),
    favourite("band", lambda rng: nonsense_word(rng).title()),
    favourite("fruit", pick(words("apple banana cherry mango peach pear plum kiwi orange melon grape lemon"))),
    favourite("day", pick(words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday"), 0)),
    favourite("game", pick(things.HOBBIES)),
    favourite("flower", pick(words("rose tulip daisy lily sunflower violet orchid poppy"))),
    favourite(
        "country",
        lambda rng: (
            nonsense_word(rng).title()
            if rng.random() < 0.5
            else rng.choice(words("France Spain Italy Japan Peru Kenya Norway India Canada Brazil Greece Chile"))
        ),
    ),
    favourite("subject", pick(things.SUBJECTS)),
    favourite("language", pick(words("German French Spanish Python Rust English Italian Latin"))),
)
OWNED = (
    possession("lucky number", number_text, 1.0),
    possession("password", any_word),
    possession("nickname", names.person_name),
    possession("last name", names.person_name),
    possession("code", number_text),
    possession("project", any_word),
    possession("room number", number_text),
    possession("shoe size", number_text),
    possession("company", any_word),
)
FACTS = (
    NAME,
    *ABOUT_ONESELF,
    *TASTES,
    *NOTED,
    *FAVOURITES,
    *OWNED,
    *OTHERS,
)
BY_KEY = {fact.key: fact for fact in FACTS}


def fact_of(key: str) -> Fact:
    return BY_KEY.get(key) or open_fact(key)


def open_possession(rng: Random) -> Fact:
    """Something of the user's that is in no list, so that the word for it is copied, too."""
    if rng.random() < 0.3:
        noun = nonsense_word(rng) if rng.random() < 0.4 else rng.choice((*things.ANIMALS, *OWNABLE))
        return called(f"{rng.choice(QUALITIES)} {noun}" if rng.random() < 0.25 else noun)
    thing = nonsense_word(rng, 2) if rng.random() < 0.6 else rng.choice(OWNABLE)
    if rng.random() < 0.15:
        thing = f"{rng.choice(WITH_A_LIFE)}'s {rng.choice(('number', 'hobby', 'favourite colour', 'car', thing))}"
    return possession(thing, number_text if thing.endswith("number") else any_word)


def what_is_known(facts: dict[str, str]) -> str:
    if not facts:
        return KNOW_NOTHING
    parts = [fact_of(key).about.replace("{v}", value) for key, value in facts.items()]
    listed = parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]
    return sentence(listed)
