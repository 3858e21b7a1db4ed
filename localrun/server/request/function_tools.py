"""Functions that a client offers, checked as far as every form of calls needs it."""

import re

from localrun.base.request import Json
from localrun.server.request.json_body import Body

_NAME = re.compile(r"[\w.-]{1,128}")  # OpenAI's and Anthropic's, and dots as MCP has them, in any script


def function_tools(body: Body) -> tuple[Json, ...]:
    """`tools` of chat completions and of Ollama's chat, unchanged. Raises Refusal for one that is no function."""
    tools = body.objects("tools")
    for tool in tools:
        if "function" not in tool and tool.text("type", "function") != "function":
            raise tool.wrong("type", "only functions are called here")
        function = tool.inner("function") if "function" in tool else tool  # some clients leave the outer object out
        tool_name(function)
        function.inner("parameters")
    return tuple(tool.values for tool in tools)


def tool_name(tool: Body) -> str:
    """The name of a tool. Raises Refusal where calls could not be told by it."""
    name = tool.text("name")
    if not _NAME.fullmatch(name):
        raise tool.wrong("name", "1 to 128 letters, digits, underscores, hyphens and dots are needed")
    return name
