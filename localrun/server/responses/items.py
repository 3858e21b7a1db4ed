"""Convert the items of OpenAI's Responses into messages for chat templates.

One answer of a model may be several items (thoughts, a message, calls); it becomes one message again. Nothing that a
client sends back of a conversation is refused for its kind: what a model cannot be shown is left out, and named.
"""

import base64
import binascii
import json
from collections.abc import Sequence

from localrun.base.request import Json, RequestMessage
from localrun.server.openai.chat import content_of
from localrun.server.request.json_body import Body
from localrun.server.responses.tools import SEARCH, ClientTools

SEALED = "lr1."  # before the base64 of a thought that a client keeps for us without reading it
_CALLS = ("function_call", "custom_tool_call", "tool_search_call")
_RESULTS = ("function_call_output", "custom_tool_call_output", "tool_search_output")
_ROLES = ("system", "developer", "user", "assistant")


class Conversation:
    """Reads items one after the other. `tools` gets those that come in items.

    `left_out`: names of items that the model is not shown.
    """

    def __init__(self, tools: ClientTools) -> None:
        self._tools = tools
        self.messages: list[RequestMessage] = []
        self.left_out: list[str] = []

    def add(self, items: Sequence[Body]) -> None:
        """Read more items. Raises Refusal."""
        for item in items:
            kind = item.text("type", "message")
            if kind == "message":
                self._message(item)
            elif kind == "reasoning":
                self._begin({"reasoning_content": thought_of(item)})
            elif kind in _CALLS:
                self._call(item)
            elif kind in _RESULTS:
                is_search = kind == "tool_search_output"
                content = self._tools.add_found(item.objects("tools")) if is_search else _output(item)
                self.messages.append({"role": "tool", "tool_call_id": item.text("call_id"), "content": content})
            elif kind == "additional_tools":
                self._tools.add(item.objects("tools"))
            elif kind == "item_reference":
                raise item.wrong("type", "the item itself is needed, or a previous_response_id")
            else:
                self.left_out.append(f"{item.where} ({kind[:40]})")

    def _message(self, item: Body) -> None:
        role = item.choice("role", _ROLES, "")
        if role != "assistant":
            self.messages.append({"role": role, "content": content_of(item)})
        elif self._is_begun():
            self.messages[-1]["content"] = content_of(item)
        else:
            self._begin({"content": content_of(item)})

    def _call(self, item: Body) -> None:
        name = self._tools.shown(item.text("name"), item.text("namespace"))
        match item.text("type"):
            case "custom_tool_call":  # whose input is no JSON
                given = json.dumps({"input": item.text("input")}, ensure_ascii=False)
            case "tool_search_call":
                name, given = SEARCH, json.dumps(item.inner("arguments").values, ensure_ascii=False)
            case _:
                given = item.text("arguments")
        function = {"name": name, "arguments": given or "{}"}
        call = {"id": item.text("call_id"), "type": "function", "function": function}
        if not self.messages or self.messages[-1]["role"] != "assistant":
            self._begin({})
        self.messages[-1].setdefault("tool_calls", []).append(call)

    def _begin(self, values: Json) -> None:
        self.messages.append({"role": "assistant", "content": "", **values})

    def _is_begun(self) -> bool:
        """Whether the last message is an answer that has only thoughts so far."""
        last = self.messages[-1] if self.messages else {}
        return "reasoning_content" in last and not last["content"] and not last.get("tool_calls")


def thought_of(item: Body) -> str:
    """The text of a reasoning item: its content, its sealed thought, or its summary."""
    said = "\n".join(part.text("text") for part in item.objects("content"))
    summary = "\n".join(part.text("text") for part in item.objects("summary"))
    return said or unsealed(item.text("encrypted_content")) or summary


def sealed(thought: str) -> str:
    """A thought encoded for a client to send back."""
    return SEALED + base64.b64encode(thought.encode("utf-8", "replace")).decode()


def unsealed(text: str) -> str:
    """Decode a thought; empty for one that another server encoded."""
    if not text.startswith(SEALED):
        return ""
    try:
        return base64.b64decode(text[len(SEALED) :], validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""


def _output(item: Body) -> str:
    """Output of a tool: a string, or parts; a part that is not text becomes a text that names it."""
    output = item.values.get("output")
    if not isinstance(output, list):
        return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
    parts = item.objects("output")
    return "\n".join(part.text("text") or f"[{part.text('type')}: not shown to a model of text]" for part in parts)
