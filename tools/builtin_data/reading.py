"""Small conclusions from what has just been said: who is taller, who has what, who lives where.

Answers hold the names inside, after a space, as questions do: at their beginning a name has other tokens.
"""

from __future__ import annotations

from random import Random

from tools.builtin_data import names, things
from tools.builtin_data.grammar import ask
from tools.builtin_data.made_up import nonsense_word
from tools.builtin_data.talk import Talk

# More, most, and the same for the opposite.
SCALES = (
    ("taller", "tallest", "shorter", "shortest"),
    ("older", "oldest", "younger", "youngest"),
    ("faster", "fastest", "slower", "slowest"),
    ("bigger", "biggest", "smaller", "smallest"),
    ("richer", "richest", "poorer", "poorest"),
    ("stronger", "strongest", "weaker", "weakest"),
    ("heavier", "heaviest", "lighter", "lightest"),
    ("louder", "loudest", "quieter", "quietest"),
)
END = "[. |, |; |. so ]"
BELONGINGS = (
    "key",
    "map",
    "book",
    "ball",
    "lamp",
    "cake",
    "letter",
    "hat",
    "coin",
    "rope",
    "boat",
    "ring",
    "umbrella",
    "bike",
    "drum",
    "kite",
    "cup",
    "phone",
)
SPOTS = (
    "on the table",
    "under the chair",
    "in the drawer",
    "behind the door",
    "on the roof",
    "in the garden",
    "in the box",
    "under the bed",
    "on the shelf",
    "in the kitchen",
    "next to the lamp",
    "in the car",
    "in the garage",
    "by the window",
)
# A statement about {p} with value {v}, the question for the value, the question for the person, and the answer.
RELATIONS = (
    ("{p} lives in {v}", "where does {p} live?", "who lives in {v}?", "{p} lives in {v}."),
    ("{p} has the {v}", "what does {p} have?", "who has the {v}?", "{p} has the {v}."),
    ("{p} likes {v}", "what does {p} like?", "who likes {v}?", "{p} likes {v}."),
    ("{p} is {v} years old", "how old is {p}?", "who is {v} [years old|]?", "{p} is {v} years old."),
    ("{p} is a {v}", "what is {p}'s job?", "who is [a|the] {v}?", "{p} is a {v}."),
    ("{p} is {v}", "where is {p}?", "who is {v}?", "{p} is {v}."),
    ("{p} owns the {v}", "what does {p} own?", "who owns the {v}?", "{p} owns the {v}."),
    ("{p} found the {v}", "what did {p} find?", "who found the {v}?", "{p} found the {v}."),
    ("{p} brings the {v}", "what does {p} bring?", "who brings the {v}?", "{p} brings the {v}."),
    ("{p} wants {v}", "what does {p} want?", "who wants {v}?", "{p} wants {v}."),
)
OF_THINGS, OF_TASTES = (1, 6, 7, 8), (2, 9)


def value(rng: Random, relation: int) -> str:
    if relation == 0:
        return things.city(rng)
    if relation in OF_THINGS:
        return nonsense_word(rng) if rng.random() < 0.2 else rng.choice(BELONGINGS)
    if relation in OF_TASTES:
        return things.rarely_new(rng, things.HOBBIES + things.FOODS)
    if relation == 3:
        return str(rng.randint(3, 99))
    if relation == 4:
        return rng.choice([job for job in things.JOBS if job[0] not in "aeiou"])
    return rng.choice(SPOTS)


def people(rng: Random, count: int) -> list[str]:
    found: list[str] = []
    while len(found) < count:
        name = names.one_word_name(rng)
        if name.lower() not in [known.lower() for known in found]:
            found.append(name)
    return found


def reading_turns(talk: Talk) -> None:
    rng = talk.rng
    roll = rng.random()
    if roll < 0.30:
        compared(talk)
    elif roll < 0.42:
        ranked(talk)
    elif roll < 0.52:
        place(talk)
    else:
        related(talk)


def compared(talk: Talk) -> None:
    rng = talk.rng
    more, _, less, _ = rng.choice(SCALES)
    if rng.random() < 0.5:
        more, less = less, more
    a, b = people(rng, 2)
    asks_more = rng.random() < 0.5
    wanted = more if asks_more else less
    told = f"[||if |say |we know that |suppose ]{{a}} is [|||much |a bit |a little ]{more} than {{b}}"
    asked = (
        f"[who|which one|which of them|which of the two] is [|the ]{wanted}[| one| of the two]?",
        f"[so |and |then |]who is {wanted}?",
        f"who is {wanted}, [{{a}} or {{b}}|{{b}} or {{a}}]?",
        f"[tell me |name |]the {wanted} one",
    )
    patterns = [told + END + question for question in asked]
    replies = (f"The {more} one is {a}.", f"{a} is {more}, so the {less} one is {b}.")
    talk.say("reading", ask(rng, patterns, {"a": a, "b": b}, wrap=False), replies[0 if asks_more else 1])
    if rng.random() < 0.25:
        other = less if asks_more else more
        again = ask(rng, (f"and who is {other}?", f"who is {other} [then|]?", f"and the {other} one?"))
        talk.say("reading", again, replies[1 if asks_more else 0])


def ranked(talk: Talk) -> None:
    """Three people in a row, in either order of telling."""
    rng = talk.rng
    more, most, _, least = rng.choice(SCALES)
    a, b, c = people(rng, 3)
    told = [f"{{a}} is {more} than {{b}}", f"{{b}} is {more} than {{c}}"]
    if rng.random() < 0.3:
        told.reverse()
    wanted, who = rng.choice(((most, a), (least, c)))
    pattern = "[ and |, and |. |, ]".join(told) + END + f"who is the {wanted} [of them|]?"
    talk.say("reading", ask(rng, (pattern,), {"a": a, "b": b, "c": c}, wrap=False), f"The {wanted} is {who}.")


def place(talk: Talk) -> None:
    rng = talk.rng
    thing, where = rng.choice(BELONGINGS), rng.choice(SPOTS)
    if rng.random() < 0.25:
        thing = nonsense_word(rng)
    pattern = "the {t} is {w}" + END + "where is the {t}?"
    if rng.random() < 0.5:
        told = ask(
            rng, ("the {t} is {w}", "[i put|i left|somebody put] the {t} {w}"), {"t": thing, "w": where}, wrap=False
        )
        talk.say("told_place", told, f"Noted! The {thing} is {where}.")
        talk.say(
            "reading",
            ask(rng, ("where is the {t}?", "[so |and |]where is the {t} [now|]?"), {"t": thing}),
            f"The {thing} is {where}.",
        )
    else:
        talk.say("reading", ask(rng, (pattern,), {"t": thing, "w": where}, wrap=False), f"The {thing} is {where}.")


def related(talk: Talk) -> None:
    """Two people with the same relation to two things: asked for one of them, and perhaps for the other."""
    rng = talk.rng
    relation = rng.randrange(len(RELATIONS))
    statement, for_value, for_person, answer = RELATIONS[relation]
    who = people(rng, 2)
    what = [value(rng, relation) for _ in who]
    if what[0] == what[1]:
        return
    told = [statement.replace("{p}", f"{{p{i}}}").replace("{v}", f"{{v{i}}}") for i in (0, 1)]
    slots = {"p0": who[0], "p1": who[1], "v0": what[0], "v1": what[1]}
    i = rng.randrange(2)
    question = for_value if rng.random() < 0.5 else for_person
    asked = question.replace("{p}", f"{{p{i}}}").replace("{v}", f"{{v{i}}}")
    replies = ["You said that " + answer.replace("{p}", p).replace("{v}", v) for p, v in zip(who, what, strict=True)]
    pattern = "[. | and |, |, and ]".join(told) + END + asked
    talk.say("reading", ask(rng, (pattern,), slots, wrap=False), replies[i])
    if rng.random() < 0.3:
        again = ask(rng, ("and {p}?", "what about {p}?", "and what about {p}?"), {"p": who[1 - i]})
        talk.say("reading", again, replies[1 - i])
