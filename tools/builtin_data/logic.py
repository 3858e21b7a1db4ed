# ruff: noqa: E501 - patterns and sentences stand on one line each
"""Small logic: all of a kind, the odd one out, true or false, the largest of three, sorting."""

from __future__ import annotations

from tools.builtin_data import names, things
from tools.builtin_data.arithmetic import operands, solve
from tools.builtin_data.grammar import article, ask, plural
from tools.builtin_data.made_up import nonsense_word
from tools.builtin_data.opposites import KINDS
from tools.builtin_data.talk import Talk


def logic_turns(talk: Talk) -> None:
    talk.rng.choice((syllogism, odd_one_out, claim, claim, extreme, extreme, in_order))(talk)


def syllogism(talk: Talk) -> None:
    """`all gorps are birds. Tim is a gorp. is Tim a bird?`"""
    rng = talk.rng
    kind, whole = (
        nonsense_word(rng) if rng.random() < 0.4 else rng.choice(things.ANIMALS + things.JOBS) for _ in range(2)
    )
    if kind == whole:
        return
    name = names.one_word_name(rng)
    told = ["all {ks} are {ws}", "{n} is " + article(kind).replace(kind, "{k}")]
    if rng.random() < 0.3:
        told.reverse()
    asked = "[. |, |, so |. so ]is {n} " + article(whole).replace(whole, "{w}") + "?"
    pattern = "[if |]" + "[. | and |, ]".join(told) + asked
    slots = {"k": kind, "w": whole, "n": name, "ks": plural(kind), "ws": plural(whole)}
    if rng.random() < 0.75:
        talk.say("logic", ask(rng, (pattern,), slots, wrap=False), f"Yes, {name} is {article(whole)}.")
        return
    other = rng.choice([word for word in things.ANIMALS + things.JOBS if word not in (kind, whole)])
    pattern = pattern.replace(asked, asked.replace(article(whole).replace(whole, "{w}"), article(other)))
    talk.say("logic", ask(rng, (pattern,), slots, wrap=False), f"That does not follow: {name} is {article(whole)}.")


def odd_one_out(talk: Talk) -> None:
    rng = talk.rng
    (kind, known), (_, others) = rng.sample([pair for pair in KINDS if len(pair[1]) > 6], 2)
    odd = rng.choice(others)
    row = [*rng.sample(known, rng.choice((2, 3, 3))), odd]
    rng.shuffle(row)
    shown = ", ".join(row[:-1]) + rng.choice((", ", " or ", " and ")) + row[-1]
    patterns = (
        "[which|what] [is the odd one out|does not belong|doesn't belong|does not fit|is different|doesn't fit][: |, | here: ]{r}?",
        "odd one out: {r}",
        "{r}[: |, |. ]which [is the odd one out|one does not fit|one is different|one doesn't belong]?",
        "[find|name] the odd one out: {r}",
    )
    talk.say(
        "logic",
        ask(rng, patterns, {"r": shown}),
        f"The odd one out is {odd}: the others are {'food' if kind == 'food' else plural(kind)}.",
    )


def claim(talk: Talk) -> None:
    """`is 2 + 2 = 5?`, `true or false: 2 + 2 = 4`."""
    rng = talk.rng
    op = rng.choice("+-×")
    a, b = operands(rng, op)
    text, result = solve(a, op, b)
    if result is None or result < 0:
        return
    right = rng.random() < 0.5
    said = result if right else max(0, result + rng.choice((-2, -1, 1, 2, 10, -10)))
    sign = {"+": "[+| + | plus ]", "-": "[-| - | minus ]", "×": "[*| * | times | x ]"}[op]
    is_true = said == result
    if rng.random() < 0.6:
        patterns: tuple[str, ...] = (
            "is {a}" + sign + "{b}[ = |=| equal to | ]{c}?",
            "{a}" + sign + "{b}[ = |=| is ]{c}, [right|correct|isn't it|yes]?",
            "is it [true|right|correct] that {a}" + sign + "{b}[ = |=| is ]{c}?",
            "does {a}" + sign + "{b} [equal|make] {c}?",
        )
        yes, no = "Yes, ", "No, "
    else:
        patterns = (
            "true or false[: |, |? ]{a}" + sign + "{b}[ = |=| is ]{c}",
            "{a}" + sign + "{b}[ = |=| is ]{c}[: |, |. ]true or false?",
        )
        yes, no = "True: ", "False: "
    slots = {"a": str(a), "b": str(b), "c": str(said)}
    talk.say("claim", ask(rng, patterns, slots), (yes if is_true else no) + text)


def extreme(talk: Talk) -> None:
    """The largest or smallest of three or four."""
    rng = talk.rng
    row = rng.sample(range(rng.choice((20, 100))), rng.choice((3, 3, 4)))
    largest = rng.random() < 0.6
    word = "[largest|biggest|highest|greatest]" if largest else "[smallest|lowest]"
    shown = ", ".join(map(str, row[:-1])) + rng.choice((", ", " or ", " and ")) + str(row[-1])
    patterns = (
        f"[which|what] [is the|number is the] {word}[: |, | of | number: ]{{r}}?",
        f"[find|tell me|name] the {word} [of|number:|number of] {{r}}",
        f"{{r}}[: |, ]which [is the|one is the] {word}?",
    )
    talk.say(
        "extreme",
        ask(rng, patterns, {"r": shown}),
        f"{max(row) if largest else min(row)} is the {'largest' if largest else 'smallest'}.",
    )


def in_order(talk: Talk) -> None:
    rng = talk.rng
    row = rng.sample(range(rng.choice((10, 30))), rng.choice((3, 3, 4)))
    shown = rng.choice((", ", " ", ",")).join(map(str, row))
    patterns = (
        "[sort|order] [these numbers|these|the numbers|][: | ]{r}",
        "put [these numbers|them|these] in order[: |, ]{r}",
        "[sort|order] {r} from [small to big|lowest to highest|smallest to largest]",
    )
    talk.say("sorted", ask(rng, patterns, {"r": shown}), ", ".join(map(str, sorted(row))) + ".")
