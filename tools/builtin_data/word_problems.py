# ruff: noqa: E501 - patterns and sentences stand on one line each
"""Sums told as small stories: apples bought, eaten, shared and packed into bags."""

from __future__ import annotations

from tools.builtin_data import names
from tools.builtin_data.arithmetic import solve, written
from tools.builtin_data.grammar import ask, words
from tools.builtin_data.made_up import nonsense_word
from tools.builtin_data.talk import Talk

THINGS = words(
    """
    apples books coins eggs pears cats cookies euros dollars balls marbles candies sweets pencils stickers oranges
    flowers birds cards stamps shells cups bananas chairs hats fish toys keys bottles cakes stones
    """
)
LEFT = (
    "[. |, |; ]how many {t} [are left|are left now|do i have left|do i have|remain|have i got left|left|are there now]?"
)
NOW = "[. |, |; ]how many {t} [do i have|do i have now|do i have in total|have i got now|have i got|are there|does that make|are there now|now]?"
NOW_THEY = "[. |, |; ]how many {t} [does {p} have|does {p} have now|has {p} got|are there now]?"
LEFT_THEY = "[. |, |; ]how many {t} [are left|does {p} have left|does {p} have|remain|does {p} have now|left]?"
PROBLEMS = {
    "+": (
        "i have {a} {t} and [get|buy|find|receive|pick|make|am given] {b} more" + NOW,
        "[if|when|suppose|say] i have {a} {t} and [someone gives me|you give me|i get|i buy|i find|a friend gives me] {b} more"
        + NOW,
        "i had {a} {t}. [then i bought|i bought|i found|i got|my mom gave me|you give me] {b} [more|]" + NOW,
        "{p} has {a} {t} and [gets|buys|finds|wins] {b} more" + NOW_THEY,
        "{p} has {a} {t}. {q} [gives {p}|brings {p}] {b} more" + NOW_THEY,
        "there are {a} {t} on the [table|tree|shelf] and {b} [more |]on the [floor|ground|chair]. how many {t} [are there|are there in total|in total|together]?",
        "{p} has {a} {t} and {q} has {b} {t}. how many [{t} |][do they have together|do they have|together|in total]?",
    ),
    "-": (
        "i have {a} {t} and [give away|eat|lose|sell|spend|break|throw away|use] {b}" + LEFT,
        "[if|when|suppose|say] i have {a} {t} and [lose|eat|give away|sell|i lose|i eat|i give away|you take] {b}"
        + LEFT,
        "i had {a} {t}. [then i lost|i lost|i ate|i gave away|i sold|my dog ate] {b}[ of them|]" + LEFT,
        "{p} has {a} {t} and [loses|eats|gives away|sells|gives {q}] {b}" + LEFT_THEY,
        "there are {a} {t} [on the table|in the box|in a tree]. {b} [fall down|are eaten|are sold|go away|disappear|fly away]. how many [{t} |][are left|remain|are there now]?",
    ),
    "×": (
        "there are {a} [boxes|bags|baskets|shelves] with {b} {t} [each|in each|in every one][. |, ]how many {t} [are there|in total|are there in total|all together]?",
        "{a} [children|friends|people|kids] have {b} {t} each[. |, ]how many {t} [are there|do they have|in total|together]?",
        "i [buy|have] {a} [bags|boxes|packs] of {b} {t}[. |, ]how many {t} [do i have|is that|in total|are there]?",
        "[what|how much] do {a} {t} cost if [one costs|each costs|one is] {b} [dollars|euros|]?",
        "[if |]{t} cost {b} [dollars|euros] each[, |. ][what|how much] do {a} [{t} |]cost?",
        "[one|a|each] [book|ticket|cake|ball] costs {b} [dollars|euros][. |, ][what|how much] [do|would] {a} [of them|] cost?",
    ),
    "/": (
        "{b} [friends|children|people|kids] share {a} {t}[. |, ][how many does each get|how many {t} does each get|how many for each]?",
        "i [share|divide|split] {a} {t} [among|between] {b} [friends|children|people][. |, ]how many [does each get|for each|{t} does each get]?",
    ),
}


def word_problem(talk: Talk) -> None:
    rng = talk.rng
    op = rng.choices("+-×/", (5, 5, 3, 2))[0]
    top = rng.choice((10, 10, 20, 50))
    a, b = rng.randint(1, top), rng.randint(1, top)
    if op == "-":
        a, b = max(a, b), min(a, b)
    elif op == "×":
        a, b = rng.randint(2, 10), rng.randint(2, 10)
    elif op == "/":
        b = rng.randint(2, 6)
        a = b * rng.randint(2, 10)
    spelt = rng.random() < 0.2
    thing = rng.choice(THINGS) if rng.random() < 0.85 else nonsense_word(rng) + "s"
    slots = {"a": written(rng, a, spelt), "b": written(rng, b, spelt), "t": thing}
    slots |= {"p": names.one_word_name(rng), "q": names.one_word_name(rng)}
    talk.say("sum", ask(rng, PROBLEMS[op], slots, wrap=rng.random() < 0.3), *solve(a, op, b))
