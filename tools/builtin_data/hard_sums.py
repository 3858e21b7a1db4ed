# ruff: noqa: E501 - patterns and sentences stand on one line each
"""Sums beyond the model: long numbers, roots, equations, conversions."""

from __future__ import annotations

from tools.builtin_data.grammar import ask, first_of
from tools.builtin_data.sum_phrases import HOW_MUCH
from tools.builtin_data.talk import Talk

TOO_HARD = (
    "{h} [+|-|*|/|plus|minus|times|divided by] {g}",
    HOW_MUCH + " {h} [+|-|*|/|plus|minus|times|divided by|×] {g}",
    "{g}[+|-|*|/]{h}",
    HOW_MUCH + " {x}[ * |*| x | times |×]{y}",
    "{x}[ * |*| x | times ]{y}",
    "{x}[ * |*| x | times ]{y}",
    HOW_MUCH + " the [square root|cube root|logarithm|factorial|sine|cosine|derivative] of {a}",
    "{p}% of {h}",
    "what is {p} percent of {h}?",
    HOW_MUCH + " {a}.{b} [+|-|*|plus|times] {b}.{c}",
    "solve [x + {a} = {b}|{a}x = {b}|x^2 + {a}x + {b} = 0|2x + {a} = {b}|for x: {a}x + {b} = {c}]",
    HOW_MUCH + " {a}^{b}",
    "is {h} a prime number?",
    "what is [the value of |][pi|e|the golden ratio|infinity]?",
    "what is the integral of [x|x^2|sin x|{a}x]?",
    "({a}+{b})*{c}",
    "{a}!",
    "sqrt({a})",
    "convert {a} [miles|pounds|feet|dollars|celsius|inches] to [km|kilos|meters|euros|fahrenheit|cm]",
    "how many [seconds|minutes|hours|days] are in {a} [hours|days|weeks|years]?",
    "{h} + {a} = ?",
    "what is the average of {a}, {b} and {c}?",
    "what is {a} to the power of {b}?",
    "how many prime numbers are below {h}?",
)
TOO_HARD_ANSWERS = (
    "That is beyond me: I only do small sums with two numbers of up to two digits. A bigger model can: `localrun pull qwen3-4b`.",
    "I can only do small sums with two numbers, such as 7 + 5. For harder ones, try `localrun pull qwen3-4b`.",
)


def too_hard(talk: Talk) -> None:
    rng = talk.rng
    slots = {name: str(rng.randint(2, 99)) for name in "abc"}
    slots |= {"x": str(rng.randint(21, 99)), "y": str(rng.randint(21, 99))}
    slots |= {"h": str(rng.randint(101, 99999)), "g": str(rng.randint(2, 9999)), "p": str(rng.randint(1, 99))}
    talk.say("too_hard", ask(rng, TOO_HARD, slots), first_of(rng, TOO_HARD_ANSWERS))
