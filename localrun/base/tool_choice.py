"""Which tools a model may or must call, in the words of OpenAI's protocols, which callers of LLM use, too."""

from collections.abc import Mapping, Sequence
from typing import Any

from localrun.base.dataclass import dataclass
from localrun.base.request import Request, ToolChoice

NEEDED = "auto, none, required, a tool or allowed_tools is needed"
_WORDS: Mapping[str, ToolChoice] = {"auto": "auto", "none": "none", "required": "required", "any": "required"}


@dataclass(frozen=True, slots=True)
class ToolWish:
    """A choice, and the names of the tools that it is limited to; none: all of them. A tool that has to be called is
    called once (`is_single`)."""

    choice: ToolChoice
    allowed: tuple[str, ...] = ()
    is_single: bool = False


def tool_wish(wish: Any) -> ToolWish:
    """A `tool_choice` as it is meant: a word, a tool by name, or several that are allowed. Raises ValueError, which
    says what is needed."""
    if wish is None:
        return ToolWish("auto")
    if isinstance(wish, str) and wish in _WORDS:
        return ToolWish(_WORDS[wish])
    if not isinstance(wish, Mapping):
        raise ValueError(NEEDED)
    if wish.get("type") != "allowed_tools":
        return ToolWish("required", (_name(wish),), is_single=True)
    inner = wish.get("allowed_tools", wish)
    mode, tools = (inner.get("mode", "auto"), inner.get("tools")) if isinstance(inner, Mapping) else ("", ())
    if not isinstance(tools, Sequence) or isinstance(tools, str) or not tools or mode not in ("auto", "required"):
        raise ValueError("a mode, auto or required, and a list of tools are needed")
    return ToolWish(_WORDS[mode], tuple(map(_name, tools)))


def _name(tool: Any) -> str:
    """The name of a function, or of a tool of free text."""
    kind = tool.get("type") if isinstance(tool, Mapping) else None
    if kind in ("function", "custom"):
        inner = tool.get(kind, tool)
        name = inner.get("name") if isinstance(inner, Mapping) else None
        if isinstance(name, str):
            return name
    raise ValueError(NEEDED)


def functions_of(tools: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The functions of tools in the OpenAI shape; what is no function is passed over."""
    functions = [tool.get("function", tool) for tool in tools if isinstance(tool, Mapping)]
    return [function for function in functions if isinstance(function, Mapping)]


def names_of(tools: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The names of tools in the OpenAI shape, each once."""
    names = [function.get("name") for function in functions_of(tools)]
    return tuple(dict.fromkeys(name for name in names if isinstance(name, str)))


def listed_tools(request: Request) -> list[Mapping[str, Any]]:
    """The tools that the beginning of a prompt lists: all but those that its messages describe."""
    described = {*request.described_tools}
    return [tool for tool in request.tools if described.isdisjoint(names_of((tool,)))]
