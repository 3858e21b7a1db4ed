"""Fields that say which tools a model may or must call, and how many at once."""

from collections.abc import Callable, Collection
from dataclasses import replace

from localrun.base.request import Request
from localrun.base.tool_choice import ToolWish, names_of, tool_wish
from localrun.server.request.json_body import Body

_ANTHROPIC = ("auto", "any", "tool", "none")


def with_tool_choice(request: Request, body: Body, known_as: Callable[[str], Collection[str]] | None = None) -> Request:
    """The request with `tool_choice` and `parallel_tool_calls` of OpenAI's protocols. `known_as` are the names that its
    tools of a client's name are shown under, where these differ. Raises Refusal."""
    try:
        wish = tool_wish(body.values.get("tool_choice"))
    except ValueError as error:
        raise body.wrong("tool_choice", str(error)) from None
    if known_as is not None:
        wish = replace(wish, allowed=tuple(name for one in wish.allowed for name in known_as(one) or [one]))
    return _chosen(request, body, wish, body.flag("parallel_tool_calls", True))


def with_anthropic_tool_choice(request: Request, body: Body) -> Request:
    """The request with `tool_choice` of Anthropic's Messages. Raises Refusal."""
    place = body.inner("tool_choice")
    match place.choice("type", _ANTHROPIC, "auto"):
        case "none":
            wish = ToolWish("none")
        case "any":
            wish = ToolWish("required")
        case "tool":
            wish = ToolWish("required", (place.text("name"),), is_single=True)
        case _:
            wish = ToolWish("auto")
    return _chosen(request, body, wish, not place.flag("disable_parallel_tool_use"))


def _chosen(request: Request, body: Body, wish: ToolWish, is_parallel: bool) -> Request:
    names = names_of(request.tools)
    if wish.choice == "required" and not names:
        raise body.wrong("tool_choice", "a call needs tools: give them, or choose auto")
    for name in wish.allowed:
        if name not in names:
            raise body.wrong("tool_choice", f"none of the tools is named {name[:80]!r}")
    several = is_parallel and not wish.is_single
    return replace(request, tool_choice=wish.choice, allowed_tools=wish.allowed, parallel_tool_calls=several)
