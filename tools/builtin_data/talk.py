"""The state of a chat while it is being written: its turns, and what the user has told so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random


@dataclass
class Talk:
    rng: Random
    turns: list[tuple[str, str]] = field(default_factory=list)  # (user, assistant)
    skills: list[str] = field(default_factory=list)  # one a turn, for weighing and tests
    facts: dict[str, str] = field(default_factory=dict)  # fact key to value, in the order told
    number: int | None = None  # result of the last sum, while it is the last thing said

    def say(self, skill: str, user: str, assistant: str, number: int | None = None) -> None:
        self.turns.append((user, assistant))
        self.skills.append(skill)
        self.number = number
