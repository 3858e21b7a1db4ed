# ruff: noqa: E501 - patterns and sentences stand on one line each
"""Where the user has put their keys, their car, their umbrella."""

from __future__ import annotations

from random import Random

from tools.builtin_data.fact import Fact
from tools.builtin_data.grammar import words
from tools.builtin_data.made_up import nonsense_word

SPOTS = (
    "on the table",
    "in the drawer",
    "under the bed",
    "in my bag",
    "on the shelf",
    "behind the door",
    "in the car",
    "next to the lamp",
    "in the kitchen",
    "under the sofa",
    "in the garage",
    "on the desk",
    "in the fridge",
    "by the window",
)
KEPT = (
    "keys",
    "glasses",
    "phone",
    "passport",
    "wallet",
    "car",
    "bike",
    "umbrella",
    "book",
    "hat",
    "bag",
    "shoes",
    "ticket",
    "ring",
)


NOUNS = words(
    """
    box cupboard attic cellar garden hall office church fridge bench tree house station bridge river school shop table
    couch oven piano fence barn tent pool bakery hotel library mirror clock vase basket chest wardrobe bathtub stairs
    """
)


def spot(rng: Random) -> str:
    if rng.random() < 0.4:
        return rng.choice(SPOTS).replace(" my ", " your ")
    where = nonsense_word(rng) if rng.random() < 0.3 else rng.choice(NOUNS)
    return f"{rng.choice(('in', 'under', 'behind', 'near', 'on', 'next to', 'in front of', 'by', 'at'))} the {where}"


def kept(thing: str) -> Fact:
    """Where the user has put something."""
    verb = "are" if thing in ("keys", "glasses", "shoes") else "is"
    return Fact(
        f"place of {thing}",
        (
            f"my {thing} {verb} {{v}}",
            f"i [put|left|keep|hid|lay|laid|dropped|have] my {thing} {{v}}",
            f"[remember|note|remember that|don't forget that] my {thing} {verb} {{v}}",
            f"the {thing} {verb} {{v}}",
            f"i parked [my|the] {thing} {{v}}"
            if thing in ("car", "bike")
            else f"i [stored|saw|placed] my {thing} {{v}}",
        ),
        (
            f"where {verb} my {thing}?",
            f"where [did i put|did i leave|do i keep|have i put|did i hide] my {thing}?",
            f"do you [know|remember] where my {thing} {verb}?",
            f"i [can't find|am looking for|lost] my {thing}[, where {verb} {'they' if verb == 'are' else 'it'}|. where {verb} {'they' if verb == 'are' else 'it'}]?",
            f"wheres my {thing}?",
            f"tell me where my {thing} {verb}",
        ),
        f"your {thing} {verb} {{v}}",
        f"You have not told me where your {thing} {verb}.",
        spot,
        weight=0.25,
    )
