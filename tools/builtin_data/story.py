"""One story: who it is about, and its text in full, in brief, and a little further."""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random

from tools.builtin_data import things
from tools.builtin_data.grammar import article, expand, first_of, words
from tools.builtin_data.plots import BRIEF, EPILOGUE, PLOTS, Plot

HEROES = words(
    """
    Pip Milo Luna Toby Nelly Oscar Poppy Hugo Tilly Bruno Daisy Felix Ruby Otto Hazel Max Rosie Finn Molly Barney
    Willow Jasper Penny Theo Clover Rufus Maisie Gus Ivy Benny
    """
)
PLACES = (
    "the forest",
    "the old garden",
    "the river",
    "the quiet hills",
    "the green valley",
    "a little village",
    "the sea",
    "the big meadow",
    "the snowy mountains",
    "the old mill",
)
SOMEBODY = "traveller"  # what a hero is of whom only the name is known


@dataclass(frozen=True)
class Story:
    hero: str
    kind: str
    friend: str
    plot: Plot
    place: str
    quality: str = ""
    friend_name: str = ""

    @property
    def slots(self) -> dict[str, str]:
        named = f" named {self.friend_name}" if self.friend_name else ""
        is_twin = self.friend == self.kind
        return {
            "n": self.hero,
            "a": self.kind,
            "A": article(f"{self.quality} {self.kind}".strip()),
            "f": f"another {self.friend}" if is_twin else article(self.friend) + named,
            "g": f"other {self.friend}" if is_twin else self.friend,
            "place": self.place,
        }


def new_story(rng: Random, kind: str = "", hero: str = "", friend: str = "", place: str = "") -> Story:
    kind = kind or first_of(rng, things.ANIMALS[:80])
    friend = friend or first_of(rng, [name for name in things.ANIMALS[:60] if name != kind])
    return Story(hero or first_of(rng, HEROES), kind, friend, first_of(rng, PLOTS), place or first_of(rng, PLACES))


def filled(rng: Random, line: str, story: Story) -> str:
    """A sentence of this story; a name stays in the case it was given in, even where a sentence begins with it."""
    text = expand(rng, line, first_of)
    said = re.sub(r"\{(\w+)\}", lambda m: story.slots[m.group(1)], text)
    return said if text.startswith("{n}") else said[:1].upper() + said[1:]


def told(rng: Random, story: Story, keep: float = 0.7) -> str:
    """The story as text; `keep` is the chance of each sentence that may be left out."""
    lines = [line for line in story.plot.lines if not line.startswith("?") or rng.random() < keep]
    return " ".join(filled(rng, line.removeprefix("?"), story) for line in lines)


def in_brief(rng: Random, story: Story) -> str:
    return filled(rng, first_of(rng, BRIEF), story)


def continued(rng: Random, story: Story) -> str:
    return filled(rng, first_of(rng, EPILOGUE), story)
