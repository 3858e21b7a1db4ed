"""A text that is longer than the model sees at once: parts of it, and reading it in parts."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from localrun.base.content import FilePart
from localrun.base.errors import UsageError
from localrun.base.events import Completion, Done, Prefill
from localrun.base.request import Request
from localrun.base.units import gib
from localrun.chat.attachments import MAX_BYTES
from localrun.chat.long_text.in_parts import USUAL_CONTEXT, ReadingPlan, bytes_per_token, note_request
from localrun.chat.long_text.kept_notes import KeptNotes
from localrun.chat.long_text.part_of_text import TextRange, part_of, take
from localrun.chat.long_text.part_reader import PartReader
from localrun.chat.long_text.pieces import n_bytes
from localrun.chat.long_text.question_words import found_parts
from localrun.chat.long_text.reading_speed import reading_speed
from localrun.chat.long_text.ways_to_read import ReadingWay, WaysToRead
from localrun.chat.token_estimate import about_tokens
from localrun.client.interface import Cancellation

if TYPE_CHECKING:
    from localrun.client.interface import EngineClient
    from localrun_tui.state.session import Session

_BYTES_PER_TOKEN = 2  # at least, in logs and code


class LongText:
    """A text of `name`, and the model of the session. All but `size` takes a moment: call it on a thread."""

    def __init__(self, session: "Session", name: str, text: str) -> None:
        self.name, self.text = name, text
        self._session = session
        path = session.chat.tree.path(session.chat.tree.head) if session.chat else []
        self._answers = [message.stats for message in reversed(path)]

    @property
    def ctx(self) -> int:
        """Tokens that the model sees; 0 where that is not known yet."""
        info = self._session.info
        return info.ctx if info else 0

    @property
    def waits(self) -> bool:
        """Whether the model is being loaded."""
        return self._session.model.loading and self._session.model.client is None

    @property
    def size(self) -> str:
        """The size in words."""
        n_lines = self.text.count("\n") + (not self.text.endswith("\n"))
        seen = f"; the model sees {self.ctx:,} tokens at once" if self.ctx else ""
        return f"{self.name}: {gib(n_bytes(self.text))}, {n_lines:,} lines{seen}"

    def n_tokens(self, part: FilePart) -> int:
        """Estimate of the tokens of a part: by a sample, as plans have it, or by its length while there is no model."""
        size, client = n_bytes(part.text), self._session.model.client
        if not size or client is None or self.waits:
            return about_tokens(part.text)

        def count(sample: str) -> int:
            return self._count(note_request("", self.name, sample, 1))

        around = count("")
        ctx = self.ctx or USUAL_CONTEXT
        return round(size / bytes_per_token(part.text, ctx, lambda sample: count(sample) - around))

    def part(self, typed: str) -> FilePart:
        """The part that was typed, or all of it. UsageError where there is no such part."""
        if not typed.strip():
            return FilePart(self.name, self.text)
        part = _range(typed.strip())
        return FilePart(f"{self.name}:{part.name}", take(self.text, part))

    def is_long(self, typed: str) -> bool:
        """Whether a part is longer than what the model sees, by estimate."""
        return 0 < _BYTES_PER_TOKEN * self.ctx < n_bytes(self.part(typed).text)

    def attachable(self, typed: str) -> FilePart:
        """The part, to go along with a message as it is. UsageError where it is too long for that."""
        part = self.part(typed)
        if n_bytes(part.text) > MAX_BYTES:
            raise UsageError(f"{part.name} is too long for one message", "type a smaller part, or a question")
        return part

    def ways(self, typed: str, question: str) -> list[ReadingWay]:
        """The ways to read the part for a question, the best one first. UsageError where there is none."""
        from localrun.fit.machine_rates import machine_rates

        client, part = self._model, self.part(typed)
        speed_at = partial(reading_speed, self._answers, client.info, machine_rates())
        first = _range(typed.strip()).first_line(self.text) if typed.strip() else 1
        ways = WaysToRead(question, client.info, self._count, speed_at).of(part, first)
        return [self._known(way) for way in ways]

    def _known(self, way: ReadingWay) -> ReadingWay:
        """The way with what was read before."""
        if way.plan is None:
            return way
        n_known = KeptNotes(way.plan, self._model.info).known(way.plan)
        return replace(way, plan=replace(way.plan, n_known=n_known))

    def found(self, question: str) -> list[tuple[str, int]]:
        """Parts with words of the question that leave half of the context free, each with the number of its lines."""
        return list(found_parts(self.text, question, _BYTES_PER_TOKEN * (self.ctx or USUAL_CONTEXT) // 2))

    def read(
        self, plan: ReadingPlan, tell: Callable[[PartReader, float, str], object], stop: Cancellation
    ) -> PartReader:
        """Read as planned; `tell` gets the reader, the share of the part under way that is read, and each note."""

        def ask(request: Request) -> Completion:
            for event in stop.watch(self._model.generate(request)):
                if isinstance(event, Prefill):
                    tell(reader, event.done / max(event.total, 1), "")
                elif isinstance(event, Done):
                    return event.completion
            raise AssertionError("a stream ends with Done or raises")

        reader = PartReader(plan, ask, KeptNotes(plan, self._model.info))
        tell(reader, 0.0, "")
        for note in reader.read():
            tell(reader, 0.0, str(note) if note.text else "")
        return reader

    @property
    def _model(self) -> "EngineClient":
        if self.waits:
            raise UsageError("the model is being loaded", "then you see what reading costs")
        if (client := self._session.model.client) is None:
            raise UsageError("no model is loaded", "Ctrl+O chooses one")
        return client

    def _count(self, request: Request) -> int:
        view = self._model.preview(request)
        return view.n_tokens if view is not None else 0


def _range(typed: str) -> TextRange:
    """The part that was typed; anything that is none are words to look for."""
    try:
        return part_of(typed)
    except UsageError:
        if not typed.strip("-/ "):
            raise
        return part_of(f"/{typed}/")
