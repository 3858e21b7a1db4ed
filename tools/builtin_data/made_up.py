"""Words nobody has seen, made of syllables or of plain letters."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from tools.builtin_data.grammar import words
from tools.builtin_data.outside_words import THINGS

ONSETS = words(
    """
    b c d f g h j k l m n p r s t v w y z br ch cl dr fl gr kl kr pl pr sh sk st th tr zh qu bl sl sn sp
    """
)
VOWELS = words("a e i o u a e i o a ee oo ia ay ei ou y")
CODAS = ["", "", "", "n", "r", "l", "s", "k", "m", "t", "x", "th", "nd", "sh", "ck", "rk", "st", "lf", "ng", "sk", "z"]


def followers(known: Iterable[str]) -> dict[str, list[str]]:
    """Which letter comes after each two, once for every time it does; a space stands for a word's ends."""
    after: dict[str, list[str]] = {}
    for word in known:
        padded = f"  {word} "
        for i in range(len(padded) - 2):
            after.setdefault(padded[i : i + 2], []).append(padded[i + 2])
    return after


KNOWN = [word for phrase in THINGS for word in phrase.lower().split() if word.isalpha() and len(word) > 3]
AFTER = followers(KNOWN)
LONGEST = 11


def likely_word(rng: Random) -> str:
    """Letters as English puts them together: such words break into the same pieces as real ones do."""
    word = "  "
    while len(word) < LONGEST + 2:
        letter = rng.choice(AFTER[word[-2:]])
        if letter == " ":
            break
        word += letter
    return word.strip() if len(word) > 4 else likely_word(rng)


def nonsense_word(rng: Random, syllables: int = 0) -> str:
    """A pronounceable word nobody has seen: unseen names, animals and topics are made of these."""
    if not syllables and rng.random() < 0.4:
        return likely_word(rng)
    count = syllables or rng.choice((1, 2, 2, 2, 3, 3))
    word = "".join(rng.choice(ONSETS) + rng.choice(VOWELS) for _ in range(count))
    return word + rng.choice(CODAS)


def letters(rng: Random) -> str:
    """Random letters: the hardest names to copy."""
    return "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(rng.randint(2, 7)))
