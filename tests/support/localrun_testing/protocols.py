"""The same question in the words of every protocol that the server speaks."""

import json
from collections.abc import Sequence
from typing import Any

CHATS = ("/v1/chat/completions", "/v1/responses", "/v1/messages", "/api/chat", "/api/generate")
PROTOCOLS = (*CHATS, "/v1/completions")


def question(path: str, text: str, system: str = "", max_tokens: int = 12, **sampling: Any) -> dict[str, Any]:
    """A body that asks for a whole answer. Those of chats become the same prompt."""
    turns = [{"role": "system", "content": system}] * bool(system) + [{"role": "user", "content": text}]
    match path:
        case "/v1/chat/completions":
            return {"messages": turns, "max_tokens": max_tokens, **sampling}
        case "/v1/responses":
            return {"instructions": system, "input": text, "max_output_tokens": max_tokens, "store": False, **sampling}
        case "/v1/messages":
            return {"system": system, "messages": turns[-1:], "max_tokens": max_tokens, **sampling}
        case "/v1/completions":
            return {"prompt": system + text, "max_tokens": max_tokens, **sampling}
    options = {"num_predict": max_tokens, **sampling}
    asked = {"messages": turns} if path == "/api/chat" else {"system": system, "prompt": text}
    return {**asked, "stream": False, "options": options}


def frames(stream: str) -> list[dict[str, Any]]:
    """The objects of a stream, of server-sent events or of lines."""
    lines = [line.removeprefix("data: ") for line in stream.splitlines()]
    return [json.loads(line) for line in lines if line.startswith("{")]


def deltas(path: str, objects: Sequence[dict[str, Any]]) -> list[str]:
    """The pieces in which a stream brings its text."""
    found = [_delta(path, one) for one in objects if "error" not in one]
    return [piece for piece in found if piece]


def _delta(path: str, one: dict[str, Any]) -> str:
    match path:
        case "/v1/chat/completions":
            return str(one["choices"][0]["delta"].get("content", ""))
        case "/v1/completions":
            return str(one["choices"][0]["text"])
        case "/v1/responses":
            return str(one["delta"]) if one["type"] == "response.output_text.delta" else ""
        case "/v1/messages":
            return str(one["delta"]["text"]) if one["type"] == "content_block_delta" else ""
    return str(one["message"]["content"] if path == "/api/chat" else one["response"])


def cached_tokens(path: str, answer: dict[str, Any]) -> int:
    """What an answer says of its prompt: how much of it was cached."""
    if path.startswith("/api"):
        return int(answer["prompt_eval_cached_count"])
    usage = answer["usage"]
    match path:
        case "/v1/messages":
            return int(usage["cache_read_input_tokens"])
        case "/v1/responses":
            return int(usage["input_tokens_details"]["cached_tokens"])
    return int(usage["prompt_tokens_details"]["cached_tokens"])
