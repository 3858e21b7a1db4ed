"""Ways to give a long text to a model, each with its cost: as it is, condensed, or in parts."""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from localrun.base.content import FilePart, TextPart, text_of
from localrun.base.dataclass import dataclass
from localrun.base.errors import PromptTooLongError
from localrun.base.events import ModelInfo
from localrun.base.request import Request
from localrun.chat.long_text.condensed import Kinds
from localrun.chat.long_text.in_parts import USUAL_CONTEXT, Count, ReadingPlan, plan_reading
from localrun.chat.long_text.pieces import n_bytes
from localrun.chat.long_text.reading_speed import ReadingSpeed
from localrun.chat.token_estimate import about_tokens

SpeedAt = Callable[[int], ReadingSpeed | None]
WayName = Literal["as it is", "condensed", "in parts"]
_FILL = 0.75  # of the context that a text and its question may take; the rest is for the answer
_BYTES_PER_TOKEN = 0.7  # of the context, for a condensed text: about half of it, as logs have tokens of one digit
_MOST_PER_TOKEN = 16  # bytes of a token in a text as a whole; usual are 2 to 6
_WORTH = 0.5  # of the text: one that is condensed to less is offered


@dataclass(frozen=True, slots=True)
class ReadingWay:
    """`part` goes along with the question at once; or it is read as planned, and the notes go along."""

    name: WayName
    part: FilePart
    n_tokens: int  # that the model reads
    time: str = ""  # that this takes, in words; empty where no speed is known
    about: str = ""
    plan: ReadingPlan | None = None

    @property
    def cost(self) -> str:
        """The cost in words."""
        if self.plan is not None:
            return str(self.plan)
        return f"≈{self.n_tokens:,} tokens to read{self.time and f', {self.time}'}"


@dataclass(frozen=True, slots=True)
class WaysToRead:
    """The ways to read a text for a question. UsageError where there is none.

    `speed_at` tells the speed where a token sees so many others on average; None where that is not known.
    """

    question: str
    info: ModelInfo
    count: Count
    speed_at: SpeedAt = lambda seen: None

    def of(self, part: FilePart, first_line: int = 1) -> list[ReadingWay]:
        """All ways, the best one first; the text begins with this line of its file."""
        whole, condensed = self.at_once(part), self.condensed(part, first_line)
        last = whole or self.in_parts(part, first_line)
        return [*([condensed] if condensed else []), last]

    def at_once(self, part: FilePart, name: WayName = "as it is", about: str = "") -> ReadingWay | None:
        """All of a text beside the question; None where it does not fit. To count megabytes would take seconds."""
        if n_bytes(part.text) > _MOST_PER_TOKEN * self._ctx:
            return None
        request = Request(messages=({"role": "user", "content": text_of((part, TextPart(self.question)))},))
        try:
            n_tokens = self.count(request) or about_tokens(part.text)
        except PromptTooLongError:
            return None
        if n_tokens > _FILL * self._ctx:
            return None
        speed = self.speed_at(n_tokens // 2)
        time = speed.words(speed.seconds(n_tokens, 0)) if speed else ""
        return ReadingWay(name, part, n_tokens, time, about)

    def condensed(self, part: FilePart, first_line: int = 1) -> ReadingWay | None:
        """The kinds of lines of a text, at once or in parts; None where that is not much less than the text, or tells
        nothing."""
        kinds = Kinds(part.text, first_line)
        short = kinds.condensed(int(_BYTES_PER_TOKEN * self._ctx))
        if not kinds.are_clear or n_bytes(short.text) > _WORTH * n_bytes(part.text):
            return None
        condensed = FilePart(f"{part.name} condensed", short.text)
        at_once = self.at_once(condensed, "condensed", short.summary)
        return at_once or replace(self.in_parts(condensed), name="condensed", about=short.summary)

    def in_parts(self, part: FilePart, first_line: int = 1) -> ReadingWay:
        """All of a text in parts."""
        speed = self.speed_at(self._ctx // 2)
        plan = plan_reading(part.name, part.text, self.question, self.info, self.count, speed, first_line)
        return ReadingWay("in parts", part, plan.n_tokens, plan=plan)

    @property
    def _ctx(self) -> int:
        return self.info.ctx or USUAL_CONTEXT
