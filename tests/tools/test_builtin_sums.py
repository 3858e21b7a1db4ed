"""The sums, rows and comparisons the built-in model learns are right."""

from __future__ import annotations

import re
from itertools import islice, pairwise
from random import Random

import pytest

from tools.builtin_data import (
    arithmetic,
    counting,
    logic,
    order,
    word_problems,
)
from tools.builtin_data.compose import chats
from tools.builtin_data.grammar import plural
from tools.builtin_data.talk import Talk
from tools.builtin_tokenizer import (
    Chat,
)

N_CHATS = 3000


@pytest.fixture(scope="module")
def sample() -> list[Chat]:
    return list(islice(chats(seed=5), N_CHATS))


def test_a_count_goes_back_the_way_it_came() -> None:
    for seed in range(300):
        talk = Talk(Random(seed))
        counting.count_and_back(talk)
        up, down = ([int(n) for n in answer.rstrip(".").split(", ")] for _, answer in talk.turns)
        assert down == up[::-1]
        assert all(b == a + 1 for a, b in pairwise(up))


def test_a_number_less_itself_is_nothing() -> None:
    for seed in range(200):
        talk = Talk(Random(seed))
        arithmetic.nothing_left(talk)
        assert re.fullmatch(r"(\d+) - \1( = (\d+) - \3)? = 0\.", talk.turns[0][1])


def test_every_sum_is_right(sample: list[Chat]) -> None:
    """Every part between the equals signs of an answer has the same value."""
    checked = worked = 0
    for m in (m for chat in sample for m in chat if m.role == "assistant"):
        if found := re.fullmatch(r"(\d+) / (\d+): (.+), so \1 / \2 = (\d+)(?: remainder (\d+))?\.", m.content):
            a, b, working, result, rest = (found[1], found[2], found[3], found[4], found[5] or "0")
            assert divmod(int(a), int(b)) == (int(result), int(rest))
            assert all(eval(step.replace("×", "*").replace("=", "==")) for step in working.split(", ")), m.content
            checked += 1
        elif re.fullmatch(r"\d+ [-+×] \d+( = -?\(?\d+ [-+] \d+\)?)* = -?\d+\.", m.content):
            parts = m.content.rstrip(".").replace("×", "*").split(" = ")
            assert len({eval(part) for part in parts}) == 1, m.content
            checked += 1
            worked += len(parts) == 3
    assert checked > 500
    assert worked > 50


@pytest.mark.parametrize(
    ("a", "op", "b", "text"),
    [
        (36, "+", 47, "36 + 47 = 70 + 13 = 83."),
        (81, "-", 27, "81 - 27 = 61 - 7 = 54."),
        (47, "×", 4, "47 × 4 = 160 + 28 = 188."),
        (12, "×", 12, "12 × 12 = 144."),
        (7, "+", 5, "7 + 5 = 12."),
        (40, "-", 30, "40 - 30 = 10."),
        (13, "-", 16, "13 - 16 = -(16 - 13) = -(6 - 3) = -3."),
        (20, "-", 46, "20 - 46 = -(46 - 20) = -26."),
        (83, "/", 11, "83 / 11: 7 × 11 = 77, 83 - 77 = 6, so 83 / 11 = 7 remainder 6."),
        (81, "/", 9, "81 / 9: 9 × 9 = 81, so 81 / 9 = 9."),
    ],
)
def test_longer_sums_are_worked_by_tens_and_ones(a: int, op: str, b: int, text: str) -> None:
    assert arithmetic.solve(a, op, b)[0] == text


def test_chains_comparisons_and_rows_are_right(sample: list[Chat]) -> None:
    said = [m.content for chat in sample for m in chat if m.role == "assistant"]
    chains = [re.fullmatch(r"([\d +-]+) = (\d+), and (\2 .+) = (\d+)\.", text) for text in said]
    for chain in (found.groups() for found in chains if found):
        assert (eval(chain[0]), eval(chain[2])) == (int(chain[1]), int(chain[3]))
    compared = [re.fullmatch(r"(\d+) ([<>]) (\d+), so (.+)\.", text) for text in said]
    for a, sign, b, so in (found.groups() for found in compared if found):
        assert (int(a) > int(b)) == (sign == ">")
        assert so in ("yes", "no", f"{max(int(a), int(b))} is greater", f"{min(int(a), int(b))} is smaller")
    rows = [text.rstrip(".").split(", ") for text in said if re.fullmatch(r"\d+(, \d+){4,}\.", text)]
    for numbers in rows:
        assert len({int(b) - int(a) for a, b in pairwise(numbers)}) == 1
    assert min(sum(map(bool, chains)), sum(map(bool, compared)), len(rows)) > 5


def test_a_row_of_numbers_goes_on_as_it_began() -> None:
    for seed in range(200):
        talk = Talk(Random(seed))
        counting.sequence(talk)
        user, answer = talk.turns[0]
        numbers = [int(n) for n in re.findall(r"-?\d+", user)]
        assert int(re.findall(r"-?\d+", answer)[0]) == 2 * numbers[-1] - numbers[-2]


def test_word_problems_hold_the_numbers_of_their_sums() -> None:
    for seed in range(300):
        talk = Talk(Random(seed))
        word_problems.word_problem(talk)
        user, answer = talk.turns[0]
        numbers = re.findall(r"\d+", user)
        assert set(numbers) <= set(re.findall(r"\d+", answer)), (user, answer)


def test_claims_and_largest_numbers_are_right() -> None:
    for seed in range(300):
        talk = Talk(Random(seed))
        logic.logic_turns(talk)
        if not talk.turns:
            continue
        user, answer = talk.turns[0]
        numbers = [int(n) for n in re.findall(r"\d+", user)]
        if talk.skills[0] == "claim":
            truth = {"+": numbers[0] + numbers[1], "-": numbers[0] - numbers[1], "×": numbers[0] * numbers[1]}
            sign = re.findall(r"\d ([-+×]) \d", answer)[0]
            assert answer.startswith(("Yes", "True")) == (truth[sign] == numbers[2])
        elif talk.skills[0] == "extreme":
            assert int(answer.split(" ")[0]) == (max if "largest" in answer else min)(numbers)
        elif talk.skills[0] == "sorted":
            assert [int(n) for n in re.findall(r"\d+", answer)] == sorted(numbers)


@pytest.mark.parametrize(
    ("one", "many"), [("fox", "foxes"), ("pony", "ponies"), ("donkey", "donkeys"), ("mouse", "mice"), ("cat", "cats")]
)
def test_plurals(one: str, many: str) -> None:
    assert plural(one) == many


def test_after_and_before_agree() -> None:
    """What comes after X has X before it, round the week and the year."""
    for one in order.ORDERS[:2]:
        for at, item in enumerate(one.items):
            after = order.said(one, at, 1).rstrip(".").split(" ")[-1]
            assert order.said(one, one.items.index(after), -1) == f"Before {after} comes {item}."


def test_sums_are_answers_to_their_questions() -> None:
    for seed in range(500):
        talk = Talk(Random(seed))
        arithmetic.sum_turn(talk)
        (user, answer) = talk.turns[0]
        numbers = re.findall(r"\d+", user)
        if len(numbers) == 2 and "zero" not in answer:
            assert set(numbers) <= set(re.findall(r"\d+", answer)), (user, answer)


@pytest.mark.parametrize(("n", "words"), [(0, "zero"), (13, "thirteen"), (20, "twenty"), (99, "ninety-nine")])
def test_numbers_in_words(n: int, words: str) -> None:
    assert arithmetic.in_words(n) == words


def test_the_days_beside_today_are_right() -> None:
    for seed in range(200):
        talk = Talk(Random(seed))
        order.tomorrow(talk)
        today, is_or_was, other = re.findall(
            r"Today is (\w+), so (tomorrow is|yesterday was) (\w+)\.", talk.turns[0][1]
        )[0]
        assert today.lower() in talk.turns[0][0].lower()
        step = 1 if is_or_was == "tomorrow is" else -1
        assert order.DAYS.index(other) == (order.DAYS.index(today) + step) % 7


def test_hard_differences_are_of_all_three_kinds() -> None:
    rng = Random(1)
    drawn = [arithmetic.hard_difference(rng) for _ in range(500)]
    assert all(0 <= a < 100 and 0 <= b < 100 for a, b in drawn)
    below = sum(a < b for a, b in drawn)
    to_a_ten = sum(a >= b and a % 10 == b for a, b in drawn)
    over_a_ten = sum(a >= b > a % 10 and b < 10 for a, b in drawn)
    assert min(below, to_a_ten, over_a_ten) > 50
