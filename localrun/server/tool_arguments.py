"""Arguments of a call as a JSON object, for protocols that do not take text."""

import json
from typing import Any

from localrun.base.events import ToolCall
from localrun.base.request import Json


def arguments_of(call: ToolCall) -> Json:
    """The arguments; those of a call that was cut, as far as they are complete."""
    text = call.arguments if call.is_complete else _closed(call.arguments)
    value: Any = json.loads(text or "{}")
    return value if isinstance(value, dict) else {}


def _closed(text: str) -> str:
    """Complete the beginning of a JSON object: close what is open; a missing value becomes null."""
    open_: list[str] = []
    in_string = is_escaped = False
    for letter in text:
        if in_string:
            in_string = is_escaped or letter != '"'
            is_escaped = letter == "\\" and not is_escaped
        elif letter == '"':
            in_string = True
        elif letter in "{[":
            open_.append("}" if letter == "{" else "]")
        elif letter in "}]":
            open_.pop()
    text = (text + '"' * in_string).rstrip()
    text = text.removesuffix(",") if not text.endswith(":") else f"{text} null"
    return text + "".join(reversed(open_))
