"""Marks on the words that two versions of a text do not share. No widgets."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from textual.content import Content

MARK = "underline"  # reads without colour
_ALIKE = 0.4  # share of common words below which marks would be everywhere
_MOST = 4000  # words of a version; the comparison takes their square in the worst case


class _Word(NamedTuple):
    text: str
    line: int
    start: int
    end: int


def with_marks(left: Sequence[Content], right: Sequence[Content]) -> tuple[list[Content], list[Content]]:
    """Both texts, laid out in lines, with their own words marked; as they are where they have too little in common."""
    words = _words(left), _words(right)
    if max(map(len, words)) > _MOST:
        return list(left), list(right)
    before, after = ([word.text for word in each] for each in words)
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    if matcher.ratio() < _ALIKE:
        return list(left), list(right)
    changes = [change[1:] for change in matcher.get_opcodes() if change[0] != "equal"]
    own_left = [word for start, end, _, _ in changes for word in words[0][start:end]]
    own_right = [word for _, _, start, end in changes for word in words[1][start:end]]
    return _marked(left, own_left), _marked(right, own_right)


def _words(lines: Sequence[Content]) -> list[_Word]:
    return [
        _Word(found.group(), number, found.start(), found.end())
        for number, line in enumerate(lines)
        for found in re.finditer(r"\S+", line.plain)
    ]


def _marked(lines: Sequence[Content], words: Sequence[_Word]) -> list[Content]:
    marked = list(lines)
    for word in words:
        marked[word.line] = marked[word.line].stylize(MARK, word.start, word.end)
    return marked
