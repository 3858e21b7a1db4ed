"""Words of a question that only few lines of a long text have: those lines may answer it without reading the rest."""

import re
from collections.abc import Iterator

from localrun.chat.long_text.part_of_text import AROUND

_LEAST_LETTERS = 4  # shorter words are in most questions
_MOST_WORDS = 3
_SAY_NOTHING = re.compile(
    "about|does|each|every|find|from|have|many|name|show|tell|that|their|there|these|this|those|times?|were|what|when"
    "|where|which|whole|with"
)


def found_parts(text: str, question: str, most_bytes: int) -> Iterator[tuple[str, int]]:
    """Parts as they are typed (`/disk/`), each with the number of its lines, the fewest first.

    Each has at most `most_bytes` of text by estimate, the lines around included.
    """
    lines = text.lower().splitlines()
    per_line = len(text) / max(len(lines), 1) * (1 + 2 * AROUND)
    counts = {word: n for word in _words(question) if (n := sum(word in line for line in lines))}
    few = [(word, n) for word, n in counts.items() if n * per_line <= most_bytes]
    yield from ((f"/{word}/", n) for word, n in sorted(few, key=lambda one: one[1])[:_MOST_WORDS])


def _words(question: str) -> Iterator[str]:
    """Words of a question in small letters; those that may be plurals without their s."""
    for word in dict.fromkeys(re.findall(rf"\w{{{_LEAST_LETTERS},}}", question.lower())):
        if not _SAY_NOTHING.fullmatch(word):
            yield word.removesuffix("s") if len(word) > _LEAST_LETTERS else word
