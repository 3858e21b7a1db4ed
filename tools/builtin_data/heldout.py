"""Chats kept for evaluation: no training chat contains one of their questions, in any case or punctuation.

A line is `user | user | … => word/word & word`: the last answer must hold one of each group of words. `"tim"` must
stand alone, `fox*3` must come three times, `LINES 3` wants an answer of three lines. `REFUSES` stands for any honest
refusal; a refusal anywhere else is a failure. A line that begins with `system:` gives the system prompt first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tools.builtin_data import (
    heldout_first,
    heldout_knowledge,
    heldout_limits,
    heldout_people,
    heldout_questions,
    heldout_skills,
)
from tools.builtin_data.grammar import normalised

REFUSAL_WORDS = (
    "pull qwen3-4b",
    "did not understand",
    "can only chat",
    "nothing hidden",
    "stay what i am",
    "cannot see",
    "not help with",
    "little English",
    "not letters",
)
TIMES = re.compile(r"(.+)\*(\d+)")


@dataclass(frozen=True)
class Probe:
    """User messages of one chat, and what the last answer must hold: one word of every group."""

    skill: str
    users: tuple[str, ...]
    expect: tuple[tuple[str, ...], ...]
    system: str = ""

    @property
    def refuses(self) -> bool:
        return ("REFUSES",) in self.expect

    def passes(self, answer: str) -> bool:
        return all(any(holds(answer, word) for word in group) for group in self.expect)


def holds(answer: str, word: str) -> bool:
    """Whether the answer has this word, in the notation of the lines."""
    text = answer.lower()
    if word == "REFUSES":
        return any(refusal.lower() in text for refusal in REFUSAL_WORDS)
    if word.startswith("LINES "):
        return len(text.strip().splitlines()) == int(word.removeprefix("LINES "))
    if word.startswith('"'):
        return re.search(rf"(?<!\w){re.escape(word.strip(chr(34)).lower())}(?!\w)", text) is not None
    if times := TIMES.fullmatch(word):
        return text.count(times.group(1).lower()) >= int(times.group(2))
    return word.lower() in text


def parse(skill: str, line: str) -> Probe:
    said, expect = line.rsplit("=>", 1)
    users = [user.strip() for user in said.split("|")]
    system = users.pop(0).removeprefix("system:").strip() if users[0].startswith("system:") else ""
    groups = tuple(tuple(word.strip() for word in group.split("/")) for group in expect.split("&"))
    return Probe(skill, tuple(users), groups, system)


FILES = (heldout_first, heldout_questions, heldout_knowledge, heldout_people, heldout_skills, heldout_limits)
PROBES = tuple(
    parse(skill, line) for file in FILES for skill, text in file.LINES.items() for line in text.strip().splitlines()
)
# In chats of several turns it is the names, and what lies between, that are new: "what is my name" must be taught.
HELD_OUT = frozenset(normalised(probe.users[0]) for probe in PROBES if len(probe.users) == 1 and not probe.system)
