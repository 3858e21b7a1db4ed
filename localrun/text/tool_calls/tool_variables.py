"""Template variables that carry the tools."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

GivenTools: TypeAlias = Sequence[Mapping[str, Any]]
ToolVariables: TypeAlias = Callable[[GivenTools], dict[str, Any]]


def no_tools(tools: GivenTools) -> dict[str, Any]:
    """No variables, for a template that has no place for tools."""
    return {}


def _as_given(tools: GivenTools) -> dict[str, Any]:
    """Tools as OpenAI's clients send them, and nearly every template takes them."""
    return {"tools": list(tools)}


def _bare(tools: GivenTools) -> dict[str, Any]:
    """The functions without the wrapper."""
    return {"tools": [tool.get("function", tool) for tool in tools]}


def _as_xml_tools(tools: GivenTools) -> dict[str, Any]:
    """Tools under the name that SmolLM3 uses."""
    return {"tools": list(tools), "xml_tools": list(tools)}


TOOL_VARIABLES: tuple[ToolVariables, ...] = (_as_given, _bare, _as_xml_tools)
