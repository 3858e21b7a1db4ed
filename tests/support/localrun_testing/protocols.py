"""The same question in the words of every protocol that the server speaks."""

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
