"""Tools in words: a system message for models whose template has no place for tools."""

from collections.abc import Mapping, Sequence
from typing import Any

from localrun.base.content import parts_of
from localrun.base.request import TemplateMessage
from localrun.text.tool_calls.syntax import Syntax, WrittenCall, dumps

_WORDS = """You may call functions to help with what the user asks. They are, as JSON schemas:
<tools>
{}
</tools>
To call one, end your answer with its name and arguments in this form:
{}
The result follows."""
_EXAMPLE = WrittenCall("", "name_of_the_function", {"name_of_an_argument": "value"})


def with_tools_in_words(
    messages: Sequence[TemplateMessage], tools: Sequence[Mapping[str, Any]], syntax: Syntax
) -> list[TemplateMessage]:
    """The messages with the tools, and how to call them, described in the first system message."""
    words = _WORDS.format("\n".join(dumps(dict(tool)) for tool in tools), syntax.write([_EXAMPLE]))
    if not messages or messages[0].get("role") not in ("system", "developer"):
        return [{"role": "system", "content": words}, *messages]
    first, *others = messages
    content = first.get("content")
    if isinstance(content, list):
        return [{**first, "content": [*parts_of(content), {"type": "text", "text": f"\n\n{words}"}]}, *others]
    return [{**first, "content": f"{content}\n\n{words}" if content else words}, *others]
