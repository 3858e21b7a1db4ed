"""Words nobody has seen, made of syllables or of plain letters."""

from __future__ import annotations

from random import Random

from tools.builtin_data.grammar import words

ONSETS = words(
    """
    b c d f g h j k l m n p r s t v w y z br ch cl dr fl gr kl kr pl pr sh sk st th tr zh qu bl sl sn sp
    """
)
VOWELS = words("a e i o u a e i o a ee oo ia ay ei ou y")
CODAS = ["", "", "", "n", "r", "l", "s", "k", "m", "t", "x", "th", "nd", "sh", "ck", "rk", "st", "lf", "ng", "sk", "z"]


def nonsense_word(rng: Random, syllables: int = 0) -> str:
    """A pronounceable word nobody has seen: unseen names, animals and topics are made of these."""
    count = syllables or rng.choice((1, 2, 2, 2, 3, 3))
    word = "".join(rng.choice(ONSETS) + rng.choice(VOWELS) for _ in range(count))
    return word + rng.choice(CODAS)


def letters(rng: Random) -> str:
    """Random letters: the hardest names to copy."""
    return "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(rng.randint(2, 7)))
