"""Calls of a conversation in a form that its template shows completely.

Templates are written for the calls that one model makes: some take arguments as a map, others as a text, some one call
per turn, some drop the text beside a call, or all calls. detect.py finds by rendering what a template does.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from localrun.base.dataclass import dataclass
from localrun.base.request import Json, TemplateMessage
from localrun.text.message_order import WRITTEN, has_calls, is_result
from localrun.text.tool_calls.dialects import Dialect
from localrun.text.tool_calls.syntax import WrittenCall, dumps
from localrun.text.tool_calls.written import BESIDE

_RESULT = "<tool_response>\n{}\n</tool_response>"


@dataclass(frozen=True, slots=True)
class HistoryForm:
    """A form of calls in messages that a template shows completely."""

    text_arguments: bool = False  # as JSON text, instead of a map
    one_a_turn: bool = False  # each call in a turn of its own, its result behind it
    text_put_in: bool = False  # what is said beside calls is put before them
    text_apart: bool = False  # the same in a turn before
    written: bool = False  # the template shows no calls: they are part of the text
    user_results: bool = False  # results are said by the user

    def apply(self, messages: Sequence[TemplateMessage], dialect: Dialect) -> list[TemplateMessage]:
        """The messages in this form. Ids become valid in the dialect."""
        if not has_calls(messages):
            return list(messages)
        fitted = list(_with_ids(messages, dialect))
        turns = _one_a_turn(fitted) if self.one_a_turn else iter(fitted)
        return [formed for message in turns for formed in self._formed(message)]

    def _formed(self, message: TemplateMessage) -> Iterator[TemplateMessage]:
        calls = _calls(message)
        if is_result(message):
            yield self._result(message)
        elif not calls:
            yield message
        elif self.written:
            rest = {key: value for key, value in message.items() if key != "tool_calls"}
            yield {**rest, "content": message.get("content") or "", WRITTEN: [_plain(call) for call in calls]}
        else:
            content, more = message.get("content") or "", Json()
            if self.text_apart and content:
                yield {"role": "assistant", "content": content}
            elif self.text_put_in and isinstance(content, str) and content:
                more = {BESIDE: content}
            if self.text_apart or more:
                content = ""
            yield {**message, "content": content, "tool_calls": [self._call(call) for call in calls], **more}

    def _call(self, call: WrittenCall) -> Json:
        arguments = dumps(call.arguments) if self.text_arguments else dict(call.arguments)
        return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}

    def _result(self, message: TemplateMessage) -> TemplateMessage:
        if not self.user_results:
            return {**message, "role": "tool"}
        content = message.get("content")
        return {"role": "user", "content": _RESULT.format(content if isinstance(content, str) else dumps(content))}


# The first that a template shows whole is used: the nearer to what the client sent, the earlier.
FORMS = (
    *(
        HistoryForm(text_arguments, one_a_turn, text_put_in, text_apart)
        for text_put_in, text_apart in ((False, False), (True, False), (False, True))
        for one_a_turn in (False, True)
        for text_arguments in (False, True)
    ),
    HistoryForm(written=True),
    HistoryForm(written=True, user_results=True),
)


def _calls(message: TemplateMessage) -> list[WrittenCall]:
    """The well-formed calls in a message."""
    calls = message.get("tool_calls")
    if message.get("role") != "assistant" or not isinstance(calls, list | tuple):
        return []
    functions = [(call, call.get("function", call)) for call in calls if isinstance(call, Mapping)]
    return [
        WrittenCall(str(call.get("id") or ""), str(function.get("name") or ""), _arguments(function.get("arguments")))
        for call, function in functions
        if isinstance(function, Mapping)
    ]


def _arguments(given: Any) -> Mapping[str, Any]:
    """Arguments as a map. Text that is not a JSON object, as of a cut answer, is shown unchanged."""
    if isinstance(given, Mapping):
        return given
    if given is None or (isinstance(given, str) and not given.strip()):
        return {}
    try:
        parsed = json.loads(given) if isinstance(given, str) else given
    except (ValueError, RecursionError):
        parsed = given
    return parsed if isinstance(parsed, dict) else {"arguments": parsed}


def _plain(call: WrittenCall) -> Json:
    return {"id": call.id, "name": call.name, "arguments": dict(call.arguments)}


def _with_ids(messages: Sequence[TemplateMessage], dialect: Dialect) -> Iterator[TemplateMessage]:
    """The messages with ids that are valid in the dialect; results name the called tool."""
    numbers, ids, names = count(), dict[str, str](), dict[str, str]()
    for message in messages:
        if calls := _calls(message):
            fitted = []
            for call in calls:
                ids[call.id] = fitted_id(dialect, call, next(numbers))
                names[call.id] = call.name
                arguments = dict(call.arguments)
                function = {"name": call.name, "arguments": arguments}
                fitted.append({"id": ids[call.id], "type": "function", "function": function})
            yield {**message, "tool_calls": fitted}
        elif is_result(message):
            id = str(message.get("tool_call_id") or "")
            named = {"name": names[id]} if id in names and not message.get("name") else {}
            yield {**message, **named, **({"tool_call_id": ids[id]} if id in ids else {})}
        else:
            yield message


def fitted_id(dialect: Dialect, call: WrittenCall, number: int) -> str:
    """An id in the form of a dialect; a valid one stays unchanged."""
    if dialect.id_form == "numbered":
        return f"functions.{call.name}:{number}"
    if dialect.id_form == "nine" and not (len(call.id) == 9 and call.id.isascii() and call.id.isalnum()):
        return hashlib.sha256(f"{number} {call.id}".encode()).hexdigest()[:9]
    return call.id


def _one_a_turn(messages: Sequence[TemplateMessage]) -> Iterator[TemplateMessage]:
    """Each call in a turn of its own, followed by its results."""
    position = 0
    while position < len(messages):
        message, position = messages[position], position + 1
        calls = message.get("tool_calls", ()) if _calls(message) else ()
        if len(calls) < 2:
            yield message
            continue
        end = next((i for i in range(position, len(messages)) if not is_result(messages[i])), len(messages))
        results, position = messages[position:end], end
        ids = [call["id"] for call in calls]
        for number, call in enumerate(calls):
            first = {} if number else message
            yield {"role": "assistant", "content": "", **first, "tool_calls": [call]}
            yield from (result for place, result in enumerate(results) if _owner(result, place, ids) == number)


def _owner(result: TemplateMessage, place: int, ids: Sequence[str]) -> int:
    """The index of the call that a result belongs to: by id, else by position."""
    id = result.get("tool_call_id")
    return ids.index(id) if id in ids else min(place, len(ids) - 1)
