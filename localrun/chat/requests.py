"""Messages of a chat in the form that engines get."""

from collections.abc import Iterator, Sequence
from dataclasses import field
from itertools import chain
from typing import assert_never

from localrun.base.content import (
    CallPart,
    Content,
    FilePart,
    ImagePart,
    ResultPart,
    TextPart,
    as_message_content,
    has_calls,
    parts_of,
)
from localrun.base.dataclass import dataclass
from localrun.base.request import RequestMessage
from localrun.chat.tree import Message

NO_RESULT = "(there is no result: this call was not run)"
APART = "\n\n"  # between texts, or thoughts, of two generations of one answer
_ROLES = ("system", "user", "assistant")


def exported_messages(messages: Sequence[Message], system: str = "") -> list[RequestMessage]:
    """Messages in the OpenAI format. A placeholder for a lost one is left out where turns would not alternate."""
    shown = [message for message in messages if message.role in _ROLES]
    roles_before = [None, *(message.role for message in shown)]
    turns = [m for before, m in zip(roles_before, shown, strict=False) if not (m.lost and m.role == before)]
    first = [{"role": "system", "content": system}] if system else []
    return [*first, *chain.from_iterable(map(_request_messages, turns))]


def request_messages(messages: Sequence[Message], system: str = "") -> list[RequestMessage]:
    """Messages for an engine. An answer without a thought has an empty one: its text is all answer, even with tags."""
    shown = exported_messages(messages, system)
    return [{"reasoning_content": "", **message} if message["role"] == "assistant" else message for message in shown]


def _request_messages(message: Message) -> Iterator[RequestMessage]:
    """One message, or for an answer with calls one for each generation and each result."""
    if not has_calls(message.content):
        more = {"reasoning_content": message.thinking} if message.thinking else {}
        yield {"role": message.role, "content": as_message_content(message.content), **more}
        return
    told = 0  # characters of the thinking
    for one in _generations(message.content):
        end = one.calls[-1].thought_end if one.calls else len(message.thinking)
        thought, told = message.thinking[told:end], end
        if one.calls:
            thought = thought.removesuffix(APART)
        if one.calls or one.texts or thought:
            yield assistant_message("\n\n".join(one.texts), thought, one.calls)
        for call in one.calls:
            text = next((result.text for result in one.results if result.id == call.id), NO_RESULT)
            yield tool_message(call, text)


@dataclass(slots=True)
class _Generation:
    """A part of an answer that was generated in one go, and the results of its calls."""

    texts: list[str] = field(default_factory=list)
    calls: list[CallPart] = field(default_factory=list)
    results: list[ResultPart] = field(default_factory=list)


def _generations(content: Content) -> Iterator[_Generation]:
    """The generations of an answer: one ends where another part follows calls and results."""
    one = _Generation()
    for part in content:
        if one.calls and not isinstance(part, ResultPart) and (one.results or not isinstance(part, CallPart)):
            yield one
            one = _Generation()
        match part:
            case CallPart():
                one.calls.append(part)
            case ResultPart():
                one.results += [part] if one.calls else []
            case TextPart(text):
                one.texts.append(text)
            case FilePart() | ImagePart():  # of a user
                pass
            case _:
                assert_never(part)
    yield one


def assistant_message(text: str, thought: str, calls: Sequence[CallPart]) -> RequestMessage:
    """One generation of an answer in the OpenAI format."""
    message: RequestMessage = {"role": "assistant", "content": text}
    if thought:
        message["reasoning_content"] = thought
    if calls:
        functions = [(call.id, {"name": call.name, "arguments": call.arguments}) for call in calls]
        message["tool_calls"] = [{"id": id, "type": "function", "function": function} for id, function in functions]
    return message


def tool_message(call: CallPart, text: str) -> RequestMessage:
    """The result of a call in the OpenAI format."""
    return {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": text}


def in_turn(messages: Sequence[RequestMessage]) -> list[RequestMessage]:
    """Join unanswered messages of the user to the next one, since templates want alternating turns."""
    merged: list[RequestMessage] = []
    for message in messages:
        if merged and message["role"] == "user" == merged[-1]["role"]:
            merged[-1] = {**message, "content": _joined(merged[-1]["content"], message["content"])}
        else:
            merged.append(message)
    return merged


def _joined(first: object, second: object) -> object:
    """Join the content of two messages."""
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    return [*parts_of(first), *parts_of(second)]
