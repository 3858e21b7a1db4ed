# ruff: noqa: E501 - patterns and sentences stand on one line each
"""Telling the model things about oneself, correcting them, and asking for them turns later."""

from __future__ import annotations

from random import Random

from tools.builtin_data.fact import Fact, called, sentence
from tools.builtin_data.grammar import answer, ask, first_of
from tools.builtin_data.kin import KIN, PETS, WITH_A_LIFE, age_of, home_of, job_of, likes_of
from tools.builtin_data.own_facts import AGE, FROM, JOB, LIVES
from tools.builtin_data.own_name import BARE, CORRECTED, CORRECTIONS, GREET_ME, IS_IT, NAME
from tools.builtin_data.talk import Talk
from tools.builtin_data.tastes import DISLIKES, LIKES
from tools.builtin_data.typing_noise import typo
from tools.builtin_data.your_facts import FACTS, FAVOURITES, fact_of, open_possession, what_is_known

WEIGHTS = [fact.weight for fact in FACTS]
ABOUT_ME = (
    "what do you [know|remember] about me?",
    "what have i told you [about me|about myself|so far|]?",
    "what do you remember [about me|so far|]?",
    "tell me [everything|what you know|what you remember] about me",
    "what did i tell you [about me|about myself|]?",
    "[summarize|list|repeat] what you know about me",
    "do you remember [anything about me|me|what i told you]?",
    "do you know [anything about me|me]?",
    "[list|tell me] everything i told you",
    "what facts do you know about me?",
    "what do you know of me [so far|]?",
    "[so|ok|and][, | ]what do you know about me?",
)
NAME_AND_WHO = (
    "[i'm|i am|im|my name is|my name's] {v}[, | ][who are you|and who are you|and you|what is your name|what's yours|and what is your name|what's your name|who are you]?",
    "[hi|hello|hey], [i'm|i am|im|my name is] {v}. [who are you|and you|what is your name|what's yours|what's your name]?",
)
NAME_AND_WHO_ANSWER = ("Nice to meet you, {v}! I am the tiny model built into localrun.",)
OTHER_CORRECTIONS = (
    "[actually|no|sorry|wait|oh|oops|correction|i mean|i meant|no, sorry][,|:|] [it's|it is|its|that should be|make that|] {v}",
    "[no|sorry|oops][, | ]i meant {v}",
    "not {w}, {v}",
    "[change|correct] that to {v}",
    "it's {v}, not {w}",
)
CALLED_WHAT = (
    "what is [its|his|her|the] name [again|]?",
    "what[ is|'s] [it|he|she] called?",
    "and [its|his|her] name [was|is]?",
)
WHAT_WAS_IT = (
    "[and |]what was [it|that] [again|]?",
    "what did i just tell you?",
    "[can you|please] repeat [that|it|what i told you]?",
    "what do you remember now?",
    "what did i ask you to remember?",
)
NEVER_TOLD = (
    "[right|true|yes|well|of course not|ok|indeed|haha true|fair enough|oh][, |. | ][i have not told you yet|i did not tell you|you can't know it|how could you|i haven't said it]",
    "[you cannot know|how should you know|i have not said it yet|i forgot to tell you|because i did not say|i didn't say it so far]",
)
MOST_LISTED = 4
INTRODUCTIONS = (
    "my name is {v}",
    "[i'm|i am|im] {v}",
    "[hi|hello|hey][, | ][i'm|i am|im|my name is] {v}",
    "call me {v}",
)
JOIN = "[ and |, and |. |, |! |; | and ]"
PAIRS: tuple[tuple[Fact, Fact], ...] = tuple(
    (own, of(noun))
    for own, of in ((AGE, age_of), (LIVES, home_of), (JOB, job_of), (LIKES, likes_of))
    for noun in WITH_A_LIFE
) + tuple((NAME, called(noun)) for noun in KIN + PETS)


def told(talk: Talk, key: str, value: str) -> None:
    talk.facts.pop(key, None)
    talk.facts[key] = value


def tell(talk: Talk, fact: Fact | None = None) -> None:
    rng = talk.rng
    fact = fact or (open_possession(rng) if rng.random() < 0.15 else rng.choices(FACTS, WEIGHTS)[0])
    if fact is NAME and "name" not in talk.facts and rng.random() < 0.06:
        value = fact.value(rng)
        told(talk, fact.key, value)
        talk.say("tell", ask(rng, NAME_AND_WHO, {"v": value}), answer(rng, NAME_AND_WHO_ANSWER, {"v": value}))
        return
    tell_plainly(talk, fact)
    if rng.random() < 0.08:
        correct(talk, fact)


def tell_plainly(talk: Talk, fact: Fact, value: str = "") -> None:
    """This fact in a message of its own, with this value or with any; a second name corrects the first."""
    rng, value = talk.rng, value or fact.value(talk.rng)
    replies = CORRECTED if fact is NAME and "name" in talk.facts else fact.told
    told(talk, fact.key, value)
    about = fact.about.replace("{v}", value)
    # "my bag" of the user is "your bag" to the model.
    asked = {"v": value.replace(" your ", " my ")}
    talk.say("tell", ask(rng, fact.tell, asked, wrap=False), answer(rng, replies, {"v": value, "about": about}))


def correct(talk: Talk, fact: Fact) -> None:
    """The fact just told, told otherwise: `no, blue`."""
    rng, old = talk.rng, talk.facts[fact.key]
    value = fact.value(rng)
    told(talk, fact.key, value)
    slots = {"v": value.replace(" your ", " my "), "w": old.replace(" your ", " my ")}
    if fact is NAME:
        talk.say("tell", ask(rng, CORRECTIONS, slots, wrap=False), answer(rng, CORRECTED, slots))
    else:
        about = sentence(fact.about.replace("{v}", value))
        talk.say("tell", ask(rng, OTHER_CORRECTIONS, slots, wrap=False), "All right: " + about[:1].lower() + about[1:])


def tell_and_ask(talk: Talk) -> None:
    """A fact and the question for it, in one message or in two in a row."""
    rng = talk.rng
    fact = NAME if rng.random() < 0.5 else rng.choices(FACTS, WEIGHTS)[0]
    value = fact.value(rng)
    told(talk, fact.key, value)
    about, asked = fact.about.replace("{v}", value), {"v": value.replace(" your ", " my ")}
    if rng.random() < 0.5:
        patterns = [f"{tell}[. |! |, |. so, |. now, |; ]{query}" for tell in fact.tell[:6] for query in fact.query[:8]]
        talk.say("recall", ask(rng, patterns, asked, wrap=False), sentence(about))
        return
    talk.say("tell", ask(rng, fact.tell, asked, wrap=False), answer(rng, fact.told, {"v": value, "about": about}))
    talk.say("recall", ask(rng, CALLED_WHAT if "is called {v}" in fact.about else WHAT_WAS_IT), sentence(about))


def rename(talk: Talk) -> None:
    """The name, corrected some turns after it was told; or told at last, where it was not."""
    if "name" in talk.facts:
        correct(talk, NAME)
    else:
        tell(talk, NAME)


def tell_several(talk: Talk) -> None:
    """Two or three things in a single message, with or without the name, and perhaps asked for at once."""
    rng = talk.rng
    facts = several(rng)
    tell_at_once(talk, facts)
    if rng.random() < 0.4:
        say_known(talk, rng.choice(facts))
    elif rng.random() < 0.3 and len(talk.facts) <= MOST_LISTED:
        talk.say("about_me", ask(rng, ABOUT_ME), what_is_known(talk.facts))


def tell_at_once(talk: Talk, facts: list[Fact], values: list[str] | None = None) -> None:
    """These facts in a single message, with these values or with any."""
    rng = talk.rng
    values = values or some_values(rng, facts)
    patterns, slots = [], {}
    for i, (fact, value) in enumerate(zip(facts, values, strict=True)):
        told(talk, fact.key, value)
        forms = INTRODUCTIONS if fact is NAME else fact.tell[:5]
        patterns.append(rng.choice(forms).replace("{v}", f"{{v{i}}}"))
        slots[f"v{i}"] = value.replace(" your ", " my ")
    rest = [f.about.replace("{v}", v) for f, v in zip(facts, values, strict=True) if f is not NAME]
    about = "I will remember that " + ", that ".join(rest[:-1]) + (" and that " if rest[1:] else "") + rest[-1] + "."
    hello = f"Nice to meet you, {talk.facts['name']}!" if NAME in facts else "Good to know!"
    talk.say("tell", ask(rng, (JOIN.join(patterns),), slots, wrap=False), f"{hello} {about}")


def some_values(rng: Random, facts: list[Fact]) -> list[str]:
    values = [fact.value(rng) for fact in facts]
    if NAME in facts and facts[-1].key.endswith("'s name") and len(values[0]) > 2 and rng.random() < 0.3:
        values[-1] = typo(rng, values[0])  # two names that differ by a letter
    return values


def several(rng: Random) -> list[Fact]:
    """Two to four facts in any order; often the same kind of thing of two people, which must not be mixed up."""
    roll = rng.random()
    if roll < 0.25:
        facts = list(rng.choice(PAIRS))
    elif roll < 0.5:
        facts = [NAME, *rng.sample((AGE, LIVES, FROM, JOB, LIKES, DISLIKES), rng.choice((2, 2, 2, 3)))]
    elif roll < 0.62:
        facts = [NAME, rng.choice((LIKES, LIKES, AGE, JOB, LIVES, FROM, *FAVOURITES[:3]))]
    else:
        facts = [NAME] if rng.random() < 0.6 else []
        while len(facts) < 2 or (len(facts) < 3 and rng.random() < 0.45):
            fact = open_possession(rng) if rng.random() < 0.15 else rng.choices(FACTS[1:], WEIGHTS[1:])[0]
            if fact.key not in [known.key for known in facts]:
                facts.append(fact)
    if rng.random() < 0.3:
        rng.shuffle(facts)
    return facts


def recall(talk: Talk) -> None:
    """Ask for something that was told, or (less often) for something that was not."""
    rng = talk.rng
    if rng.random() < 0.11 and len(talk.facts) <= MOST_LISTED:
        talk.say("about_me", ask(rng, ABOUT_ME), what_is_known(talk.facts))
        return
    known = list(talk.facts)
    if known and rng.random() < 0.85:
        key = "name" if "name" in talk.facts and rng.random() < 0.45 else rng.choice(known)
        if key == "name" and rng.random() < 0.12:
            (is_it if rng.random() < 0.7 else greet_by_name)(talk)
        else:
            say_known(talk, fact_of(key))
    else:
        fact = open_possession(rng) if rng.random() < 0.15 else rng.choices(FACTS, WEIGHTS)[0]
        if fact.key not in talk.facts:
            talk.say("recall_unknown", ask(rng, fact.query), fact.unknown)
            if fact is NAME and rng.random() < 0.5:
                answer_name(talk)


def say_known(talk: Talk, fact: Fact) -> None:
    about = fact.about.replace("{v}", talk.facts[fact.key])
    talk.say("recall", ask(talk.rng, fact.query), sentence(about))


def is_it(talk: Talk) -> None:
    """`is my name Tim?`"""
    rng, name = talk.rng, talk.facts["name"]
    right = rng.random() < 0.5
    guess = name if right else NAME.value(rng)
    said = ask(rng, IS_IT, {"w": guess})
    talk.say("recall", said, f"{'Yes' if right or guess == name else 'No'}, your name is {name}.")


def greet_by_name(talk: Talk) -> None:
    talk.say("greet_by_name", ask(talk.rng, GREET_ME), f"Hello, {talk.facts['name']}!")


def answer_name(talk: Talk) -> None:
    """The model has just asked for the name, so a lone word is one."""
    rng, name = talk.rng, NAME.value(talk.rng)
    if rng.random() < 0.2:
        talk.say("talk:never_told", ask(rng, NEVER_TOLD), "That is true. Tell me, and I will remember it.")
    told(talk, "name", name)
    talk.say("tell", ask(rng, BARE, {"v": name}, wrap=False), answer(rng, NAME.told, {"v": name}))
    if rng.random() < 0.4:
        say_known(talk, NAME)


def ask_back(talk: Talk) -> None:
    """A greeting answered by a question for the name, and the answer to it."""
    rng = talk.rng
    hello = ask(rng, ("[hi|hello|hey|good morning|hello there|hi there|hey there|yo]",), wrap=False)
    talk.say("talk:hello", hello, first_of(rng, ("Hello! Nice to meet you. What is your name?",)))
    answer_name(talk)
