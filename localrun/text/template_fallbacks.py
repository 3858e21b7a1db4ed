"""Equivalent inputs for a template that fails on the usual one."""

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from typing import Any

TemplateContext = dict[str, Any]


def variants(context: TemplateContext) -> Iterator[TemplateContext]:
    """`context` with one change, then with two, and so on; only changes that have an effect."""
    useful = [change for change in _CHANGES if change(deepcopy(context))]
    for n_changes in range(len(useful) + 1):
        for changes in itertools.combinations(useful, n_changes):
            changed = deepcopy(context)
            for change in changes:
                change(changed)
            yield changed


def plain_messages(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Messages with text parts joined and tool arguments parsed, as all templates understand them."""
    context = {"messages": deepcopy([dict(message) for message in messages])}
    _parse_arguments(context)
    _join_parts(context)
    return context["messages"]


def called_functions(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The {name, arguments} of the well-formed tool calls in a message."""
    calls = message.get("tool_calls")
    calls = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    functions = [call.get("function", call) for call in calls]
    return [function for function in functions if isinstance(function, dict)]


def _parse_arguments(context: TemplateContext) -> bool:
    """Arguments of tool calls as a map: OpenAI writes them as JSON text, most templates want the map."""
    return _change_arguments(context, str, json.loads)


def _print_arguments(context: TemplateContext) -> bool:
    return _change_arguments(context, dict, lambda value: json.dumps(value, ensure_ascii=False))


def _join_parts(context: TemplateContext) -> bool:
    """Content in parts as one text, for templates that know only text."""
    changed = False
    for message in context["messages"]:
        parts = message.get("content")
        if isinstance(parts, list) and all(isinstance(part, dict) and part.get("type") == "text" for part in parts):
            message["content"] = "\n".join(str(part.get("text", "")) for part in parts)
            changed = True
    return changed


def split_texts(context: TemplateContext) -> None:
    """Content as a list of one text, for templates that know only parts."""
    for message in context["messages"]:
        if isinstance(text := message.get("content"), str):
            message["content"] = [{"type": "text", "text": text}]


def _merge_system(context: TemplateContext) -> bool:
    """The system message in front of the first user message, for models without a system role."""
    messages = context["messages"]
    if len(messages) < 2 or messages[0].get("role") != "system" or messages[1].get("role") != "user":
        return False
    texts = [message.get("content") for message in messages[:2]]
    if not all(isinstance(text, str) for text in texts):
        return False
    messages[:2] = [messages[1] | {"content": "\n\n".join(texts)}]
    return True


def _list_tools(context: TemplateContext) -> bool:
    """No tools as an empty list, for templates that loop over them unconditionally."""
    if context.get("tools") is not None:
        return False
    context["tools"] = []
    return True


def _empty_contents(context: TemplateContext) -> bool:
    """Missing content as an empty text."""
    missing = [message for message in context["messages"] if "content" not in message]
    for message in missing:
        message["content"] = ""
    return bool(missing)


def _name_functions(context: TemplateContext) -> bool:
    """Tools as JSON text called `functions`, for templates such as Firefunction's; no tools as no text."""
    if "functions" in context:
        return False
    functions = [tool.get("function", tool) for tool in context.get("tools") or ()]
    context["functions"] = json.dumps(functions, ensure_ascii=False, indent=4) if functions else ""
    return True


def _complete_tools(context: TemplateContext) -> bool:
    """Tools with the descriptions and parameters that a schema may leave out, for templates such as Command R+'s."""
    before = deepcopy(context.get("tools"))
    for tool in context.get("tools") or ():
        function = tool.get("function", tool)
        if not isinstance(function, dict):
            continue
        function.setdefault("description", "")
        parameters = function.setdefault("parameters", {"type": "object"})
        properties = parameters.setdefault("properties", {}) if isinstance(parameters, dict) else {}
        for schema in properties.values() if isinstance(properties, dict) else ():
            if isinstance(schema, dict):
                schema.setdefault("description", "")
    return before != context.get("tools")


_CHANGES: tuple[Callable[[TemplateContext], bool], ...] = (
    _parse_arguments,
    _join_parts,
    _list_tools,
    _merge_system,
    _empty_contents,
    _complete_tools,
    _print_arguments,
    _name_functions,
)


def _change_arguments(context: TemplateContext, kind: type, change: Callable[[Any], Any]) -> bool:
    changed = False
    for message in context["messages"]:
        for function in called_functions(message):
            if isinstance(function.get("arguments"), kind):
                with suppress(ValueError, RecursionError):
                    function["arguments"] = change(function["arguments"])
                    changed = True
    return changed
