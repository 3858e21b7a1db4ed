# ruff: noqa: E501 - patterns and sentences stand on one line each
"""Counting, comparing, doubling, even and odd, and what comes next in a row of numbers."""

from __future__ import annotations

from random import Random

from tools.builtin_data.arithmetic import solve, written
from tools.builtin_data.grammar import ask
from tools.builtin_data.talk import Talk

GREATER = "[bigger|larger|greater|more|higher|the bigger number|the larger number]"
LESS = "[smaller|less|lower|the smaller number|fewer]"


def counting_turns(talk: Talk) -> None:
    rng = talk.rng
    kinds = ((twice, 2), (count, 3), (compare, 6), (is_more, 3), (parity, 2), (neighbour, 3), (sequence, 3))
    rng.choices([kind for kind, _ in kinds], [weight for _, weight in kinds])[0](talk)


def twice(talk: Talk) -> None:
    """Doubles, halves, squares and differences."""
    rng = talk.rng
    n, big = rng.randint(0, 12), rng.randint(1, 50)
    kind = rng.randrange(4)
    if kind == 0:
        asked = ask(
            rng,
            ("[what is |whats |][double {n}|twice {n}|two times {n}|the double of {n}|{n} doubled]",),
            {"n": str(big)},
        )
        talk.say("sum", asked, *solve(2, "×", big))
    elif kind == 1:
        asked = ask(
            rng, ("[what is |whats |][half of {n}|the half of {n}|one half of {n}|half {n}]",), {"n": str(2 * big)}
        )
        talk.say("sum", asked, *solve(2 * big, "/", 2))
    elif kind == 2:
        a, b = rng.randint(0, 99), rng.randint(0, 99)
        patterns = ("[what is |whats |find |]the difference [between|of] {a} and {b}", "how far apart are {a} and {b}?")
        talk.say("sum", ask(rng, patterns, {"a": str(a), "b": str(b)}), *solve(max(a, b), "-", min(a, b)))
    else:
        asked = ask(
            rng,
            ("[what is |whats |][{n} squared|the square of {n}|{n} times itself|{n}^2|{n} to the power of 2]",),
            {"n": written(rng, n, rng.random() < 0.3)},
        )
        talk.say("sum", asked, *solve(n, "×", n))


def row(numbers: range) -> str:
    return ", ".join(str(n) for n in numbers) + "."


def count(talk: Talk) -> None:
    """Up, down, from one number to another, and by twos."""
    rng = talk.rng
    first, last = rng.randint(0, 5), rng.randint(6, 20)
    spelt = written(rng, last, rng.random() < 0.3)
    roll = rng.random()
    please = "[can you |please |could you |]"
    if roll < 0.4:
        asked = ask(
            rng,
            (
                please + "count [up |][to|until|till] {b} [for me|please|]",
                "count from [one|1] to {b}",
                "[list|give me|say] the numbers [from 1 |]to {b}",
            ),
            {"b": spelt},
        )
        talk.say("count", asked, row(range(1, last + 1)))
        if rng.random() < 0.45:
            talk.say(
                "count",
                ask(
                    rng,
                    (
                        "[backwards|now backwards|and backwards|and now backwards|the other way round|in reverse|now down]",
                    ),
                ),
                row(range(last, 0, -1)),
            )
    elif roll < 0.6:
        asked = ask(
            rng,
            (please + "count from {a} to {b}", "[list|give me|say] the numbers from {a} to {b}"),
            {"a": str(first), "b": spelt},
        )
        talk.say("count", asked, row(range(first, last + 1)))
    elif roll < 0.85:
        asked = ask(
            rng,
            (
                please + "count [down|backwards] from {b} [to one|to 1|]",
                "[countdown|count down] from {b}",
                "count from {b} [down |]to [1|one]",
            ),
            {"b": spelt},
        )
        talk.say("count", asked, row(range(last, 0, -1)))
    else:
        step = rng.choice((2, 2, 5, 10))
        top = step * rng.randint(4, 10)
        asked = ask(
            rng,
            (please + "count [by|in] {s}s to {b}", "count to {b} in steps of {n}"),
            {"s": {2: "two", 5: "five", 10: "ten"}[step], "n": str(step), "b": str(top)},
        )
        talk.say("count", asked, row(range(step, top + 1, step)))


def count_and_back(talk: Talk) -> None:
    """A count upwards, and the same one backwards."""
    rng = talk.rng
    if rng.random() < 0.6:
        numbers = range(1, rng.randint(2, 20) + 1)
        up: tuple[str, ...] = ("count [up |][to|until|till] {b} [for me|please|]", "[can you |please |]count to {b}")
    else:
        first = rng.randint(0, 20)
        numbers = range(first, first + rng.randint(2, 12))
        up = ("[can you |please |]count from {a} to {b}", "[list|say] the numbers from {a} to {b}")
    ends = {"a": str(numbers[0]), "b": written(rng, numbers[-1], rng.random() < 0.2)}
    talk.say("count", ask(rng, up, ends), row(numbers))
    back = "[and |ok |now |and now |then |][backwards|back|back again|the other way [round|around]|in reverse|reversed|down|down again]"
    talk.say("count", ask(rng, (back,)), row(numbers[::-1]))


def easily_mistaken(rng: Random, a: int) -> int:
    """A number that is easily taken for this one: 45 for 54, 17 for 7, 4 for 42, 61 for 62."""
    tens, ones = divmod(a, 10)
    if tens != ones and rng.random() < 0.5:
        return ones * 10 + tens
    return rng.choice([n for n in range(100) if n != a and (n % 10 == ones or n == tens or n // 10 == tens)])


def compare(talk: Talk) -> None:
    rng = talk.rng
    a, b = rng.sample(range(rng.choice((20, 100, 100))), 2)
    if rng.random() < 0.55:
        b = easily_mistaken(rng, a)
        a, b = (a, b) if rng.random() < 0.5 else (b, a)
    asks_more = rng.random() < 0.5
    word = GREATER if asks_more else LESS
    patterns = (
        f"[which is|what is|what's|which number is|which one is|] {word}[:|,|] {{a}} or {{b}}?",
        f"{{a}} or {{b}}[, |: ][which is|which one is|what is] {word}?",
        f"[what|which] is {word} of {{a}} and {{b}}?",
        "[compare {a} and {b}|compare {a} with {b}]" if asks_more else f"{word}: {{a}} or {{b}}?",
    )
    spelt = rng.random() < 0.1
    asked = ask(rng, patterns, {"a": written(rng, a, spelt), "b": written(rng, b, spelt)})
    wanted = f"{max(a, b)} is greater" if asks_more else f"{min(a, b)} is smaller"
    talk.say("compare", asked, f"{a} {'>' if a > b else '<'} {b}, so {wanted}.")


def is_more(talk: Talk) -> None:
    """`is 45 more than 54?`"""
    rng = talk.rng
    a = rng.randrange(100)
    b = easily_mistaken(rng, a) if rng.random() < 0.4 else rng.choice([n for n in range(100) if n != a])
    asks_more = rng.random() < 0.6
    word = "[bigger|larger|greater|more|higher]" if asks_more else "[smaller|less|lower]"
    asked = ask(
        rng,
        (
            f"is {{a}} {word} than {{b}}?",
            f"{{a}} is {word} than {{b}}, [right|isn't it|true or false|correct|yes or no]?",
            f"is it [true|right|so] that {{a}} is {word} than {{b}}?",
        ),
        {"a": str(a), "b": str(b)},
    )
    right = (a > b) == asks_more
    talk.say("compare", asked, f"{a} {'>' if a > b else '<'} {b}, so {'yes' if right else 'no'}.")


def parity(talk: Talk) -> None:
    rng = talk.rng
    patterns: tuple[str, ...] = (
        "is {n} [even or odd|odd or even|even|odd|an even number|an odd number|an odd or an even number]?",
        "[even or odd|odd or even][: |, ]{n}",
    )
    while True:
        n = rng.randint(0, 99)
        talk.say("parity", ask(rng, patterns, {"n": str(n)}), f"{n} is {'odd' if n % 2 else 'even'}.")
        patterns = ("and {n}?", "what about {n}?", "{n}?", "how about {n}?", "and is {n}?")
        if rng.random() < 0.65:
            return


def neighbour(talk: Talk) -> None:
    rng = talk.rng
    n = rng.randint(1, rng.choice((20, 100)))
    slots = {"n": written(rng, n, rng.random() < 0.15)}
    if rng.random() < 0.6:
        patterns: tuple[str, ...] = (
            "[what|what number|which number] [comes|follows|is|is next] after {n}?",
            "[what|which] number follows {n}?",
            "[what is|what's] the [next number|number] after {n}?",
            "the [next number|number] after {n}?",
        )
        talk.say("next", ask(rng, patterns, slots), f"After {n} comes {n + 1}.")
    else:
        patterns = (
            "[what|what number|which number] [comes|is|goes|came] [right |just |]before {n}?",
            "[what is|what's] the number before {n}?",
            "the number before {n}?",
        )
        talk.say("next", ask(rng, patterns, slots), f"Before {n} comes {n - 1}.")


def sequence(talk: Talk) -> None:
    rng = talk.rng
    step = rng.choice((1, 2, 2, 3, 4, 5, 5, 10, 10, -1, -2))
    length = rng.randint(3, 5)
    first = rng.randint(0, 20) if step > 0 else rng.randint(20, 40)
    if abs(step) >= 5 and rng.random() < 0.7:
        first = step * rng.randint(1, 3)
    numbers = [first + step * i for i in range(length)]
    shown = rng.choice((", ", " ", ",")).join(str(n) for n in numbers)
    patterns = (
        "{s}[, | ][...|?|what is next?|what comes next?|what's next?|_|and then?]",
        "{s}[... |... | ][what|which number] [is next|comes next|follows|is the next number]?",
        "what [comes|is] next[: |, | after ]{s}?",
        "[continue|complete|go on with][: | ]{s}",
        "what is the next number[: |, | in ]{s}?",
        "next number: {s}",
    )
    talk.say("next", ask(rng, patterns, {"s": shown}), f"Next comes {numbers[-1] + step}.")
