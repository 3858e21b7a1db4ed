"""Pages that a server answers at once: its list of models, and what it says of itself."""

import http.client
import json
import time
from email.message import Message
from typing import Any

from localrun.base.errors import LocalrunError
from localrun.base.request import Json
from localrun.client.remote.endpoint import Endpoint, place_of
from localrun.client.remote.http import check_encoding, check_online, connect, headers_of, unreachable
from localrun.client.remote.http_errors import no_api, status_error
from localrun.hub.network.connection import deadline

LIST_SECONDS = 20.0
ROOT_SECONDS = 5.0
MAX_PAGE = 8 << 20


def get_json(endpoint: Endpoint, page: str) -> tuple[int, Any]:
    """The status and body of a page of the API; LocalrunError for anything but 200, 404, 405 and 501."""
    place = place_of(endpoint)
    status, headers, said = _ask(endpoint, f"{place.path}{page}", None, LIST_SECONDS)
    if status in (404, 405, 501):
        return status, None
    if status != 200:
        raise status_error(status, headers, said, endpoint, place)
    try:
        return 200, json.loads(said)
    except (ValueError, RecursionError):
        raise no_api(place) from None


def root_json(endpoint: Endpoint, page: str, body: Json | None = None) -> Json:
    """The JSON object of a page beside the API (GET, with a body POST); an empty one for any other answer, or none."""
    try:
        value = json.loads(root_text(endpoint, page, body))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def root_text(endpoint: Endpoint, page: str, body: Json | None = None) -> str:
    """The text of such a page; empty where the server, or a proxy before it, does not show it."""
    path = place_of(endpoint).path.removesuffix("/v1")
    try:
        packed = None if body is None else json.dumps(body).encode()
        status, _, said = _ask(endpoint, f"{path}{page}", packed, ROOT_SECONDS)
    except (LocalrunError, TypeError, ValueError, RecursionError):
        return ""
    return said.decode("utf-8", "replace") if status == 200 else ""


def _ask(endpoint: Endpoint, path: str, body: bytes | None, seconds: float) -> tuple[int, Message, bytes]:
    """Status, headers and body, of MAX_PAGE bytes at most, within `seconds`."""
    place = place_of(endpoint)
    check_online(place)
    connection = connect(place)
    latest = time.monotonic() + seconds
    headers = headers_of(endpoint) | ({} if body is None else {"Content-Type": "application/json"})
    try:
        connection.sock.settimeout(seconds)
        raw, sock = connection.ask(path, headers, body, seconds)
        with deadline(sock, seconds):
            said = raw.read(MAX_PAGE)
        if time.monotonic() >= latest:  # a body of unknown length looks whole where we broke it off
            raise TimeoutError
    except (OSError, http.client.HTTPException) as error:
        raise unreachable(place, error) from None
    finally:
        connection.close()
    if raw.status == 200:
        check_encoding(raw.headers, place)
    return raw.status, raw.headers, said
