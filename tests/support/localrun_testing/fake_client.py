"""A client without a model: it answers what it is told to, in small pieces, and records what it was asked."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import ClassVar

from localrun.base.events import (
    Accepted,
    Completion,
    Done,
    Event,
    MemoryFigures,
    ModelInfo,
    Prefill,
    StopReason,
    Timings,
    Token,
    ToolCall,
    ToolCallDelta,
)
from localrun.base.request import LoadOptions, Request
from localrun.base.views import ImageView, PromptView, SizeView
from localrun.client.attach.same_load import Versions
from localrun.client.interface import Generation

SIZES = {"small": SizeView(120, 1.5), "full": SizeView(1000, 12.0)}  # of every image


@dataclass
class FakeClient:
    """Stands in for LocalClient. `answer` gives the text for a request, or raises; "…" at its end never ends. `calls`
    come after the text."""

    notes: ClassVar[tuple[str, ...]] = ()  # of its answers
    options: LoadOptions
    answer: Callable[[Request], str]
    requests: list[Request] = field(default_factory=list)
    raised: list[Request] = field(default_factory=list)  # those that were to go first
    closed: bool = False
    calls: Callable[[Request], tuple[ToolCall, ...]] = lambda request: ()
    files: Versions = field(default_factory=dict)  # that it stands for

    @property
    def info(self) -> ModelInfo:
        return ModelInfo("fake", "", "llama", "F32", "reference", "f32", 128, 1 << 20, 1.5, ("a note",), can_roll=True)

    def generate(self, request: Request) -> Generation:
        cancelled = threading.Event()
        return Generation(self.events(request, cancelled), cancelled.set, lambda: self.raised.append(request))

    def events(self, request: Request, cancelled: threading.Event) -> Iterator[Event]:
        self.requests.append(request)
        text = self.answer(request)
        yield Accepted(3)
        yield Prefill(3, 0, 3)
        shown, thinking = "", ""
        reason: StopReason = "stop"
        for number, char in enumerate(text):
            if char == "…":
                cancelled.wait()
            if cancelled.is_set():
                reason = "cancelled"
                break
            if char == "~":  # thinking, one character
                thinking += char
                yield Token(number, char, "thinking")
            else:
                shown += char
                yield Token(number, char, "answer")
        calls = self.calls(request)
        for index, call in enumerate(calls):
            yield from parts_of(index, call)
        n = len(shown) + len(thinking)
        yield Done(
            Completion(
                "fake", "F32", "reference", shown, thinking, reason, 3, 0, n, tuple(range(n)),
                "f32", 128, 7, thinking_tokens=len(thinking), tool_calls=calls, notes=self.notes,
                timings=Timings(1.5, 2.5, 3.5, float("nan"), 4.5, 5.5), memory=MemoryFigures(1000, 2000),
            ),
            prompt_ids=(*request.known_ids, *range(1000, 1003)),
        )  # fmt: skip

    def preview(self, request: Request, pieces: bool = False) -> PromptView:
        text = "".join(str(message["content"]) for message in request.messages)
        images = tuple(ImageView(image.sha256, SIZES) for image in request.images)
        shown = (tuple(map(ord, text)), tuple(text), text) if pieces else ((), (), "")
        return PromptView(len(text), 1, *shown, images)

    def view(self) -> None:
        """It holds nothing."""

    def close(self) -> None:
        self.closed = True

    def __enter__(self) -> "FakeClient":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def parts_of(index: int, call: ToolCall) -> Iterator[ToolCallDelta]:
    """A call in parts of a few characters."""
    yield ToolCallDelta(index, call.id, call.name, "")
    for start in range(0, len(call.arguments), 3):
        yield ToolCallDelta(index, call.id, call.name, call.arguments[start : start + 3])
    if call.is_complete:
        yield ToolCallDelta(index, call.id, call.name, "", is_complete=True)


def last_words(request: Request) -> str:
    """Text of the last message; of a raw prompt nothing."""
    content = request.messages[-1]["content"] if request.messages else ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
