"""What the questions beyond the model's world are about: known things mostly, now and then a word nobody knows."""

from __future__ import annotations

from tools.builtin_data.foreign import FOREIGN
from tools.builtin_data.grammar import normalised, plural
from tools.builtin_data.knowledge import TOPICS
from tools.builtin_data.made_up import nonsense_word
from tools.builtin_data.outside_words import (
    CODE_TASKS,
    COUNTRIES,
    LANGUAGES,
    PEOPLE,
    PLACES,
    PROGRAMMING,
    SENTENCES,
    STATEMENTS,
    TASKS,
    THINGS,
)
from tools.builtin_data.talk import Talk
from tools.builtin_data.things import ANIMALS

# Words that localrun's subjects are called by: alone, they are no question about the world.
TAUGHT = {word for topic in TOPICS for name in topic.names for word in normalised(name).split()}
PLAIN_WORDS = [word for thing in THINGS for word in thing.split() if len(word) > 3 and word not in TAUGHT]


def outside_slots(talk: Talk) -> dict[str, str]:
    rng = talk.rng
    thing, thing2 = (rng.choice(THINGS) if rng.random() < 0.85 else f"{nonsense_word(rng, 2)}" for _ in range(2))
    return {
        "country": rng.choice(COUNTRIES) if rng.random() < 0.85 else nonsense_word(rng).title(),
        "place": rng.choice(PLACES),
        "person": rng.choice(PEOPLE)
        if rng.random() < 0.8
        else f"{nonsense_word(rng).title()} {nonsense_word(rng).title()}",
        "thing": thing,
        "thing2": thing2,
        "animal": rng.choice(ANIMALS),
        "animal2": rng.choice(ANIMALS),
        "animals": plural(rng.choice(ANIMALS)),
        "word": nonsense_word(rng) if rng.random() < 0.5 else rng.choice(PLAIN_WORDS),
        "lang": rng.choice(PROGRAMMING),
        "code": rng.choice(CODE_TASKS),
        "language": rng.choice(LANGUAGES),
        "statement": rng.choice(STATEMENTS),
        "sentence": rng.choice(SENTENCES),
        "task": rng.choice(TASKS),
        "foreign_word": rng.choice(FOREIGN).split(" ")[0].strip("¿¡?!.,"),
        "open": "{",
    }
