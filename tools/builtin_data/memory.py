# ruff: noqa: E501 - patterns and sentences stand on one line each
"""Telling the model things about oneself, correcting them, and asking for them turns later."""

from __future__ import annotations

from tools.builtin_data.fact import Fact, sentence
from tools.builtin_data.grammar import answer, ask, first_of
from tools.builtin_data.own_name import BARE, CORRECTED, CORRECTIONS, GREET_ME, IS_IT, NAME
from tools.builtin_data.talk import Talk
from tools.builtin_data.your_facts import FACTS, fact_of, open_possession

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
KNOW_NOTHING = "You have not told me anything about yourself yet."
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
MOST_LISTED = 4


def told(talk: Talk, key: str, value: str) -> None:
    talk.facts.pop(key, None)
    talk.facts[key] = value


def tell(talk: Talk, fact: Fact | None = None) -> None:
    rng = talk.rng
    fact = fact or (open_possession(rng) if rng.random() < 0.15 else rng.choices(FACTS, WEIGHTS)[0])
    value = fact.value(rng)
    told(talk, fact.key, value)
    if fact is NAME and rng.random() < 0.06:
        talk.say("tell", ask(rng, NAME_AND_WHO, {"v": value}), answer(rng, NAME_AND_WHO_ANSWER, {"v": value}))
        return
    about = fact.about.replace("{v}", value)
    # "my bag" of the user is "your bag" to the model.
    asked = {"v": value.replace(" your ", " my ")}
    talk.say("tell", ask(rng, fact.tell, asked, wrap=False), answer(rng, fact.told, {"v": value, "about": about}))
    if rng.random() < 0.08:
        correct(talk, fact)


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


def rename(talk: Talk) -> None:
    """The name, corrected some turns after it was told; or told at last, where it was not."""
    if "name" in talk.facts:
        correct(talk, NAME)
    else:
        tell(talk, NAME)


def tell_two(talk: Talk) -> None:
    """Name and one more thing in a single message."""
    rng = talk.rng
    other = open_possession(rng) if rng.random() < 0.15 else rng.choices(FACTS[1:], WEIGHTS[1:])[0]
    name, value = NAME.value(rng), other.value(rng)
    told(talk, "name", name)
    told(talk, other.key, value)
    first = rng.choice(("my name is {v}", "[i'm|i am|im] {v}", "[hi|hello|hey][, | ][i'm|i am|im|my name is] {v}"))
    second = rng.choice(other.tell[:4]).replace("{v}", "{w}")
    join = "[ and |, and |. |, |! ]"
    both = (first + join + second, first + join + second, second + join + first)
    slots = {"v": name, "w": value.replace(" your ", " my ")}
    about = other.about.replace("{v}", value)
    talk.say(
        "tell",
        ask(rng, both, slots, wrap=False),
        answer(rng, ("Nice to meet you, {v}! I will remember that {about}.",), {"v": name, "about": about}),
    )


def recall(talk: Talk) -> None:
    """Ask for something that was told, or (less often) for something that was not."""
    rng = talk.rng
    if rng.random() < 0.06 and len(talk.facts) <= MOST_LISTED:
        talk.say("about_me", ask(rng, ABOUT_ME), what_is_known(talk.facts))
        return
    known = list(talk.facts)
    if known and rng.random() < 0.85:
        key = "name" if "name" in talk.facts and rng.random() < 0.45 else rng.choice(known)
        fact = fact_of(key)
        if fact is NAME and rng.random() < 0.12:
            (is_it if rng.random() < 0.7 else greet_by_name)(talk)
            return
        talk.say("recall", ask(rng, fact.query), sentence(fact.about.replace("{v}", talk.facts[key])))
    else:
        fact = open_possession(rng) if rng.random() < 0.15 else rng.choices(FACTS, WEIGHTS)[0]
        if fact.key not in talk.facts:
            talk.say("recall_unknown", ask(rng, fact.query), fact.unknown)
            if fact is NAME and rng.random() < 0.5:
                answer_name(talk)


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
    told(talk, "name", name)
    talk.say("tell", ask(rng, BARE, {"v": name}, wrap=False), answer(rng, NAME.told, {"v": name}))


def ask_back(talk: Talk) -> None:
    """A greeting answered by a question for the name, and the answer to it."""
    rng = talk.rng
    hello = ask(rng, ("[hi|hello|hey|good morning|hello there|hi there|hey there|yo]",), wrap=False)
    talk.say("talk:hello", hello, first_of(rng, ("Hello! Nice to meet you. What is your name?",)))
    answer_name(talk)


def what_is_known(facts: dict[str, str]) -> str:
    if not facts:
        return KNOW_NOTHING
    parts = [fact_of(key).about.replace("{v}", value) for key, value in facts.items()]
    listed = parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]
    return sentence(listed)
