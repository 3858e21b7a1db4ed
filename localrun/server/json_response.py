"""A response of JSON."""

import json

from starlette.responses import JSONResponse

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))  # `json.dumps` makes one each time


def to_json(values: object) -> bytes:
    """JSON on one line. Half a character, as a cut text may end with, becomes a question mark."""
    return _ENCODER.encode(values).encode("utf-8", "replace")


class JsonResponse(JSONResponse):
    """Starlette's own fails on half a character that a client sent, and that an error or a list names."""

    def render(self, content: object) -> bytes:
        return to_json(content)
