"""Small sums: two numbers of up to two digits, in digits or words, answered at once or by tens and ones."""

from __future__ import annotations

from random import Random

from tools.builtin_data.grammar import ask, plural, words
from tools.builtin_data.sum_phrases import AGAIN, DOUBLE_IT, DOUBTS, FOLLOW_UPS, HALVE_IT, HOW_MUCH, PATTERNS, SURE
from tools.builtin_data.talk import Talk

ONES = words(
    """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen
    """
)
TENS = words("zero ten twenty thirty forty fifty sixty seventy eighty ninety")


def in_words(n: int) -> str:
    if n < 20:
        return ONES[n]
    if n == 100:
        return "one hundred"
    return TENS[n // 10] + ("-" + ONES[n % 10] if n % 10 else "")


def written(rng: Random, n: int, in_letters: bool) -> str:
    return in_words(n).replace("-", rng.choice("- ")) if in_letters and 0 <= n <= 100 else str(n)


def solve(a: int, op: str, b: int) -> tuple[str, int | None]:
    """The model's answer, and the result where it is a whole number."""
    if op == "/":
        if b == 0:
            return "Nothing can be divided by zero.", None
        return divided(a, b)
    if op == "-" and a < b:
        turned = "".join(f" = -({part})" for part in (f"{b} - {a}", *worked(b, op, a)))
        return f"{a} - {b}{turned} = {a - b}.", a - b
    result = {"+": a + b, "-": a - b, "×": a * b}[op]
    return " = ".join([f"{a} {op} {b}", *worked(a, op, b), str(result)]) + ".", result


def divided(a: int, b: int) -> tuple[str, int | None]:
    """A division by the multiple that comes nearest, from which the remainder is seen."""
    quotient, rest = divmod(a, b)
    text = f"{a} / {b}: {quotient} × {b} = {a - rest}"
    if rest:
        return f"{text}, {a} - {a - rest} = {rest}, so {a} / {b} = {quotient} remainder {rest}.", None
    return f"{text}, so {a} / {b} = {quotient}.", quotient


def worked(a: int, op: str, b: int) -> list[str]:
    """A longer sum by tens and ones, as it is done in the head: 36 + 47 is 70 + 13, and 81 - 27 is 61 - 7."""
    if op == "+" and min(a, b) > 10 and a % 10 and b % 10:
        return [f"{a // 10 * 10 + b // 10 * 10} + {a % 10 + b % 10}"]
    if op == "-" and a >= b > 10 and b % 10:
        return [f"{a - b // 10 * 10} - {b % 10}"]
    small, big = sorted((a, b))
    if op == "×" and small > 1 and big > 12 and big % 10:
        return [f"{big // 10 * 10 * small} + {big % 10 * small}"]
    return []


def operands(rng: Random, op: str) -> tuple[int, int]:
    """Every pair of the trained range comes up, small numbers more often."""
    if op in "+-":
        top = rng.choice((10, 10, 20, 99, 99))
        a, b = rng.randint(0, top), rng.randint(0, top)
        if rng.random() < 0.05:
            a = 100
        return (max(a, b), min(a, b)) if op == "-" and rng.random() < 0.92 else (a, b)
    if op == "×":
        if rng.random() < 0.15:
            a, b = rng.randint(2, 9), rng.randint(13, 50)
            return (a, b) if rng.random() < 0.5 else (b, a)
        top = rng.choice((10, 10, 12, 12, 20))
        return rng.randint(0, top), rng.randint(0, top)
    b = rng.randint(1, 12)
    a = b * rng.randint(0, 12) if rng.random() < 0.6 else rng.randint(1, rng.choice((30, 99)))
    return a, b if rng.random() < 0.97 else 0


def practised(rng: Random, op: str) -> tuple[int, int]:
    """Operands as they come, and more often those that are most easily got wrong."""
    if op == "-" and rng.random() < 0.45:
        return hard_difference(rng)
    if op == "/" and rng.random() < 0.12:
        return 100 if rng.random() < 0.4 else rng.randint(80, 99), rng.randint(2, 12)
    return operands(rng, op)


def hard_difference(rng: Random) -> tuple[int, int]:
    """Below zero, a ten less, or down to a full ten: what is most easily got wrong."""
    roll = rng.random()
    if roll < 0.5:
        small, big = sorted(rng.sample(range(100 if rng.random() < 0.7 else 21), 2))
        return small, big
    a = rng.randint(11, 99)
    if roll < 0.68:
        return a, a % 10  # 26 - 6
    return (a, rng.randint(a % 10 + 1, 9)) if a % 10 < 9 else (a, rng.randint(1, 9))  # 34 - 7


def sum_turn(talk: Talk) -> None:
    rng = talk.rng
    op = rng.choices("+-×/", (31, 32, 19, 18))[0]
    a, b = practised(rng, op)
    in_letters = rng.random() < 0.22
    slots = {"a": written(rng, a, in_letters), "b": written(rng, b, in_letters or rng.random() < 0.04)}
    slots["bs"] = plural(slots["b"])  # seven eights
    text, number = solve(a, op, b)
    patterns = AGAIN[op] if talk.number is not None and rng.random() < 0.3 else PATTERNS[op]
    talk.say("sum", ask(rng, patterns, slots), text, number)


def nothing_left(talk: Talk) -> None:
    """`16 - 16`: a number less itself."""
    rng = talk.rng
    n = rng.randint(0, rng.choice((20, 99)))
    spelt = written(rng, n, rng.random() < 0.15)
    talk.say("sum", ask(rng, PATTERNS["-"], {"a": spelt, "b": spelt}), *solve(n, "-", n))


def follow_up(talk: Talk) -> None:
    """`now add 3`, `double it`: carry on from the last result."""
    rng, a = talk.rng, talk.number
    if a is None or not 0 <= a <= 99:
        return
    roll = rng.random()
    if roll < 0.12 and a <= 50:
        talk.say("sum", ask(rng, DOUBLE_IT), *solve(a, "×", 2))
    elif roll < 0.2 and a % 2 == 0:
        talk.say("sum", ask(rng, HALVE_IT), *solve(a, "/", 2))
    else:
        op = rng.choice("++-×") if a <= 12 else rng.choice("+-+-×/")
        b = next_operand(rng, a, op)
        talk.say("sum", ask(rng, FOLLOW_UPS[op], {"b": written(rng, b, rng.random() < 0.15)}), *solve(a, op, b))


def next_operand(rng: Random, a: int, op: str) -> int:
    if op == "/":
        return rng.choice([b for b in range(1, 13) if a % b == 0])
    if op == "×":
        return rng.randint(0, 12) if a <= 12 else rng.randint(1, 3)
    if op == "-" and rng.random() < 0.25:
        return a % 10 or min(a, 10)
    return rng.randint(0, min(a, 20) if op == "-" else 20)


def three_numbers(talk: Talk) -> None:
    """`4 + 5 + 6`, worked out in two steps."""
    rng = talk.rng
    a, b, c = (rng.randint(1, rng.choice((9, 9, 20))) for _ in range(3))
    ops = rng.choice(("++", "++", "+-", "-+"))
    if ops == "-+":
        a, b = max(a, b), min(a, b)
    first = a + b if ops[0] == "+" else a - b
    if ops[1] == "-":
        c = min(c, first)
    result = first + c if ops[1] == "+" else first - c
    signs = {"+": rng.choice((" + ", "+", " plus ")), "-": rng.choice((" - ", "-", " minus "))}
    asked = "{a}" + signs[ops[0]] + "{b}" + signs[ops[1]] + "{c}"
    forms: tuple[str, ...] = (HOW_MUCH + " " + asked + "[|?| =|=]", asked, asked + "[?| =|=|]")
    if ops == "++":
        forms = (*forms, "add {a}, {b} and {c}", "the sum of {a}, {b} and {c}")
    slots = {"a": str(a), "b": str(b), "c": str(c)}
    talk.say("sum", ask(rng, forms, slots), f"{a} {ops[0]} {b} = {first}, and {first} {ops[1]} {c} = {result}.", result)


def doubted(talk: Talk) -> None:
    """`are you sure?` after a sum: the same sum again."""
    text, number = talk.turns[-1][1], talk.number
    if talk.rng.random() < 0.6:
        talk.say("sum", ask(talk.rng, SURE, wrap=False), f"Yes, {text}", number)
    else:
        talk.say("sum", ask(talk.rng, DOUBTS, wrap=False), f"I still get {text}", number)
