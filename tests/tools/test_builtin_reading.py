"""Conclusions the built-in model draws from what was just said follow from it."""

from __future__ import annotations

import re
from random import Random

from tools.builtin_data import reading
from tools.builtin_data.grammar import article
from tools.builtin_data.talk import Talk


def test_who_is_at_an_end_of_a_row_follows_from_what_was_told() -> None:
    for seed in range(400):
        talk = Talk(Random(seed))
        reading.ranked(talk)
        user, answer = talk.turns[0]
        most, row, wanted, who = re.fullmatch(
            r"In a row from the (\w+): (.+)\. So the (\w+) is (.+)\.", answer
        ).groups()  # type: ignore[union-attr]
        people = row.split(", ")
        scale = next(scale for scale in reading.SCALES if most in scale)
        more, less = (scale[0], scale[2]) if scale[1] == most else (scale[2], scale[0])
        assert who == (people[0] if wanted == most else people[-1])
        for first, second in ((0, 1), (1, 2)):
            told = (
                f"{people[first]} is {more} than {people[second]}",
                f"{people[second]} is {less} than {people[first]}",
            )
            assert any(close(one, user) for one in told), (user, answer)


def close(told: str, user: str) -> bool:
    """The names stand in this order; the words between them may be mistyped."""
    first, _, _, _, second = told.split(" ")
    at = user.find(first)
    return at >= 0 and user.find(second, at + len(first)) >= 0


def test_what_is_said_of_one_of_several_was_told_of_them() -> None:
    """The answer's person and value stood side by side, and one of them was asked for."""
    for seed in range(400):
        talk = Talk(Random(seed))
        reading.related(talk)
        for _, answer in talk.turns:
            said = answer.removeprefix("You said that ").removesuffix(".")
            statement, value, person = next(
                (statement, match[2], match[1])
                for statement, *_ in reading.RELATIONS
                if (match := re.fullmatch(statement.replace("{p}", "(.+?)").replace("{v}", "(.+)"), said))
            )
            user = talk.turns[0][0]
            told = user[: user.rfind(person)] if user.count(person) > 1 else user
            assert person in told, (statement, user, answer)
            assert value in user[user.find(person) :], (statement, user, answer)


def test_articles_go_by_the_sound() -> None:
    assert [article(noun) for noun in ("owl", "unicorn", "aardvark", "ewe", "fox")] == [
        "an owl",
        "a unicorn",
        "an aardvark",
        "a ewe",
        "a fox",
    ]
