"""Count the tokens of a prompt by the tokenizer of its server, before it is sent to be answered."""

from dataclasses import replace
from typing import Any

from localrun.base.request import Json
from localrun.base.views import PromptView
from localrun.client.remote.endpoint import Endpoint
from localrun.client.remote.engines import LLAMA_CPP, LOCALRUN, VLLM, RemoteEngine
from localrun.client.remote.pages import root_json

# Fields of a request that decide what its prompt becomes.
_RENDERED = ("messages", "prompt", "tools", "chat_template_kwargs", "continue_final_message", "add_generation_prompt")


def count_prompt(endpoint: Endpoint, engine: RemoteEngine, body: Json, pieces: bool) -> PromptView | None:
    """The prompt that `body` would become; None where the server does not count, or not now."""
    asked = {"model": endpoint.model} | {name: body[name] for name in _RENDERED if name in body}
    if engine in (VLLM, LOCALRUN):
        return _of_vllm(endpoint, asked, pieces)
    if engine == LLAMA_CPP:
        return _of_llama_cpp(endpoint, asked, pieces)
    return None


def _of_vllm(endpoint: Endpoint, asked: Json, pieces: bool) -> PromptView | None:
    """vLLM counts a chat, as localrun does. Tokens are spelled as in the vocabulary, so the text is asked for."""
    view = _view(root_json(endpoint, "/tokenize", asked | ({"return_token_strs": True} if pieces else {})), pieces)
    if view is None or not pieces:
        return view
    text = root_json(endpoint, "/detokenize", {"model": endpoint.model, "tokens": list(view.ids)}).get("prompt")
    return replace(view, text=text) if isinstance(text, str) else view


def _of_llama_cpp(endpoint: Endpoint, asked: Json, pieces: bool) -> PromptView | None:
    """llama.cpp counts a text, and renders a chat as one."""
    text = asked["prompt"] if "prompt" in asked else root_json(endpoint, "/apply-template", asked).get("prompt")
    if not isinstance(text, str):
        return None
    return _view(
        root_json(endpoint, "/tokenize", {"content": text, "add_special": True, "with_pieces": pieces}), pieces
    )


def _view(said: Json, pieces: bool) -> PromptView | None:
    """The tokens of an answer: ids, with texts beside them, or both in one as llama.cpp sends them."""
    tokens = said.get("tokens")
    if not isinstance(tokens, list) or not tokens:
        return None
    if not pieces:
        return PromptView(len(tokens), None)
    texts = said.get("token_strs")
    if not isinstance(texts, list) or len(texts) != len(tokens):
        texts = [token.get("piece") if isinstance(token, dict) else None for token in tokens]
    shown = [_bytes_of(text) for text in texts]
    whole = b"".join(shown).decode("utf-8", "replace")
    return PromptView(len(tokens), None, tuple(map(_id, tokens)), tuple(map(_text, shown)), whole)


def _id(token: Any) -> int:
    number = token.get("id") if isinstance(token, dict) else token
    return number if isinstance(number, int) else -1


def _bytes_of(piece: Any) -> bytes:
    """The bytes of a token; llama.cpp sends numbers where they are no whole characters."""
    if isinstance(piece, list):
        return bytes(n for n in piece if isinstance(n, int) and 0 <= n < 256)
    return piece.encode("utf-8", "replace") if isinstance(piece, str) else b""


def _text(piece: bytes) -> str:
    return piece.decode("utf-8", "replace")
