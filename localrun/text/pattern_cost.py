"""Whether a regular expression from a model file may take time that doubles with every character."""

import re
from dataclasses import field
from functools import cache
from itertools import chain

from localrun.base.dataclass import dataclass
from localrun.text.pretokenize import PRETOKENIZERS

_QUANTIFIER = re.compile(r"[*+?][+?]?|\{(\d*)(,?)(\d*)\}\??")
_GROUP_HEADER = re.compile(r"\(\?(?:[imsx-]*:|[=!>~]|<[=!]|<\w+>|#)|\(\??")  # its `?` is no quantifier
_ATOM = re.compile(r"\\[pPxXu]\{[^}]*\}|\\?.", re.DOTALL)
_MANY = 16  # more repetitions than this count as endless


@dataclass(slots=True)
class _Group:
    start: int = 0
    ambiguous: bool = False  # its text can be matched in more than one way
    flagged: list[str] = field(default_factory=list)


def runs_away(pattern: str) -> bool:
    """Whether a pattern has an endless repetition of an ambiguous part, as in `(a+)+` or `(a|a)*`.

    The few patterns of real tokenizers that do so without harm are known.
    """
    return not _flagged(pattern) <= _harmless()


def _flagged(pattern: str) -> set[str]:
    """The parts of `pattern` that repeat something ambiguous without end."""
    stack, position = [_Group()], 0
    while position < len(pattern):
        char = pattern[position]
        if char == "(":
            stack.append(_Group(position))
            position = _end(_GROUP_HEADER, pattern, position)
            continue
        position = _after_class(pattern, position) if char == "[" else _end(_ATOM, pattern, position)
        quantifier = _QUANTIFIER.match(pattern, position) if char != "|" else None
        position = quantifier.end() if quantifier else position
        if quantifier and _QUANTIFIER.match(pattern, position):  # a+* is (a+)*
            stack[-1].flagged.append(pattern)
        if char == ")" and len(stack) > 1:
            group = stack.pop()
            if group.ambiguous and quantifier and _is_endless(quantifier):
                stack[-1].flagged.append(pattern[group.start : position])
            stack[-1].flagged += group.flagged
            stack[-1].ambiguous |= group.ambiguous
        stack[-1].ambiguous |= char == "|" or (quantifier is not None and not _is_fixed(quantifier))
    return set(chain.from_iterable(group.flagged for group in stack))


def _end(atom: re.Pattern[str], pattern: str, position: int) -> int:
    match = atom.match(pattern, position)
    return match.end() if match else position + 1


def _after_class(pattern: str, position: int) -> int:
    """Position after a character class; classes nest."""
    depth = 0
    while position < len(pattern):
        char = pattern[position]
        depth += (char == "[") - (char == "]")
        position += 2 if char == "\\" else 1
        if not depth:
            break
    return position


def _is_endless(quantifier: re.Match[str]) -> bool:
    low, comma, high = quantifier.groups(default="")
    if quantifier[0][0] != "{":
        return quantifier[0][0] in "*+"
    return (bool(comma) and not high) or int(high or low or 0) > _MANY


def _is_fixed(quantifier: re.Match[str]) -> bool:
    low, comma, high = quantifier.groups(default="")
    return quantifier[0][0] == "{" and (not comma or low == high)


@cache
def _harmless() -> set[str]:
    return set(chain.from_iterable(_flagged(p) for row in PRETOKENIZERS.values() for p in row.patterns))
