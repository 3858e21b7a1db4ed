"""Harmony, the format of gpt-oss, and Muse's: every message of an answer has a header, which tells its kind."""

import re
from collections.abc import Callable
from typing import Protocol

from localrun.base.dataclass import dataclass
from localrun.base.events import Channel
from localrun.text.stop import first_partial

START, CHANNEL, MESSAGE = "<|start|>", "<|channel|>", "<|message|>"
ASSISTANT = START + "assistant"  # how a prompt ends: the model goes on with the header
_RECIPIENT = re.compile(r"\bto=([\w.-]+)")


@dataclass(frozen=True, slots=True)
class HeaderForm:
    """How headers tell messages apart: those of thoughts have `thought`, those to the user may have `answer`."""

    thought: str
    answer: str
    begins: tuple[str, ...]  # of headers
    ends: tuple[str, ...]  # of messages
    names_calls: bool  # a header with a recipient announces a call of it; else calls have marks of their own

    @property
    def texts(self) -> tuple[str, ...]:
        """All marks beside those of a thought."""
        return START, *self.ends


HARMONY = HeaderForm(
    f"{CHANNEL}analysis", f"{CHANNEL}final", (START, CHANNEL), ("<|end|>", "<|return|>", "<|call|>"), names_calls=True
)
MUSE = HeaderForm(" to=self", " to=user", (START,), ("<|eom|>", "<|eot|>"), names_calls=False)


class MessageSink(Protocol):
    """Receiver of the messages that a splitter finds."""

    def begin(self, recipient: str) -> bool:
        """A message to a function begins; returns whether it is handled as a call."""
        ...

    def take(self, channel: Channel, text: str) -> None:
        """Text of a message."""
        ...

    def end(self) -> None:
        """The message ends."""
        ...


class HarmonySplitter:
    """Splits a stream into thinking (in Harmony the channel `analysis`) and answer, wherever it is cut.

    Headers are dropped, except for the function that a message calls. An empty line separates messages of one kind.
    `prompt` is the end of the text that the stream continues, and `spell` says how marks are written in both.
    """

    def __init__(self, prompt: str = ASSISTANT, spell: Callable[[str], str] = str, form: HeaderForm = HARMONY) -> None:
        self.form = form
        self._start, self._message, thought = map(spell, (START, MESSAGE, form.thought))
        self._thought = re.compile(rf"{re.escape(thought)}(?![\w.-])")
        self._ends = tuple(map(spell, form.ends))
        self._begins = tuple(map(spell, form.begins))
        self._channel: Channel = "thinking" if prompt.endswith(thought + self._message) else "answer"
        self._header = "" if prompt.endswith(spell(ASSISTANT)) else None  # what there is of one; None within a text
        self._said: dict[Channel, bool] = {"answer": False, "thinking": False}
        self._fresh = False  # nothing of this message was told yet
        self._held = ""
        self._between = False  # a message has ended, and no other has begun
        self.sink: MessageSink | None = None

    @property
    def in_answer(self) -> bool:
        """Whether the next text belongs to a message to the user."""
        return self._channel == "answer" and self._header is None and not self._between and not self._held

    @property
    def is_inside(self) -> bool:
        """Whether the stream is within a thought."""
        return self._channel == "thinking"

    def push(self, text: str) -> list[tuple[Channel, str]]:
        """Take text; returns the pieces that are certain, in order, none of them empty."""
        self._held += text
        pieces: list[tuple[Channel, str]] = []
        while (found := self._next_mark()) is not None:
            start, mark = found
            self._take(self._held[:start], pieces)
            self._held = self._held[start + len(mark) :]
            self._pass(mark, pieces)
        safe = first_partial(self._held, self._marks())
        self._take(self._held[:safe], pieces)
        self._held = self._held[safe:]
        return pieces

    def flush(self) -> list[tuple[Channel, str]]:
        """Return the rest, which turned out not to be a header."""
        pieces: list[tuple[Channel, str]] = []
        self._show_header(pieces)
        self._take(self._held, pieces)
        self._held = ""
        return pieces

    def _marks(self) -> tuple[str, ...]:
        if self._header is None:
            return (*self._begins, *self._ends)
        return (self._message, self._start, *self._ends)

    def _next_mark(self) -> tuple[int, str] | None:
        found = [(start, mark) for mark in self._marks() if (start := self._held.find(mark)) >= 0]
        return min(found, default=None)

    def _pass(self, mark: str, pieces: list[tuple[Channel, str]]) -> None:
        """Process a mark: into a header, out of one, or out of a message."""
        if mark == self._message:
            header, self._header = self._header or "", None
            self._channel = "thinking" if self._thought.search(header) else "answer"
            self._fresh, self._between = True, False
            called = _RECIPIENT.search(header) if self.form.names_calls else None
            if called and not (self.sink and self.sink.begin(called[1])):
                self._take(f"{called[1]} ", pieces)
            return
        if self.sink is not None and self._header is None:
            self.sink.end()
        self._show_header(pieces)
        if mark in self._ends:
            self._channel, self._between = "answer", True
        else:
            self._header = mark

    def _show_header(self, pieces: list[tuple[Channel, str]]) -> None:
        """Treat a header without a message as text, so that no output of the model is lost."""
        header, self._header = self._header or "", None
        self._take(header, pieces)

    def _take(self, text: str, pieces: list[tuple[Channel, str]]) -> None:
        """Take text between marks, of a header or a message."""
        if self._header is not None:
            self._header += text
        elif text:
            parted = self._fresh and self._said[self._channel]
            text = "\n\n" + text if parted else text
            if self.sink is not None:
                self.sink.take(self._channel, text)
            else:
                pieces.append((self._channel, text))
            self._said[self._channel], self._fresh = True, False
