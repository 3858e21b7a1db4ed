"""A question whether a tool may run, until it is answered."""

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from localrun.tools.consent import Allowed, ConsentQuestion


class PendingConsent:
    """A question that waits for its answer; the first one counts."""

    def __init__(self, question: "ConsentQuestion") -> None:
        self.question = question
        self._answer: Allowed = "no"
        self._answered = threading.Event()

    def leave_chat(self) -> None:
        """Forget the answer for its chat, which is left: it would be for the next one."""
        self.question = replace(self.question, choices=tuple(one for one in self.question.choices if one != "chat"))

    def answer(self, allowed: "Allowed") -> None:
        """Answer it, from any thread."""
        if not self._answered.is_set():
            self._answer = allowed
            self._answered.set()

    @property
    def is_open(self) -> bool:
        """Whether it has no answer yet."""
        return not self._answered.is_set()

    def wait(self) -> "Allowed":
        """The answer, once it is there."""
        self._answered.wait()
        return self._answer
