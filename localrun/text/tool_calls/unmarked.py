"""A call that a model writes without its marks: JSON in a fence of Markdown, or alone, as Qwen2.5-Coder does."""

import json

from localrun.text.tool_calls.incoming import BrokenCallError, Waiting
from localrun.text.tool_calls.syntax import CallSink, Tools, WrittenCall, dumps
from localrun.text.tool_calls.values import ValueReader

FENCE = "```"
UNMARKED = (FENCE, "{")  # what begins such an answer
_ARGUMENTS = ("arguments", "parameters")


def read_unmarked(opener: str, reader: ValueReader, sink: CallSink, tools: Tools) -> Waiting[None]:
    """Read an answer whose opener was taken. Raises BrokenCallError where it is anything but one call.

    An example of a call may look the same: a text beside it, a tool that there is none of, or arguments that no call
    with marks could have leave all of it text. So nothing is told before the answer ends.
    """
    incoming = reader.incoming
    if opener == FENCE:
        yield from incoming.match(("json",))
        yield from incoming.expect("{")
    doubled = yield from incoming.match(("{",))  # as the template of Qwen2.5-Coder shows it, by mistake
    if (yield from reader.key(":")) != "name":
        raise BrokenCallError
    name = json.loads((yield from reader.buffered()))
    if not isinstance(name, str) or name not in tools:
        raise BrokenCallError
    yield from incoming.expect(",")
    if (yield from reader.key(":")) not in _ARGUMENTS:
        raise BrokenCallError
    arguments = json.loads((yield from reader.buffered()))
    yield from incoming.expect("}}" if doubled else "}")
    if opener == FENCE:
        yield from incoming.expect(FENCE)
    if (yield from incoming.skip_space()) or not isinstance(arguments, dict):
        raise BrokenCallError
    call = WrittenCall("", name, tools.in_order(name, arguments))
    if not tools.takes(call):
        raise BrokenCallError
    sink.begin(name)
    sink.arguments(dumps(call.arguments))
    sink.end()
