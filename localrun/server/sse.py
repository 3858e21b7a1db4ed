"""Frames of server-sent events, and the JSON within."""

import json

compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode  # made once: one is made for each dumps


def data_frame(values: object, event: str = "") -> bytes:
    """One event. A string is sent as it is, anything else as JSON on one line."""
    text = values if isinstance(values, str) else compact(values)
    name = f"event: {event}\n" if event else ""
    return f"{name}data: {text}\n\n".encode("utf-8", "replace")
