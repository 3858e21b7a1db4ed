"""The noise of real typing: words of politeness, case, punctuation, slips of the fingers."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

KEYBOARD = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
OPENERS = (
    "hey, ",
    "hi, ",
    "hi! ",
    "hello, ",
    "hello! ",
    "ok, ",
    "okay, ",
    "so, ",
    "so ",
    "well, ",
    "um, ",
    "please, ",
    "now ",
    "and ",
    "but ",
    "quick question: ",
    "question: ",
    "one question: ",
    "alright, ",
    "just curious: ",
    "hmm, ",
    "oh, ",
    "another question: ",
    "sorry, ",
    "right, ",
    "good, ",
    "great, ",
    "cool, ",
    "thanks. ",
    "i was wondering, ",
    "nice. ",
)
CLOSERS = (
    " please",
    ", please",
    " thanks",
    ", thanks",
    " pls",
    " thx",
    " buddy",
    ", friend",
    " then",
    " again",
    " plz",
)


LEADS = (
    "can you tell me ",
    "could you tell me ",
    "do you know ",
    "tell me ",
    "please tell me ",
    "i want to know ",
    "i'd like to know ",
    "i would like to know ",
    "i wonder ",
    "may i ask ",
    "can i ask ",
    "any idea ",
    "explain to me ",
    "could you explain ",
    "can you explain ",
    "would you tell me ",
    "let me ask: ",
    "my question is: ",
    "i don't understand ",
    "help me understand ",
)
TAILS = (
    " i am new to this",
    " i'm curious",
    " just wondering",
    " any idea?",
    " please explain",
    " explain it to me",
    " i never understood that",
    " tell me please",
    " can you answer that?",
    " i'd like to know",
    " do you know?",
    " be honest",
    " what do you say?",
    " i forgot",
    " can you help me with that?",
    " i need it now",
    " thank you",
    " thanks in advance",
)
SLANG = {
    "you": "u",
    "are": "r",
    "your": "ur",
    "you're": "ur",
    "please": "pls",
    "what's": "whats",
    "because": "cuz",
    "i'm": "im",
    "don't": "dont",
    "what": "wat",
    "thanks": "thx",
    "okay": "k",
    "why": "y",
    "people": "ppl",
}
SMILES = (" :)", " :-)", " 🙂", " 😊", " haha", " lol", " 😀", " ;)", " 🙏", " ❤️", " !!!", " xD")
QUESTION_WORDS = ("why", "what", "how", "which", "where", "who", "when")


def wrapped(rng: Random, text: str) -> str:
    """The same message with a word of politeness before it, a question in front of the question, or an afterthought."""
    first_lower = text[:1].lower() + text[1:]
    body = text.rstrip(".?!")
    end = text[len(body) :]
    roll = rng.random()
    if text.lower().startswith(QUESTION_WORDS) and roll < 0.4:
        return rng.choice(LEADS) + first_lower
    if roll < 0.7:
        return rng.choice(OPENERS) + first_lower
    if roll < 0.85:
        return body + rng.choice(CLOSERS) + end
    return body + (end or ".") + rng.choice(TAILS)


def noisy(rng: Random, text: str) -> str:
    """Case, end punctuation and now and then a typo, as people type."""
    roll = rng.random()
    if roll < 0.40:
        text = text[:1].upper() + text[1:]
    elif roll < 0.82:
        text = text.lower()
    elif roll < 0.86:
        text = text.upper()
    elif roll < 0.88:
        text = text.title()
    if rng.random() < 0.05:
        text = slangy(text)
    if rng.random() < 0.14:
        text = mistyped(rng, text)
    text = repunctuated(rng, text)
    return text + rng.choice(SMILES) if rng.random() < 0.03 else text


def slangy(text: str) -> str:
    """The short forms of chats: `what r u`, `can u tell me ur name pls`."""
    return " ".join(SLANG.get(word.lower(), word) for word in text.split(" "))


def repunctuated(rng: Random, text: str) -> str:
    roll = rng.random()
    if roll < 0.30:
        text = text.rstrip(".?!") or text
    elif roll < 0.34:
        text = text.rstrip(".?!") + rng.choice(("!", "!!", "??", "...", " ?", " !", "?!", "."))
    if rng.random() < 0.15:
        text = text.replace("'", "")
    elif rng.random() < 0.05:
        text = text.replace("'", "’")
    if rng.random() < 0.08:
        text = text.replace(",", "")
    return text


def mistyped(rng: Random, text: str) -> str:
    parts = text.split(" ")
    candidates = [i for i, word in enumerate(parts) if len(word) > 3 and word.isalpha() and word.isascii()]
    for i in rng.sample(candidates, min(len(candidates), rng.choice((1, 1, 1, 2)))):
        parts[i] = typo(rng, parts[i])
    return " ".join(parts)


def swap(rng: Random, word: str, at: int) -> str:
    return word[: at - 1] + word[at] + word[at - 1] + word[at + 1 :]


def drop(rng: Random, word: str, at: int) -> str:
    return word[:at] + word[at + 1 :]


def double(rng: Random, word: str, at: int) -> str:
    return word[:at] + word[at] + word[at:]


def neighbour(rng: Random, word: str, at: int) -> str:
    for row in KEYBOARD:
        if (column := row.find(word[at].lower())) >= 0:
            near = row[max(0, column - 1) : column] + row[column + 1 : column + 2]
            return word[:at] + rng.choice(near) + word[at + 1 :]
    return word


TYPOS: tuple[Callable[[Random, str, int], str], ...] = (swap, drop, double, neighbour)


def typo(rng: Random, word: str) -> str:
    """One slip of the fingers after the first letter: swapped, dropped, doubled or neighbouring key."""
    return rng.choice(TYPOS)(rng, word, rng.randrange(1, len(word)))
