"""Headers of every protocol: conversation, priority and deadline of a request."""

import math
import re
from collections.abc import Mapping
from dataclasses import replace

from localrun.base.request import Priority
from localrun.server.inference import InferenceRequest
from localrun.server.refusal import Refusal
from localrun.storage.block_file import digest
from localrun.storage.programs import API_CHATS

GATHER_MS = 30  # of a stream: words may wait for the end of a step, when sending them costs least
SESSION_HEADERS = (
    *("session-id", "session_id", "thread-id", "x-session-id", "x-session-affinity"),
    *("x-conversation-id", "x-openwebui-chat-id"),
)
_PRIORITIES: Mapping[str, Priority] = {"low": "background", "normal": "api", "high": "interactive"}
_PROGRAM = re.compile(r"[\w.-]{1,40}")


def with_headers(asked: InferenceRequest, headers: Mapping[str, str]) -> InferenceRequest:
    """Apply the headers of a call to its request. Raises Refusal for an invalid header of ours."""
    session = asked.session or next((headers[name] for name in SESSION_HEADERS if headers.get(name)), "")
    chat_id = _chat_id(session or asked.chain, headers)
    priority, deadline = _priority(asked, headers), _deadline(headers)
    requests = [replace(one, priority=priority, deadline=deadline, chat_id=chat_id) for one in asked.requests]
    if asked.is_stream:
        requests = [replace(one, gather_ms=GATHER_MS) for one in requests]
    return replace(asked, session=session, requests=tuple(requests))


def program_name(user_agent: str) -> str:
    """Name of a client program without its version; empty where unknown."""
    found = _PROGRAM.match(user_agent)
    return found[0].lower() if found else ""


def key_of(headers: Mapping[str, str]) -> str:
    """API key of a call."""
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    return bearer.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")


def _chat_id(session: str, headers: Mapping[str, str]) -> str:
    """Id of the kept chat of a session: never one of the user's own, nor that of another client or key."""
    if not session:
        return ""
    parts = program_name(headers.get("user-agent", "")), session, key_of(headers)
    return API_CHATS + digest(*(part.encode("utf-8", "backslashreplace") for part in parts)).hex()


def _priority(asked: InferenceRequest, headers: Mapping[str, str]) -> Priority:
    wish = headers.get("x-localrun-priority", "").strip().lower()
    if not wish:
        return asked.priority
    if wish not in _PRIORITIES:
        raise Refusal(400, f"X-Localrun-Priority: one of {', '.join(_PRIORITIES)} is needed", "invalid_value")
    return _PRIORITIES[wish]


def _deadline(headers: Mapping[str, str]) -> float | None:
    """Seconds for the whole answer."""
    wish = headers.get("x-localrun-deadline", "").strip()
    if not wish:
        return None
    try:
        seconds = float(wish)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < math.inf:
        raise Refusal(400, "X-Localrun-Deadline: seconds are needed", "invalid_value")
    return seconds
