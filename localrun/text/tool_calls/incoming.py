"""Text that is still arriving, and readers that wait for more of it.

A reader is a generator that yields wherever it needs more text than there is. Its decisions depend on the text alone,
never on where it was cut, so that a stream and a whole answer are read alike.
"""

from collections.abc import Callable, Generator, Sequence
from typing import TypeAlias, TypeVar

from localrun.text.stop import first_partial

T = TypeVar("T")
Waiting: TypeAlias = Generator[None, None, T]
EmitText: TypeAlias = Callable[[str], None]
SPACE = " \t\r\n"


class BrokenCallError(Exception):
    """Text that is not a call of this form, or ends in the middle of one."""


class Incoming:
    """Text that has arrived and was not taken yet. `plain` spells the marks of tokens that mean nothing in a call."""

    def __init__(self, plain: Callable[[str], str] = str) -> None:
        self.plain = plain
        self.held = ""
        self.has_ended = False
        self._taken: list[str] = []

    def push(self, text: str) -> None:
        """Add text."""
        self.held += text

    def take(self, n: int) -> str:
        """Take the next `n` characters."""
        text, self.held = self.held[:n], self.held[n:]
        self._taken.append(text)
        return text

    def give_back(self, text: str) -> None:
        """Put back the text that was taken last."""
        self.held = text + self.held

    def remember(self) -> None:
        """Start to remember taken text."""
        self._taken.clear()

    @property
    def remembered(self) -> str:
        """The text taken since `remember`."""
        return "".join(self._taken)

    def peek(self, n: int = 1) -> Waiting[str]:
        """The next `n` characters, without taking them; fewer at the end."""
        while len(self.held) < n and not self.has_ended:
            yield
        return self.held[:n]

    def skip_space(self) -> Waiting[str]:
        """Take white space; returns the next character."""
        while True:
            self.take(len(self.held) - len(self.held.lstrip(SPACE)))
            if self.held or self.has_ended:
                return self.held[:1]
            yield

    def match(self, texts: Sequence[str]) -> Waiting[str]:
        """Take the longest of `texts` that comes next; empty where none does."""
        while not self.has_ended and any(len(self.held) < len(text) and text.startswith(self.held) for text in texts):
            yield
        found = max((text for text in texts if self.held.startswith(text)), key=len, default="")
        return self.take(len(found))

    def expect(self, *texts: str) -> Waiting[str]:
        """Take one of `texts`, after white space. Raises BrokenCallError where something else comes."""
        yield from self.skip_space()
        found = yield from self.match(texts)
        if not found:
            raise BrokenCallError
        return found

    def upto(self, ends: Sequence[str], most: int) -> Waiting[str]:
        """Take the text before the first of `ends`, which stays. Raises BrokenCallError beyond `most` characters."""
        while True:
            places = [place for end in ends if (place := self.held.find(end)) >= 0]
            if places and min(places) <= most:
                return self.take(min(places))
            if places or self.has_ended or len(self.held) > most + max(map(len, ends)):
                raise BrokenCallError
            yield

    def pass_on(self, ends: Sequence[str], emit: EmitText) -> Waiting[str]:
        """Emit text as soon as it is certain, and take the first of `ends`; empty where none comes."""
        while True:
            found = [(place, -len(end), end) for end in ends if (place := self.held.find(end)) >= 0]
            if found:
                place, _, end = min(found)
                if place:
                    emit(self.take(place))
                return self.take(len(end))
            safe = len(self.held) if self.has_ended else first_partial(self.held, ends)
            if safe:
                emit(self.take(safe))
            if self.has_ended:
                return ""
            yield
