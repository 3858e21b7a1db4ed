"""The neutral request of every protocol, and the codec that writes an answer back: one stream of events, thin codecs.

A codec is one file for one protocol. It reads a body into an InferenceRequest and writes the events of the engine
(base/events.py) as its protocol has them; whatever else there is to do is done once, for all of them (respond.py).
"""

from abc import ABC, abstractmethod
from typing import ClassVar

from localrun.base.dataclass import dataclass
from localrun.base.events import Completion, Event, ModelInfo
from localrun.base.request import Json, Priority, Request
from localrun.server.refusal import Refusal


@dataclass(frozen=True, slots=True)
class InferenceRequest:
    """A request of any protocol."""

    model: str  # as the client names it; empty: the loaded one
    requests: tuple[Request, ...]  # one for each prompt; none: only load the model
    is_stream: bool
    n: int = 1  # answers to each prompt
    priority: Priority = "api"  # where no header says otherwise
    session: str = ""  # the client's name for the conversation; empty: none
    chain: str = ""  # first response of the chain that it continues: identifies conversations without a name
    keep_alive: float | None = None  # seconds that the model stays loaded, or inf; None: the server's setting
    ignored: tuple[str, ...] = ()  # fields that have no effect here
    is_held: bool = False  # a stream that is held open while it cannot be answered, instead of being refused
    with_figures: bool = True  # whether the answer has a `localrun` object

    @property
    def n_answers(self) -> int:
        """Answers in all, numbered prompt by prompt."""
        return self.n * len(self.requests)


class Codec(ABC):
    """Writes one answer in one protocol; one object for each request. Bytes are whole frames of its stream."""

    media_type: ClassVar[str]  # of a stream
    constraint_field: ClassVar[str] = ""  # of a request, with the constraint on the answer

    def __init__(self, asked: InferenceRequest) -> None:
        self.asked, self.model = asked, asked.model
        self.figures: Json | None = None  # the `localrun` object; set before the Done of an answer

    @property
    def figures_field(self) -> Json:
        """The `localrun` field of the last frame of a stream; empty where it is not wanted."""
        return {"localrun": self.figures} if self.figures else {}

    def begin(self, info: ModelInfo | None) -> bytes:
        """The head of a stream, before anything else of it; `info` is None while no model is loaded."""
        self.know(info)
        return b""

    def know(self, info: ModelInfo | None) -> None:
        """Name the model that answers, where the client named none."""
        if info is not None:
            self.model = self.model or info.name

    @abstractmethod
    def event(self, index: int, event: Event) -> bytes:
        """An event of the answer with this number, from 0 on; Done is the last of each. Gets every event; where
        the answer is sent whole, the bytes are not used."""

    @abstractmethod
    def end(self) -> bytes:
        """The foot of a stream, after every answer is done."""

    @abstractmethod
    def ping(self) -> bytes:
        """A frame that keeps the connection alive while there is nothing to send."""

    @abstractmethod
    def failure(self, refusal: Refusal) -> bytes:
        """The end of a stream that failed."""

    @abstractmethod
    def whole(self, info: ModelInfo | None, completions: list[Completion]) -> Json:
        """The body of an answer that is not streamed."""
