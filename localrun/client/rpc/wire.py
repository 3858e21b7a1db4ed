"""Messages between a client and an engine in another process: dataclasses as JSON in frames, over two pipes to a
worker, or over a socket to a running localrun that shares its engine.

A frame is four bytes that name the shape of all messages, four bytes of length, and the body. The name changes with
any field of any message, so a peer of another version is noticed at its first frame.
"""

import json
import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, TypeVar, assert_never

from localrun.base import errors
from localrun.base.dataclass import dataclass
from localrun.base.errors import EngineError, LocalrunError
from localrun.base.events import (
    Accepted,
    Done,
    Event,
    ImageProgress,
    Loop,
    ModelInfo,
    Prefill,
    PromptLogprobs,
    Token,
    ToolCallDelta,
)
from localrun.base.request import LoadOptions, Request
from localrun.base.views import CacheView, PromptView
from localrun.client.rpc.codec import WireError, codec

MAX_BODY = 64 << 20
_PIECE = 1 << 20  # most memory that a wrong length can cost


@dataclass(frozen=True, slots=True)
class Load:
    """Load a model; answered by Progress and at last Loaded."""

    options: LoadOptions


@dataclass(frozen=True, slots=True)
class CheckLoad:
    """Check that a model could be loaded if `freed` more bytes of main memory were free; answered by Checked, or by a
    Failure that says why not."""

    options: LoadOptions
    freed: int


@dataclass(frozen=True, slots=True)
class Attach:
    """Use the loaded engine, if it is the one that these options would load; answered by Loaded, or by a Failure that
    names the difference. `version` is that of localrun, `program` is what asks, such as `localrun run`."""

    options: LoadOptions
    version: str
    program: str


@dataclass(frozen=True, slots=True)
class Generate:
    """Answer a request; answered by Begun, then by Events, the last of which is Done."""

    request: Request


@dataclass(frozen=True, slots=True)
class Cancel:
    """End the call of this number: the Done of a generation is the answer, a Failure that of a measurement."""


@dataclass(frozen=True, slots=True)
class RaisePriority:
    """Put the generation of this number into the highest class. Not answered."""


@dataclass(frozen=True, slots=True)
class View:
    """View the cache; answered by Viewed."""


@dataclass(frozen=True, slots=True)
class Preview:
    """Preview a request; answered by Previewed."""

    request: Request
    pieces: bool


@dataclass(frozen=True, slots=True)
class Explain:
    """Measure a topic; answered by Progress, which counts steps, and at last Explained."""

    topic: str


@dataclass(frozen=True, slots=True)
class Call:
    """A call by the client. Its answers carry its number."""

    number: int
    ask: Load | CheckLoad | Attach | Generate | Cancel | RaisePriority | View | Preview | Explain


@dataclass(frozen=True, slots=True)
class Progress:
    """Bytes loaded, and bytes in all."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Loaded:
    """The model is ready."""

    info: ModelInfo


@dataclass(frozen=True, slots=True)
class Checked:
    """The model could be loaded."""


@dataclass(frozen=True, slots=True)
class Begun:
    """The request has arrived: a failure from now on may be its fault."""


@dataclass(frozen=True, slots=True)
class Events:
    """Events since the last ones."""

    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Viewed:
    """Contents of the cache."""

    view: CacheView | None


@dataclass(frozen=True, slots=True)
class Previewed:
    """How the request would be read."""

    view: PromptView | None


@dataclass(frozen=True, slots=True)
class Explained:
    """A measured TopicReport as plain data."""

    report: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Failure:
    """A LocalrunError on its way; it ends the call."""

    kind: str
    message: str
    hint: str
    details: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Alive:
    """Still at work."""


@dataclass(frozen=True, slots=True)
class Ended:
    """Last message, of no call: the engine is not shared any more, with the reason."""

    reason: str


ReplyContent = Progress | Loaded | Checked | Begun | Events | Viewed | Previewed | Explained | Failure


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply of the worker to the call of that number."""

    number: int
    answer: ReplyContent | Alive | Ended


Message = TypeVar("Message", Call, Reply)
SHAPE = zlib.crc32(f"{codec(Call).schema} {codec(Reply).schema}".encode())
_HEADER = struct.Struct("<II")


def pack(message: Call | Reply) -> bytes:
    """One frame. WireError for what cannot travel: a wrong type, a body beyond MAX_BODY."""
    try:
        body = json.dumps(codec(type(message)).encode(message), separators=(",", ":")).encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        raise WireError(str(error)) from None
    if len(body) > MAX_BODY:
        raise WireError(f"{len(body):,} bytes are more than fit into one message ({MAX_BODY:,})")
    return _HEADER.pack(SHAPE, len(body)) + body


def read_messages(stream: BinaryIO, kind: type[Message]) -> Iterator[Message]:
    """Every message until the other end closes. Raises WireError for an invalid or truncated one."""
    decode = codec(kind).decode
    while header := stream.read(_HEADER.size):
        if len(header) < _HEADER.size:
            raise WireError("a message is cut short")
        shape, length = _HEADER.unpack(header)
        if shape != SHAPE or length > MAX_BODY:
            raise WireError("that is no message of this version of localrun; if it was just updated, start it again")
        body = _read_exactly(stream, length)
        try:
            yield decode(json.loads(body))
        except (ValueError, RecursionError) as error:
            raise WireError(f"a message is damaged: {error}") from None


def _read_exactly(stream: BinaryIO, length: int) -> bytearray:
    body = bytearray()
    while len(body) < length:
        piece = stream.read(min(length - len(body), _PIECE))
        if not piece:
            raise WireError("a message is cut short")
        body += piece
    return body


def merged(replies: Sequence[Reply]) -> Iterator[Reply]:
    """The same replies in fewer messages: consecutive events in one, and only the last of consecutive progress."""
    held: Reply | None = None
    for reply in replies:
        if held is not None and held.number == reply.number:
            match held.answer, reply.answer:
                case Events(before), Events(after):
                    held = Reply(reply.number, Events(before + after))
                    continue
                case Progress(), Progress():
                    held = reply
                    continue
        if held is not None:
            yield held
        held = reply
    if held is not None:
        yield held


def is_words(event: Event) -> bool:
    """Whether this is a piece of an answer, of which there are many."""
    match event:
        case Token() | ToolCallDelta():
            return True
        case Accepted() | ImageProgress() | Prefill() | PromptLogprobs() | Loop() | Done():
            return False
        case _:
            assert_never(event)


def as_failure(error: LocalrunError) -> Failure:
    """An error as data."""
    plain = {name: value for name, value in vars(error).items() if isinstance(value, str | int | None)}
    details = {name: value for name, value in plain.items() if name not in ("message", "hint")}
    return Failure(error.kind, error.message, error.hint, details)


def as_error(failure: Failure) -> LocalrunError:
    """The error again, of the class its kind names. Its message is already whole, so no constructor composes it."""
    kind = _KINDS.get(failure.kind, EngineError)
    error = kind.__new__(kind)
    LocalrunError.__init__(error, failure.message, failure.hint)
    vars(error).update(failure.details)
    return error


_KINDS: dict[str, type[LocalrunError]] = {
    value.kind: value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, LocalrunError)
}
