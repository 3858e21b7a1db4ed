# ruff: noqa: E501 - patterns and sentences stand on one line each
"""Small sums: two numbers of up to two digits, asked in digits or words, answered as `7 + 5 = 12.`"""

from __future__ import annotations

from random import Random

from tools.builtin_data.grammar import ask, first_of, words
from tools.builtin_data.talk import Talk

ONES = words(
    """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen
    """
)
TENS = words("zero ten twenty thirty forty fifty sixty seventy eighty ninety")
HOW_MUCH = "[what is|what's|whats|how much is|calculate|compute|solve|tell me|can you calculate|work out|what does|do you know|can you do|evaluate|give me|what do you get for|]"
EQUALS = "[| equal| equals| make|=| =|=?| = ?]"

PATTERNS: dict[str, tuple[str, ...]] = {
    "+": (
        HOW_MUCH + " {a}[ + |+|+ | +]{b}[|=| =|=?| = ?]",
        HOW_MUCH + " {a} [plus|and|added to|plus|plus] {b}[?|]",
        "{a} plus {b}" + EQUALS,
        "{a}+{b}",
        "{a} + {b}",
        "add {a} [and|to] {b}",
        "add {a} and {b} [together|for me|]",
        "[what is |find |]the sum of {a} and {b}",
        "what do {a} and {b} [make|add up to|sum to|give] [together|]?",
        "sum {a} and {b}",
        "{a} and {b} together [is|make|]?",
        "what [do i get if i|happens when i] add {a} and {b}?",
        "i have {a} [apples|books|coins|eggs|pears|cats|cookies|euros|dollars|balls|marbles|candies] and [get|buy|find|receive] {b} more. how many [do i have|are there|do i have now|do i have in total]?",
        "if i have {a} [apples|books|coins|eggs|cookies|oranges] and [someone gives me|you give me|i get|i buy] {b} more, how many do i have?",
    ),
    "-": (
        HOW_MUCH + " {a}[ - |-| – | −]{b}[|=| =|=?| = ?]",
        HOW_MUCH + " {a} [minus|minus|minus|less|take away] {b}[?|]",
        "{a} minus {b}" + EQUALS,
        "{a}-{b}",
        "{a} - {b}",
        "subtract {b} from {a}",
        "take {b} [away from|from] {a}",
        "[what is |]the difference between {a} and {b}",
        "what is left if i take {b} from {a}?",
        "i have {a} [apples|books|coins|eggs|pears|cookies|euros|dollars|balls] and [give away|eat|lose|sell|spend] {b}. how many [are left|do i have left|remain|do i have]?",
        "if i have {a} [apples|books|coins|cookies] and [lose|eat|give away] {b}, how many [are left|do i have left]?",
    ),
    "×": (
        HOW_MUCH + " {a}[ * |*| x |x| × |×]{b}[|=| =|=?| = ?]",
        HOW_MUCH + " {a} [times|times|times|multiplied by] {b}[?|]",
        "{a} times {b}" + EQUALS,
        "{a}*{b}",
        "{a} * {b}",
        "{a}x{b}",
        "{a} x {b}",
        "multiply {a} [by|and|with] {b}",
        "[what is |]the product of {a} and {b}",
        "there are {a} boxes with {b} [eggs|books|pens|balls|apples] each. how many [are there|in total]?",
    ),
    "/": (
        HOW_MUCH + " {a}[ / |/| ÷ |÷| : ]{b}[|=| =|=?| = ?]",
        HOW_MUCH + " {a} [divided by|divided by|over] {b}[?|]",
        "{a} divided by {b}" + EQUALS,
        "{a}/{b}",
        "{a} / {b}",
        "divide {a} by {b}",
    ),
}
FOLLOW_UPS = {
    "+": ("[now |and |then |ok, |][add|plus] {b}[ to that| to it|]", "and [if i add|plus] {b}?", "add {b} more"),
    "-": ("[now |and |then |ok, |][subtract|minus|take away] {b}[ from that| from it|]",),
    "×": ("[now |and |then |ok, |][times|multiply by|multiply it by|multiply that by] {b}",),
}
AGAIN = {
    "+": (
        "and {a}[ + |+| plus ]{b}?",
        "{a}[ + |+| plus ]{b}?",
        "what about {a}[ + |+| plus ]{b}?",
        "now {a}[ + |+| plus ]{b}",
    ),
    "-": ("and {a}[ - |-| minus ]{b}?", "{a}[ - |-| minus ]{b}?", "what about {a} minus {b}?"),
    "×": ("and {a}[ * | x | times ]{b}?", "{a}[ * |x| times ]{b}?", "what about {a} times {b}?"),
    "/": ("and {a}[ / | divided by ]{b}?", "{a}[ / | divided by ]{b}?"),
}
TOO_HARD = (
    "{h} [+|-|*|/|plus|minus|times|divided by] {g}",
    HOW_MUCH + " {h} [+|-|*|/|plus|minus|times|divided by|×] {g}",
    "{g}[+|-|*|/]{h}",
    HOW_MUCH + " {a}[ + |+| plus ]{b}[ + |+| plus | * | minus ]{c}",
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
    "how many [seconds|minutes|hours|days] are in [a day|a year|a week|{a} hours]?",
    "{h} + {a} = ?",
    "what is the average of {a}, {b} and {c}?",
    "what is {a} to the power of {b}?",
    "how many prime numbers are below {h}?",
)
TOO_HARD_ANSWERS = (
    "That is beyond me: I only do small sums with two numbers of up to two digits. A bigger model can: `localrun pull qwen3-4b`.",
    "I can only do small sums with two numbers, such as 7 + 5. For harder ones, try `localrun pull qwen3-4b`.",
)


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
        quotient, rest = divmod(a, b)
        return f"{a} / {b} = {quotient}" + (f" remainder {rest}." if rest else "."), None if rest else quotient
    result = {"+": a + b, "-": a - b, "×": a * b}[op]
    return f"{a} {op} {b} = {result}.", result


def operands(rng: Random, op: str) -> tuple[int, int]:
    """Every pair of the trained range comes up, small numbers more often."""
    if op in "+-":
        top = rng.choice((10, 10, 20, 99, 99))
        a, b = rng.randint(0, top), rng.randint(0, top)
        return (max(a, b), min(a, b)) if op == "-" and rng.random() < 0.8 else (a, b)
    if op == "×":
        top = rng.choice((10, 10, 12, 12, 20))
        return rng.randint(0, top), rng.randint(0, top)
    b = rng.randint(1, 12)
    a = b * rng.randint(0, 12) if rng.random() < 0.8 else rng.randint(1, 99)
    return a, b if rng.random() < 0.97 else 0


def sum_turn(talk: Talk) -> None:
    rng = talk.rng
    op = rng.choices("+-×/", (40, 26, 24, 10))[0]
    a, b = operands(rng, op)
    in_letters = rng.random() < 0.22
    slots = {"a": written(rng, a, in_letters), "b": written(rng, b, in_letters or rng.random() < 0.04)}
    text, number = solve(a, op, b)
    patterns = AGAIN[op] if talk.number is not None and rng.random() < 0.3 else PATTERNS[op]
    talk.say("sum", ask(rng, patterns, slots), text, number)


def follow_up(talk: Talk) -> None:
    """`now add 3`: carry on from the last result."""
    rng, a = talk.rng, talk.number
    if a is None or not 0 <= a <= 99:
        return
    op = rng.choice("++-×") if a <= 12 else rng.choice("+-")
    b = rng.randint(0, 12) if op == "×" else rng.randint(0, min(a, 20) if op == "-" else 20)
    text, number = solve(a, op, b)
    talk.say("sum", ask(rng, FOLLOW_UPS[op], {"b": written(rng, b, rng.random() < 0.15)}), text, number)


def special(talk: Talk) -> None:
    """Doubling, halving, squares, counting, comparing, even and odd."""
    rng = talk.rng
    n = rng.randint(0, 12)
    big = rng.randint(1, 50)
    kind = rng.randrange(7)
    if kind == 0:
        user, text = "[what is |][double {n}|twice {n}|two times {n}|the double of {n}]", f"2 × {big} = {2 * big}."
        user = user.replace("{n}", "{b}")
    elif kind == 1:
        user, text = "[what is |][half of {d}|the half of {d}|one half of {d}]", f"{2 * big} / 2 = {big}."
    elif kind == 2:
        user, text = "[what is |][{n} squared|the square of {n}|{n} times itself|{n}^2]", f"{n} × {n} = {n * n}."
    elif kind == 3:
        first, last = rng.randint(0, 5), rng.randint(6, 20)
        talk.say("sum", *counted(rng, first, last))
        return
    elif kind == 4:
        a, b = rng.sample(range(100), 2)
        user = "[which is|what is|which number is|] [bigger|larger|greater|more][:|,|] {a} or {c}?"
        talk.say("sum", ask(rng, (user,), {"a": str(a), "c": str(b)}), f"{max(a, b)} is greater than {min(a, b)}.")
        return
    elif kind == 5:
        user, text = (
            "is {b} [even or odd|odd or even|even|odd|an even number|an odd number]?",
            f"{big} is {'odd' if big % 2 else 'even'}.",
        )
    else:
        user, text = (
            "[what comes after {b}|what number comes after {b}|which number follows {b}|what is the number after {b}]?",
            f"After {big} comes {big + 1}.",
        )
    talk.say("sum", ask(rng, (user,), {"n": str(n), "b": str(big), "d": str(2 * big)}), text)


def counted(rng: Random, first: int, last: int) -> tuple[str, str]:
    if rng.random() < 0.6:
        first = 1
        user = ask(
            rng,
            ("[can you |please |]count [up |][to|until|till] {b} [for me|]", "count from one to {b}"),
            {"b": str(last)},
        )
    else:
        user = ask(rng, ("[can you |please |]count from {a} to {b}",), {"a": str(first), "b": str(last)})
    return user, ", ".join(str(i) for i in range(first, last + 1)) + "."


def too_hard(talk: Talk) -> None:
    rng = talk.rng
    slots = {name: str(rng.randint(2, 99)) for name in "abc"}
    slots |= {"h": str(rng.randint(101, 99999)), "g": str(rng.randint(2, 9999)), "p": str(rng.randint(1, 99))}
    talk.say("too_hard", ask(rng, TOO_HARD, slots), first_of(rng, TOO_HARD_ANSWERS))
