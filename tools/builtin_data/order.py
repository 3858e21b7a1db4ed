# ruff: noqa: E501 - patterns and sentences stand on one line each
"""Things that have an order: the days of the week, the months, the letters. What comes next, before, first?"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tools.builtin_data.grammar import ask, words
from tools.builtin_data.talk import Talk

DAYS = words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
MONTHS = words("January February March April May June July August September October November December")
LETTERS = list("ABCDEFGHIJKLMNOPQRSTUVWXYZ")


@dataclass(frozen=True)
class Order:
    unit: str
    items: list[str]
    whole: str
    is_circle: bool
    list_patterns: tuple[str, ...]


ORDERS = (
    Order(
        "day",
        DAYS,
        "A week has seven days: " + ", ".join(DAYS[:-1]) + " and Sunday.",
        True,
        (
            "[list|name|tell me|what are|say|give me|write down] [all |][the |][seven |7 |]days of [the|a] week",
            "[name|list|say|tell me] [all |][the |][seven|7] days[ of the week| in order|, please|]",
            "how many days [are in|are there in|does|are] a week[ have|]?",
            "what days does a week have?",
            "the days of the week [please|in order]",
        ),
    ),
    Order(
        "month",
        MONTHS,
        "A year has twelve months: " + ", ".join(MONTHS[:-1]) + " and December.",
        True,
        (
            "[list|name|tell me|what are|say|give me|write down] [all |][the |][twelve |12 |]months[ of the year| in order|, please|]",
            "[can you |please |could you |][list|name|say] [all |all of |][the |][twelve |12 |]months[ of the year|]",
            "[months|the months|all months|the twelve months|months in order][ please| of the year|]",
            "how many months [are in|are there in|does|are] a year[ have|]?",
            "what months does a year have?",
            "the months of the year [please|in order]",
        ),
    ),
    Order(
        "letter",
        LETTERS,
        ", ".join(LETTERS) + ".",
        False,
        (
            "[say|tell me|recite|list|write|give me] the [alphabet|abc|letters of the alphabet]",
            "[alphabet please|the alphabet]",
            "what are the letters of the alphabet?",
            "[can you|do you know how to] [say|recite] the [abc|alphabet]?",
        ),
    ),
)
AFTER = (
    "[what|which] {unit} [comes|is|follows] [right |directly |][after|next after] {x}?",
    "[what|which] {unit} follows [after |on |]{x}?",
    "what [comes|is|follows] [right |directly |]after {x}?",
    "what is the {unit} after {x}?",
    "after {x} comes what?",
    "[what is|what's] the next {unit} after {x}?",
    "{x} comes before [which|what] {unit}?",
)
BEFORE = (
    "[what|which] {unit} [comes|is|was|was it] [right |directly |][before] {x}?",
    "what [comes|is|was|came] [right |directly |]before {x}?",
    "what is the {unit} before {x}?",
    "before {x} comes what?",
    "{x} comes after [which|what] {unit}?",
)
NEXT_DAY = (
    "[if |][today is|it is|it's|today's] {x}[, what| what|. what|. which day| and what day] [is|will be|comes] [it |]tomorrow?",
    "what [day |]is tomorrow if today is {x}?",
    "[what|which] day is tomorrow when [today is|it is] {x}?",
    "today is {x}. tomorrow is?",
    "[suppose|say|assume|imagine] [today is|it is|it's] {x}[. |, |: ][what|which day|what day] [is|will be|do we have] tomorrow?",
    "[which|what] day [comes|is|do we have] tomorrow[, | ]if [today is|it's|it is] {x} [today|now|]?",
    "it is {x} today[, so | and |. ][tomorrow is|what is tomorrow|what day is tomorrow|tomorrow will be]?",
)
LAST_DAY = (
    "[if |][today is|it is|it's|today's] {x}[, what| what|. what|. which day] [day |]was [it |]yesterday?",
    "what [day |]was yesterday if today is {x}?",
    "today is {x}. yesterday was?",
    "[suppose|say|assume|imagine] [today is|it is|it's] {x}[. |, |: ][what|which day|what day] was yesterday?",
    "it is {x} today[, so | and |. ][yesterday was|what was yesterday|what day was yesterday]?",
)
ENDS = (("first", 0), ("last", -1), ("second", 1), ("third", 2), ("fourth", 3), ("fifth", 4))
NTH = (
    "[what|which] is the {n} {unit} [of the {in}|]?",
    "the {n} {unit} of the {in}?",
    "[name|tell me] the {n} {unit} of the {in}",
)
WITHIN = {"day": "week", "month": "year", "letter": "alphabet"}
AND_NEXT = (
    "and [after that|then|the next|the next one|next]?",
    "[then|what then|what comes then|what's next]?",
    "and after {x}?",
    "what about {x}?",
    "and {x}?",
)


def order_turns(talk: Talk) -> None:
    rng = talk.rng
    order = rng.choices(ORDERS, (7, 3, 3))[0]
    roll = rng.random()
    if roll < 0.15:
        talk.say("order", ask(rng, order.list_patterns), order.whole)
    elif roll < 0.25:
        nth(talk, order)
    elif roll < 0.60 and order.unit == "day":
        tomorrow(talk)
    else:
        neighbours(talk, order)


def nth(talk: Talk, order: Order) -> None:
    rng = talk.rng
    word, at = rng.choice(ENDS)
    patterns = [filled(p, order.unit).replace("{n}", word).replace("{in}", WITHIN[order.unit]) for p in NTH]
    talk.say("order", ask(rng, patterns), f"The {word} {order.unit} is {order.items[at]}.")


def tomorrow(talk: Talk) -> None:
    rng, at = talk.rng, talk.rng.randrange(7)
    is_next = rng.random() < 0.6
    day = DAYS[(at + 1) % 7] if is_next else DAYS[at - 1]
    asked = ask(rng, NEXT_DAY if is_next else LAST_DAY, {"x": in_some_case(rng, DAYS[at])})
    talk.say("order", asked, f"Today is {DAYS[at]}, so {'tomorrow is' if is_next else 'yesterday was'} {day}.")


def neighbours(talk: Talk, order: Order) -> None:
    """What comes after one, or before it, and then after the next."""
    rng = talk.rng
    step = 1 if rng.random() < 0.65 else -1
    span = range(len(order.items)) if order.is_circle else range(1, len(order.items) - 1)
    at = rng.choice(span)
    patterns = [filled(p, order.unit) for p in (AFTER if step == 1 else BEFORE)]
    talk.say("order", ask(rng, patterns, {"x": in_some_case(rng, order.items[at])}), said(order, at, step))
    while step == 1 and rng.random() < 0.3:
        at += 1
        if not order.is_circle and at >= len(order.items) - 1:
            return
        talk.say("order", ask(rng, AND_NEXT, {"x": in_some_case(rng, item(order, at))}), said(order, at, step))


def item(order: Order, at: int) -> str:
    return order.items[at % len(order.items)]


def said(order: Order, at: int, step: int) -> str:
    return f"{'After' if step == 1 else 'Before'} {item(order, at)} comes {item(order, at + step)}."


def filled(pattern: str, unit: str) -> str:
    return pattern.replace("{unit}", unit)


def in_some_case(rng: Random, word: str) -> str:
    return word.lower() if rng.random() < 0.5 else word
