"""Frames of server-sent events."""

from localrun.server.json_response import to_json


def data_frame(values: object, event: str = "") -> bytes:
    """One event. A string is sent unchanged, anything else as JSON on one line."""
    data = values.encode() if isinstance(values, str) else to_json(values)
    name = f"event: {event}\n".encode() if event else b""
    return name + b"data: " + data + b"\n\n"
