"""Parts of a turn with calls that a template leaves out: the calls, or the text beside them.

They are inserted after rendering, at a marked place: the marks of calls are tokens, as those of a template are, and the
text of arguments stays text.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from localrun.text.message_order import WRITTEN
from localrun.text.tool_calls.syntax import Syntax, WrittenCall

BESIDE = "said_beside"  # of a message: text that is put before its calls
_MAX_OPENED = 80  # characters between the mark of a call and the name in it
_PLACE = "\U000f0000{}\U000f0001"  # characters for private use

Messages = Sequence[Mapping[str, Any]]


def render_written(render: Callable[[Messages], str], messages: Messages, syntax: Syntax) -> str:
    """The text of `messages`, with the missing parts inserted."""
    places: dict[str, str] = {}
    beside: dict[str, str] = {}
    marked = []
    for number, message in enumerate(messages):
        if WRITTEN in message:
            place = _PLACE.format(number)
            places[place] = syntax.write([WrittenCall(**call) for call in message[WRITTEN]])
            message = {key: value for key, value in message.items() if key != WRITTEN}
            message = {**message, "content": _followed(message.get("content"), place)}
        if BESIDE in message and message["tool_calls"]:
            place = _PLACE.format(number)
            beside[place] = message[BESIDE]
            message = _named(message, place)
        marked.append(message)
    text = render(marked)
    for place, calls in places.items():
        text = text.replace(place, calls)
    for place, said in beside.items():
        text = _put_before(text, place, said, syntax.opens)
    return text


def _named(message: Mapping[str, Any], place: str) -> dict[str, Any]:
    """The message with the place before the name of its first call, where every template shows it."""
    first, *others = message["tool_calls"]
    function = {**first["function"], "name": place + first["function"]["name"]}
    calls = [{**first, "function": function}, *others]
    return {**{key: value for key, value in message.items() if key != BESIDE}, "tool_calls": calls}


def _put_before(text: str, place: str, said: str, opens: Sequence[str]) -> str:
    """A text before the mark that opens the call at a place; left out where no mark does."""
    before, _, after = text.rpartition(place)
    before = before.replace(place, "")
    opened = max((before.rfind(mark) for mark in opens if len(mark) > 1), default=-1)
    if opened < len(before) - _MAX_OPENED:
        return before + after
    return f"{before[:opened]}{said}{before[opened:]}{after}"


def _followed(content: Any, place: str) -> Any:
    """Content with the place after it, on a line of its own."""
    if isinstance(content, list):
        return [*content, {"type": "text", "text": place}]
    return f"{content}\n{place}" if content else place
