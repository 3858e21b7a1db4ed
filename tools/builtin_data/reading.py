"""Small conclusions from what has just been said: who is taller, who has what, who lives where.

Answers hold the names inside, after a space, as questions do: at their beginning a name has other tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tools.builtin_data import names, things
from tools.builtin_data.grammar import article, ask, capital
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


def belonging(rng: Random) -> str:
    return nonsense_word(rng) if rng.random() < 0.2 else rng.choice(BELONGINGS)


def liking(rng: Random) -> str:
    return things.rarely_new(rng, things.HOBBIES + things.FOODS)


def years(rng: Random) -> str:
    return str(rng.randint(3, 99))


def job(rng: Random) -> str:
    return article(rng.choice(things.JOBS))


def pet(rng: Random) -> str:
    return article(things.animal(rng))


def spot(rng: Random) -> str:
    return rng.choice(SPOTS)


# A statement about {p} with value {v}, the question for the value, the question for the person, and what {v} may be.
RELATIONS: tuple[tuple[str, str, str, Callable[[Random], str]], ...] = (
    ("{p} lives in {v}", "where does {p} live?", "who lives in {v}?", things.city),
    ("{p} lives in {v}", "where does {p} live?", "who lives in {v}?", things.city),
    ("{p} comes from {v}", "where does {p} come from?", "who comes from {v}?", things.city),
    ("{p} has the {v}", "what does {p} have?", "who has the {v}?", belonging),
    ("{p} has {v}", "[what|which] [pet|animal] does {p} have?", "who has {v}?", pet),
    ("{p} likes {v}", "what does {p} like?", "who likes {v}?", liking),
    ("{p} is {v} years old", "how old is {p}?", "who is {v} [years old|]?", years),
    ("{p} is {v}", "what is {p}'s job?", "who is {v}?", job),
    ("{p} is {v}", "where is {p}?", "who is {v}?", spot),
    ("{p} owns the {v}", "what does {p} own?", "who owns the {v}?", belonging),
    ("{p} found the {v}", "what did {p} find?", "who found the {v}?", belonging),
    ("{p} brings the {v}", "what does {p} bring?", "who brings the {v}?", belonging),
    ("{p} wants {v}", "what does {p} want?", "who wants {v}?", liking),
)


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
    if roll < 0.24:
        compared(talk)
    elif roll < 0.44:
        ranked(talk)
    elif roll < 0.51:
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
    """Three people in a row, in either order of telling; the answer writes them down in one order first."""
    rng = talk.rng
    scale = rng.choice(SCALES)
    more, most, less, least = scale if rng.random() < 0.6 else (*scale[2:], *scale[:2])
    a, b, c = people(rng, 3)
    told = [f"{{a}} is {more} than {{b}}", f"{{b}} is {more} than {{c}}"]
    if rng.random() < 0.2:
        told[1] = f"{{c}} is {less} than {{b}}"
    if rng.random() < 0.3:
        told.reverse()
    wanted, who = rng.choice(((most, a), (least, c)))
    question = f"[who|Who|and who|which one|tell me who] is [the |the |]{wanted} [of them|of all|of the three|]?"
    pattern = "[if |suppose ||||]" + "[ and |, and |. |, |; ]".join(told) + END + question
    row = f"In a row from the {most}: {a}, {b}, {c}."
    asked = ask(rng, (pattern,), {"a": a, "b": b, "c": c}, wrap=False)
    talk.say("reading", asked, f"{row} So the {wanted} is {who}.")


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
    """Two or three people with the same relation to other things: asked for one of them, and perhaps for another."""
    rng = talk.rng
    statement, for_value, for_person, value = rng.choice(RELATIONS)
    who = people(rng, rng.choice((2, 2, 3)))
    what = [value(rng) for _ in who]
    if len({one.lower() for one in what}) < len(who):
        return
    case = rng.choices((str, str.lower, str.upper), (6, 3, 0.4))[0]
    who, what = [case(one) for one in who], [case(one) for one in what]
    told = [statement.replace("{p}", f"{{p{i}}}").replace("{v}", f"{{v{i}}}") for i in range(len(who))]
    slots = {f"p{i}": one for i, one in enumerate(who)} | {f"v{i}": one for i, one in enumerate(what)}
    i, other = rng.sample(range(len(who)), 2)
    question = for_value if rng.random() < 0.6 else for_person
    asked = (
        (capital(question) if rng.random() < 0.4 else question).replace("{p}", f"{{p{i}}}").replace("{v}", f"{{v{i}}}")
    )
    replies = [
        f"You said that {statement.replace('{p}', p).replace('{v}', v)}." for p, v in zip(who, what, strict=True)
    ]
    pattern = "[. |. | and |, |, and |; ]".join(told) + END + asked
    talk.say("reading", ask(rng, (pattern,), slots, wrap=False), replies[i])
    if rng.random() < 0.3:
        again = ask(rng, ("and {p}?", "what about {p}?", "and what about {p}?"), {"p": who[other]})
        talk.say("reading", again, replies[other])
