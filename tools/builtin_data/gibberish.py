"""Messages that say nothing: odd signs, keys hit at random, words that do not exist."""

from __future__ import annotations

from tools.builtin_data.made_up import letters, nonsense_word
from tools.builtin_data.talk import Talk

PUNCTUATION = ("?", "??", "???", "...", "..", "....", ".", "!", "!!", "?!", "…", "-", "--", ",", ";")
# fmt: off
ODD_SIGNS = (
    "?", "??", "...", ".", "!", "-", "?!", "#", "***", "//", "$$$", "…", "()", "[]", "{}", "~", "@", "&", "🤔",
    "👍", "🙃", "1", "42", "0", "123456", "3.14", "x", "a", "b", "q", "z", "e", "s", "t", "abc", "xyz",
    "qwerty", "asdf", "asdfasdf", "aaaa", "blah", "blah blah", "foo", "foobar", "lorem ipsum",
    "lorem ipsum dolor sit amet", "zzz", "null", "undefined", "NaN", "None", "true", "\\n", "%s", "<html>",
    '{"a": 1}', "- - -", "01101000",
)
# fmt: on


def gibberish(talk: Talk) -> str:
    rng = talk.rng
    if rng.random() < 0.5:
        return rng.choice(PUNCTUATION if rng.random() < 0.5 else ODD_SIGNS)
    if rng.random() < 0.3:
        return "".join(rng.choice("abcdefghijklmnopqrstuvwxyz0123456789!?#%&/.,;") for _ in range(rng.randint(2, 25)))
    make = letters if rng.random() < 0.6 else nonsense_word
    return " ".join(make(rng) for _ in range(rng.randint(1, 5)))
