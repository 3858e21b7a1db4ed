"""How many of one thing make another: minutes, hours, weeks, a dozen."""

from __future__ import annotations

from tools.builtin_data.grammar import article, ask, capital
from tools.builtin_data.talk import Talk

UNITS = (
    ("minute", "seconds", "60"),
    ("hour", "minutes", "60"),
    ("day", "hours", "24"),
    ("year", "weeks", "52"),
    ("year", "days", "365"),
    ("dozen", "things", "twelve"),
    ("pair", "things", "two"),
    ("century", "years", "100"),
    ("decade", "years", "ten"),
    ("metre", "centimetres", "100"),
    ("kilometre", "metres", "1000"),
    ("kilogram", "grams", "1000"),
)
PATTERNS = (
    "how many {many} [are in|are there in|make|are|fit in] {one}?",
    "how many {many} does {one} have?",
    "[number of|the number of] {many} in {one}",
    "{one} has how many {many}?",
)


def unit_turn(talk: Talk) -> None:
    rng = talk.rng
    unit, many, count = rng.choice(UNITS)
    one = "an hour" if unit == "hour" else article(unit)
    patterns = [pattern.replace("{many}", many).replace("{one}", one) for pattern in PATTERNS]
    talk.say("unit", ask(rng, patterns), f"{capital(one)} has {count} {many}.")
