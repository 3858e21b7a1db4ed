"""Conversations that chat templates are tried on."""

from typing import Any

USER = {"role": "user", "content": "Hello, héllo 天? <b>&amp; 😀"}
ASSISTANT = {"role": "assistant", "content": "I am fine!"}
SYSTEM = {"role": "system", "content": "Be brief."}
TOOL_RESULT = {"role": "tool", "tool_call_id": "call12345", "name": "get_weather", "content": "5C"}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Weather <b> & 'x' é",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "City"},
                    "unit": {"type": "string", "enum": ["c", "f"]},
                },
                "required": ["city"],
            },
        },
    },
    {
        "type": "function",
        "function": {"name": "now", "description": "Time", "parameters": {"type": "object", "properties": {}}},
    },
]


def tool_call(arguments: Any, **more: Any) -> dict[str, Any]:
    """An assistant message that calls get_weather."""
    call = {"id": "call12345", "type": "function", "function": {"name": "get_weather", "arguments": arguments}}
    return {"role": "assistant", "content": "", "tool_calls": [call], **more}


def _parts(*texts: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text} for text in texts]


# name -> (messages, arguments of the template)
CONVERSATIONS: dict[str, tuple[list[dict[str, Any]], dict[str, Any]]] = {
    "user": ([USER], {}),
    "system": ([SYSTEM, USER], {}),
    "turns": ([SYSTEM, USER, ASSISTANT, USER, ASSISTANT, USER], {}),
    "no generation prompt": ([USER, ASSISTANT], {"add_generation_prompt": False}),
    "tools": ([SYSTEM, USER], {"tools": TOOLS}),
    "tools without system": ([USER], {"tools": TOOLS}),
    "no tools": ([USER], {"tools": []}),
    "tool call": ([USER, tool_call({"city": "Oslo"}), TOOL_RESULT, ASSISTANT, USER], {"tools": TOOLS}),
    "tool call as text": ([USER, tool_call('{"city": "Oslo"}'), TOOL_RESULT], {"tools": TOOLS}),
    "tool call without content": ([USER, tool_call({"city": "Oslo"}, content=None), TOOL_RESULT], {"tools": TOOLS}),
    "thinking on": ([USER], {"enable_thinking": True, "thinking": True}),
    "thinking off": ([USER], {"enable_thinking": False, "thinking": False}),
    "effort": ([SYSTEM, USER], {"reasoning_effort": "high"}),
    "thoughts": ([USER, ASSISTANT | {"reasoning_content": "hm\nyes"}, USER], {}),
    "thoughts under another name": ([USER, ASSISTANT | {"reasoning": "hm"}, USER], {}),
    "thoughts in the answer": ([USER, ASSISTANT | {"content": "<think>\nhm\n</think>\n\nyes"}, USER], {}),
    "thoughts before a call": ([USER, tool_call({"city": "x"}, reasoning_content="hm"), TOOL_RESULT], {"tools": TOOLS}),
    "parts": ([{"role": "user", "content": _parts("Hello", "there")}], {}),
    "empty": ([{"role": "user", "content": ""}], {}),
    "white space": ([{"role": "user", "content": "  \n hi \n\n"}, ASSISTANT, {"role": "user", "content": "\tq"}], {}),
    "odd characters": ([{"role": "user", "content": "\u2028\u0000 עברית 🏳️‍🌈 \\n {{ x }} {% if %} \ue000"}], {}),
    "documents": ([USER], {"documents": [{"title": "t", "text": "x", "doc_id": 1}]}),
    "two users": ([USER, USER], {}),
    "developer": ([{"role": "developer", "content": "D"}, USER], {}),
    "last word": ([USER, ASSISTANT], {}),
}
