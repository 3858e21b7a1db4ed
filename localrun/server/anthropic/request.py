"""Parse the bodies of Anthropic's Messages into requests for chat templates."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from localrun.base.request import Json, Request, RequestMessage, Think
from localrun.server.inference import InferenceRequest
from localrun.server.openai.chat import as_content, parts_of, text_of
from localrun.server.openai.fields import MAX_STOPS, max_tokens, sampling
from localrun.server.request.constraint_fields import output_format
from localrun.server.request.fields import inference_request, is_begun
from localrun.server.request.function_tools import tool_name
from localrun.server.request.images import is_image
from localrun.server.request.json_body import Body
from localrun.server.request.tool_choice_fields import with_anthropic_tool_choice

IGNORED = (
    *("cache_control", "context_management", "service_tier", "inference_geo", "speed", "betas", "user_profile_id"),
    *("thinking.budget_tokens", "thinking.display", "output_config.effort"),
)
REFUSED = ("mcp_servers", "container")
_THINK: dict[str, Think] = {"enabled": "on", "disabled": "off", "adaptive": "auto", "between_tools": "auto"}
_BILLING = re.compile(r"x-anthropic-billing-header:[^\n]*\n*")  # it changes with each request: nothing would be cached
_OF_SERVERS = re.compile(  # blocks of other servers' answers
    r"redacted_thinking|fallback|(server|mcp)_tool_use|mcp_tool_listing|(?!tool_result$)\w+_tool_result"
)
_OWN_TOOLS = ("", "custom")  # types of tools that the client runs


def read_messages(body: Body) -> InferenceRequest:
    """The request of a body. Raises Refusal, naming the field."""
    _refuse(body)
    tools = body.objects("tools")
    offered = {tool.text("name"): tool for tool in tools if tool.text("type") in _OWN_TOOLS}
    functions = {name: _tool(tool) for name, tool in offered.items()}
    found = _found(body, offered)
    messages = tuple(_messages(body, {name: functions[name]["function"] for name in found}))
    request = Request(
        messages=messages,
        sampling=sampling(body),
        max_tokens=max_tokens(body, "max_tokens"),
        stop=tuple(filter(None, body.texts("stop_sequences", MAX_STOPS))),
        think=_THINK[body.inner("thinking").choice("type", tuple(_THINK), "adaptive")],
        tools=tuple(functions.values()),
        described_tools=found,
        continues=is_begun(messages),
        constraint=output_format(body),
    )
    asked = inference_request(body, (with_anthropic_tool_choice(request, body),), IGNORED)
    left_out = (tool.place("type") for tool in tools if tool.text("type") not in _OWN_TOOLS)
    return replace(asked, session=body.inner("metadata").text("user_id"), ignored=(*asked.ignored, *left_out))


def _refuse(body: Body) -> None:
    """Refuse fields that would silently have no effect."""
    for name in REFUSED:
        if body.values.get(name):
            raise body.wrong(name, "localrun has none of this")


def _found(body: Body, offered: Mapping[str, Body]) -> tuple[str, ...]:
    """Deferred tools that a search of the client has found, as its results say."""
    results = [part for turn in body.objects("messages") for part in parts_of(turn) if _is(part, "tool_result")]
    references = [part for result in results for part in parts_of(result) if _is(part, "tool_reference")]
    named = {part.text("tool_name") for part in references}
    return tuple(name for name, tool in offered.items() if name in named and tool.flag("defer_loading"))


def _is(part: Body, kind: str) -> bool:
    return bool(part.values.get("type") == kind)


def _messages(body: Body, found: dict[str, Json]) -> Iterator[RequestMessage]:
    """The system prompt, and all turns. `found`: functions to be described where they are first referred to."""
    turns = body.objects("messages")
    if not turns:
        raise body.wrong("messages", "at least one message is needed")
    parts = [_without_billing(part) for part in parts_of(body, "system")]
    if system := text_of(part for part in parts if part.values.get("text") != ""):
        yield {"role": "system", "content": system}
    called: dict[str, str] = {}  # id of a call -> the tool
    for turn in turns:
        match turn.choice("role", ("user", "assistant", "system"), ""):
            case "assistant":
                yield _answer(turn, called)
            case role:
                yield from _asked(turn, role, called, found)


def _without_billing(part: Body) -> Body:
    if "text" not in part:
        return part
    return Body({**part.values, "text": _BILLING.sub("", part.text("text"), 1)}, part.where)


def _asked(turn: Body, role: str, called: dict[str, str], found: dict[str, Json]) -> Iterator[RequestMessage]:
    """Tool results first, in their order, then their images, for which templates have no place, and the user's text."""
    parts = _parts(turn)
    results = [part for part in parts if _is(part, "tool_result")]
    images: list[Body] = []
    for result in results:
        said_parts, number = [_referred(part, found) for part in _parts(result)], result.text("tool_use_id")
        text = text_of(part for part in said_parts if not is_image(part))
        images += filter(is_image, said_parts)
        said = f"The tool failed: {text}" if result.flag("is_error") else text
        named = {"name": called[number]} if number in called else {}
        yield {"role": "tool", "tool_call_id": number, **named, "content": said}
    content = as_content([*images, *(part for part in parts if part not in results)])
    if content or not results:
        yield {"role": role, "content": content}


def _parts(of: Body) -> list[Body]:
    """Content as a list of parts; those that only Anthropic has become texts and documents."""
    return [_readable(part) for part in parts_of(of)]


def _referred(part: Body, found: dict[str, Json]) -> Body:
    """A reference to a tool as the description of its function, the first time; else its name."""
    if not _is(part, "tool_reference"):
        return part
    name = part.text("tool_name")
    return Body({"text": json.dumps(found.pop(name, {"name": name}), ensure_ascii=False)}, part.where)


def _readable(part: Body) -> Body:
    match part.values.get("type"):
        case "search_result":
            source = {"type": "content", "content": part.values.get("content")}
            document = {"title": part.text("title"), "context": part.text("source"), "source": source}
            return Body({"type": "document", **document}, part.where)
        case "compaction":  # a summary of what was said before
            return Body({"text": part.text("content")}, part.where)
    return part


def _answer(turn: Body, called: dict[str, str]) -> RequestMessage:
    thoughts, calls, texts = [], [], []
    for part in _parts(turn):
        match part.text("type", "text"):
            case "thinking":
                thoughts.append(part.text("thinking"))
            case kind if _OF_SERVERS.fullmatch(kind):
                pass
            case "tool_use":
                calls.append(_call(part))
                called[part.text("id")] = part.text("name")
            case _:
                texts.append(part)
    message: RequestMessage = {"role": "assistant", "content": text_of(texts)}
    if thought := "\n".join(filter(None, thoughts)):
        message["reasoning_content"] = thought
    if calls:
        message["tool_calls"] = calls
    return message


def _call(part: Body) -> Json:
    arguments = json.dumps(part.inner("input").values, ensure_ascii=False)
    return {
        "id": part.text("id"),
        "type": "function",
        "function": {"name": part.text("name"), "arguments": arguments},
    }


def _tool(tool: Body) -> Json:
    function: Json = {"name": tool_name(tool)}
    if "description" in tool:
        function["description"] = tool.text("description")
    if tool.flag("strict"):
        function["strict"] = True
    return {"type": "function", "function": {**function, "parameters": tool.inner("input_schema").values}}
