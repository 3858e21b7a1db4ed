"""The neutral request of every protocol, and the codec that writes an answer back: one stream of events, thin codecs.

A codec is one file for one protocol. It reads a body into an InferenceRequest and writes the events of the engine
(base/events.py) as its protocol has them; whatever else there is to do is done once, for all of them (respond.py).
"""

from dataclasses import dataclass
from typing import Any, Protocol

from localrun.base.events import Completion, Event, ModelInfo
from localrun.base.request import Priority, Request
from localrun.server.refusal import Refusal

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class InferenceRequest:
    """A request of any protocol."""

    model: str  # as the client names it; empty for the one that is loaded
    requests: tuple[Request, ...]  # one for each prompt; none: the model is loaded, and that is all
    is_stream: bool
    n: int = 1  # answers to each prompt
    priority: Priority = "api"  # where no header says otherwise
    session: str = ""  # what the client calls the conversation; empty: it does not say
    keep_alive: float | None = None  # seconds that the model stays loaded, or inf; None: as the server was told
    ignored: tuple[str, ...] = ()  # fields that have no effect here
    is_held: bool = False  # a stream that is held open while it cannot be answered, instead of being refused
    with_figures: bool = True  # whether the answer tells of itself in a `localrun` object

    @property
    def n_answers(self) -> int:
        """Answers in all, numbered prompt by prompt."""
        return self.n * len(self.requests)


class Codec(Protocol):
    """Writes one answer in one protocol; made for each request. Bytes are whole frames of its stream."""

    media_type: str  # of a stream
    figures: Json | None  # the `localrun` object; set before the Done of an answer, and sent with the end of a stream

    def begin(self, info: ModelInfo | None) -> bytes:
        """The head of a stream, before anything else of it; `info` is None while no model is loaded."""
        ...

    def event(self, index: int, event: Event) -> bytes:
        """An event of the answer with this number, from 0 on; Done is the last of each. Hears of every event, and where
        the answer is sent whole its bytes are left out."""
        ...

    def end(self) -> bytes:
        """The foot of a stream, after every answer is done."""
        ...

    def ping(self) -> bytes:
        """A frame that keeps a client waiting while there is nothing to say."""
        ...

    def failure(self, refusal: Refusal) -> bytes:
        """The end of a stream that goes no further."""
        ...

    def whole(self, info: ModelInfo, completions: list[Completion]) -> Json:
        """The body for a client that asked for no stream."""
        ...
