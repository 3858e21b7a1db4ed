"""Words nobody has seen, made of syllables, of parts of real words, or of plain letters."""

from __future__ import annotations

from random import Random

from tools.builtin_data.grammar import words
from tools.builtin_data.outside_words import THINGS
from tools.builtin_data.rare_words import RARE_WORDS

ONSETS = words(
    """
    b c d f g h j k l m n p r s t v w y z br ch cl dr fl gr kl kr pl pr sh sk st th tr zh qu bl sl sn sp
    """
)
VOWELS = words("a e i o u a e i o a ee oo ia ay ei ou y")
CODAS = ["", "", "", "n", "r", "l", "s", "k", "m", "t", "x", "th", "nd", "sh", "ck", "rk", "st", "lf", "ng", "sk", "z"]
REAL_WORDS = tuple(word for thing in THINGS for word in thing.split() if word.isalpha() and len(word) > 3) + tuple(
    word.lower() for word in RARE_WORDS
)
LETTERS = "abcdefghijklmnopqrstuvwxyz"
DOUBLED = "bbccddffggkkllmmnnppprrssttzzv"  # the consonants that are doubled, the commonest a little more often
AFTER_DOUBLED = words("y y y ie er le o a in et us ish up fish ock ara one ingham")


def nonsense_word(rng: Random, syllables: int = 0) -> str:
    """A pronounceable word nobody has seen: unseen names, animals and topics are made of these."""
    if not syllables:
        roll = rng.random()
        if roll < 0.45:
            return blend(rng)
        if roll < 0.57:
            return doubled(rng)
        if roll < 0.67:
            return blend(rng) + blend(rng)  # long ones: a word is copied to its end
    count = syllables or rng.choice((1, 2, 2, 2, 3, 3))
    word = "".join(rng.choice(ONSETS) + rng.choice(VOWELS) for _ in range(count))
    return word + rng.choice(CODAS)


def blend(rng: Random) -> str:
    """The beginning of a real word and the end of another, so that every part of a word is copied now and then."""
    first, second = rng.choices(REAL_WORDS, k=2)
    head = first[: rng.randint(2, 5)]
    return head if len(head) > 2 and rng.random() < 0.25 else head + second[-rng.randint(2, 5) :]


def doubled(rng: Random) -> str:
    """A word with a doubled consonant, as many nicknames have."""
    consonant = rng.choice(DOUBLED)
    return rng.choice((*ONSETS, "")) + rng.choice("aeiou") + consonant * 2 + rng.choice(AFTER_DOUBLED)


def rough(rng: Random) -> str:
    """A word of pieces that hardly stand side by side: it can only be copied, piece by piece, to its end."""
    pieces = (
        lambda: rng.choice(ONSETS) + rng.choice(VOWELS),
        lambda: rng.choice(VOWELS) + rng.choice(CODAS[3:]),
        lambda: rng.choice(REAL_WORDS)[-rng.randint(2, 5) :],
        lambda: rng.choice(REAL_WORDS)[: rng.randint(2, 4)],
        lambda: "".join(rng.choices(LETTERS, k=rng.randint(1, 3))),
    )
    return "".join(rng.choice(pieces)() for _ in range(rng.choice((2, 2, 3, 3, 4))))


def repeated(rng: Random) -> str:
    """A short word in which a letter or a syllable comes again: anna, lola, coco, aaah."""
    vowel, consonant = rng.choice("aeiou"), rng.choice("bcdfghjklmnprstvz")
    roll = rng.random()
    if roll < 0.2:
        return vowel + consonant * 2 + rng.choice("aeiouy")
    if roll < 0.45:
        return (consonant + vowel) * 2 + rng.choice(("", "", "", "n", consonant + vowel))
    if roll < 0.75:
        return rng.choice("bcdfghjklmnprstvz") + rng.choice("aeiou") + consonant + vowel
    if roll < 0.85:
        return rng.choice((consonant, "")) + vowel * rng.randint(2, 4) + rng.choice("hnlrt")
    return vowel + consonant + vowel + rng.choice((consonant + vowel, consonant, ""))


def letters(rng: Random) -> str:
    """Random letters: the hardest names to copy."""
    return "".join(rng.choice(LETTERS) for _ in range(rng.randint(2, 7)))
