"""Convert errors of a server into errors that a user can act on."""

import json
from collections.abc import Iterable
from email.message import Message
from typing import Any

from localrun.base.errors import EngineError, LocalrunError, NotFoundError, PromptTooLongError, UsageError
from localrun.base.sanitize import clean
from localrun.client.remote.endpoint import Endpoint, Place

_TOO_LONG = (
    *("context_length_exceeded", "exceed_context_size", "maximum context length", "context window", "context length"),
    *("prompt is too long", "input is too long", "max_model_len"),
)
_LIMITS = ("max_tokens", "max_completion_tokens", "output tokens", "in the completion")  # of the answer
_MAX_WORDS = 300


class ServerFailedError(EngineError):
    """The server reports an error of its own."""


def status_error(status: int, headers: Message, body: bytes, endpoint: Endpoint, place: Place) -> LocalrunError:
    """The error for a status that is not 200."""
    host, words = place.host, _words(body, endpoint.key)
    said = f": {words}" if words else ""
    if 300 <= status < 400:
        to = clean(headers.get("Location") or "nowhere", keep_newlines=False)[:200]
        return EngineError(f"{host} sends us on to {to}", "if you trust that address, use it for the server instead")
    if status in (401, 403):
        what = f"{host} does not accept the key" if endpoint.key else f"{host} wants a key"
        hint = f"set {endpoint.key_env} to it" if endpoint.key_env else "correct the key in the settings of this server"
        return UsageError(f"{what}{said}", hint)
    if status in (400, 413, 422) and _has_any(body, _TOO_LONG):
        return PromptTooLongError(f"the chat is too long for {host}{said}", "shorten it, or begin a new chat")
    if status == 404 and "model" in words.lower():
        return NotFoundError(f"{host} has no model {endpoint.model}{said}", "choose one of its models in the list")
    if status in (404, 405):
        return NotFoundError(f"{host} has no chat at {place.path}", "the address of an API usually ends in /v1")
    if status == 429:
        return EngineError(f"{host} asks us to slow down{said}", _when(headers))
    if status == 408 or status >= 500:
        return ServerFailedError(f"{host} reports an error of its own (status {status}){said}", "try again in a minute")
    return UsageError(
        f"{host} refuses the request (status {status}){said}", "change the settings it names, or the model"
    )


def asks_for_less(body: bytes) -> bool:
    """Whether the body of an error says that prompt and longest answer together exceed the context."""
    return _has_any(body, _TOO_LONG) and _has_any(body, _LIMITS)


def no_api(place: Place) -> EngineError:
    """The error for a server of another kind."""
    what = f"{place.host} answers, but not in the OpenAI protocol"
    return EngineError(what, "the address of an API usually ends in /v1")


def _has_any(body: bytes, signs: Iterable[str]) -> bool:
    said = body.decode("utf-8", "replace").lower()
    return any(sign in said for sign in signs)


def _words(body: bytes, key: str) -> str:
    """The message of an error body on one line, with our key masked."""
    text = body.decode("utf-8", "replace")
    try:
        value = json.loads(text, strict=False)  # with line ends and the like inside texts
    except (ValueError, RecursionError):
        return ""  # a page for a browser
    found = _message(value)
    if key:
        found = found.replace(key, "…")
    return clean(found, keep_newlines=False).strip()[:_MAX_WORDS]


def _message(value: Any) -> str:
    """{"error": {"message"}}, {"error": text}, {"message"}, {"detail": text or [{"msg"}]}: wherever servers put it."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "; ".join(filter(None, map(_message, value[:3])))
    if isinstance(value, dict):
        return next((text for key in ("error", "message", "detail", "msg") if (text := _message(value.get(key)))), "")
    return ""


def _when(headers: Message) -> str:
    seconds = headers.get("Retry-After") or ""
    usual = "try again in a minute; it may also mean that the account has nothing left"
    return f"try again in {int(seconds)} s" if seconds.isascii() and seconds.isdigit() and len(seconds) < 6 else usual
