"""Frames of server-sent events."""

import json


def data_frame(values: object, event: str = "") -> bytes:
    """One event. A string is sent unchanged, anything else as JSON on one line."""
    text = values if isinstance(values, str) else json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    name = f"event: {event}\n" if event else ""
    return f"{name}data: {text}\n\n".encode("utf-8", "replace")
