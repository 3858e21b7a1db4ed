# ruff: noqa: E501 - patterns and sentences stand on one line each
"""The ways people write a sum of two numbers, and how they go on from its result."""

from __future__ import annotations

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
        "what [do i get if i|happens when i|do you get when you] add {a} and {b}?",
        "{a} and {b} [makes|gives|is] [what|how much]?",
        "{a} more than {b} is [what|how much]?",
        "[the result of|result of|answer to] {a} + {b}",
        "[maths|math|quick maths|math question|sum][: | ]{a}[ + |+| plus ]{b}",
        "[can|could] you add [up |]{a} and {b}[ for me|]?",
        "[sum of|total of] {a} and {b}",
        "how much [is|are|do] {a} and {b} [together|in total|give|make|]?",
    ),
    "-": (
        HOW_MUCH + " {a}[ - |-| – | −]{b}[|=| =|=?| = ?]",
        HOW_MUCH + " {a} [minus|minus|minus|less|take away] {b}[?|]",
        "{a} minus {b}" + EQUALS,
        "{a}-{b}",
        "{a} - {b}",
        "subtract {b} from {a}",
        "take {b} [away from|from] {a}",
        "what is left if i take {b} from {a}?",
        "{b} less than {a} is [what|how much]?",
        "[maths|math|quick maths|math question|sum][: | ]{a}[ - |-| minus ]{b}",
        "[the result of|result of|answer to] {a} - {b}",
        "what [do i get|remains|is left] if i [subtract|take away] {b} from {a}?",
        "[can|could] you [subtract|take] {b} from {a}[ for me|]?",
        "{a} take away {b}",
        "how much is {a} [without|less] {b}?",
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
        "[maths|math|quick maths|math question][: | ]{a}[ * | x | times ]{b}",
        "[the result of|result of|answer to] {a} * {b}",
        "what do [i|you] get [if i|when you|if you] multiply {a} [by|and|with] {b}?",
        "[can|could] you multiply {a} by {b}[ for me|]?",
        "how much [is|are] {a} times {b}?",
        "[what is|what's|how much is|how much are|] {a} {bs}[?|]",
        "{a} {bs} [make|are|is|give] [what|how much]?",
    ),
    "/": (
        HOW_MUCH + " {a}[ / |/| ÷ |÷| : ]{b}[|=| =|=?| = ?]",
        HOW_MUCH + " {a} [divided by|divided by|over] {b}[?|]",
        "{a} divided by {b}" + EQUALS,
        "{a}/{b}",
        "{a} / {b}",
        "divide {a} by {b}",
        "[can|could] you divide {a} by {b}[ for me|]?",
        "how [many times|often] does {b} go into {a}?",
        "[maths|math|quick maths|math question][: | ]{a}[ / | divided by ]{b}",
        "{a} [split|shared] [by|into] {b}",
    ),
}
NOW = "[now |and |then |ok, |and now |ok now |next |]"
FOLLOW_UPS = {
    "+": (
        NOW + "[add|plus] {b}[ to that| to it| more|]",
        "and [if i add|plus|if you add|when you add] {b}[ to that|]?",
        NOW + "add [another |]{b}[ more|]",
        "+ {b}",
        "+{b}",
        "what [if|about] [plus|adding] {b}?",
    ),
    "-": (
        NOW + "[subtract|minus|take away|take off|less] {b}[ from that| from it|]",
        "and [minus|if i take away|if you take off|less|if you take away] {b}[ from that|]?",
        NOW + "[minus|take away] another {b}",
        "- {b}",
        "-{b}",
        "take {b} off",
    ),
    "×": (
        NOW + "[times|multiply by|multiply it by|multiply that by|multiplied by] {b}",
        "and [times|multiplied by|if you multiply it by|that times] {b}?",
        "[that|this|it] times {b}",
        "* {b}",
        "x {b}",
    ),
    "/": (
        NOW + "[divided by|divide by|divide it by|divide that by] {b}",
        "and [divided by|if i divide it by|that divided by] {b}?",
        "/ {b}",
    ),
}
DOUBLE_IT = (
    NOW + "[double it|double that|twice that|double]",
    "and [twice that|double that|the double]?",
    "now the double",
)
HALVE_IT = (NOW + "[halve it|half of that|half of it|halve that]", "and half of that?", "and the half?")
AGAIN = {
    "+": (
        "and {a}[ + |+| plus ]{b}?",
        "{a}[ + |+| plus ]{b}?",
        "what about {a}[ + |+| plus ]{b}?",
        "now {a}[ + |+| plus ]{b}",
        "and what is {a} plus {b}?",
    ),
    "-": (
        "and {a}[ - |-| minus ]{b}?",
        "{a}[ - |-| minus ]{b}?",
        "what about {a} minus {b}?",
        "and what is {a} minus {b}?",
    ),
    "×": (
        "and {a}[ * | x | times ]{b}?",
        "{a}[ * |x| times ]{b}?",
        "what about {a} times {b}?",
        "and what is {a} times {b}?",
    ),
    "/": ("and {a}[ / | divided by ]{b}?", "{a}[ / | divided by ]{b}?"),
}
SURE = (
    "[are you sure|are you sure about that|really|sure|is that right|is that correct|you sure|are you certain|is it]?",
)
DOUBTS = (
    "[that's wrong|that is wrong|wrong|no|i don't think so|that is not right|i think that's wrong|no, that's wrong|check again|incorrect|are you kidding]",
)
