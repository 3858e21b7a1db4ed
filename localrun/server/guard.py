"""Checks of a call before anything reads it: its host, origin, key and content type."""

import hmac
import ipaddress
import socket
from collections.abc import Callable, Mapping

from starlette.datastructures import Headers
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from localrun.base.request import Json
from localrun.server.json_response import JsonResponse
from localrun.server.options import ServerOptions
from localrun.server.refusal import Refusal
from localrun.server.request.headers import key_of

MAX_HEADERS = 100
MAX_HEADER_BYTES = 16 << 10
OPEN_PATHS = ("/health",)  # that need no key, and reveal nothing
_FORM = "application/x-www-form-urlencoded"
_LOOPBACK_NAMES = ("localhost", "ip6-localhost")

ErrorShapes = Mapping[str, Callable[[Refusal], Json]]  # by the beginning of a path; the longest that fits


def error_response(shapes: ErrorShapes, path: str, refusal: Refusal) -> Response:
    """A refusal in the error shape of the protocol of a path."""
    shape = shapes[max((start for start in shapes if path.startswith(start)), key=len)]
    return JsonResponse(shape(refusal), refusal.status, headers=refusal.headers)


class Guard:
    """ASGI middleware that refuses other calls."""

    def __init__(self, app: ASGIApp, options: ServerOptions, shapes: ErrorShapes) -> None:
        self._app, self._options, self._shapes = app, options, shapes
        self._own_names = {*_LOOPBACK_NAMES, options.host.lower(), socket.gethostname().lower()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = HttpRequest(scope)
        origin = request.headers.get("origin", "")
        if origin in self._options.allow_origins:
            send = _with_headers(send, _allowing(origin, request.headers))
        try:
            self._check(request, origin)
        except Refusal as refusal:
            await error_response(self._shapes, request.url.path, refusal)(scope, receive, send)
            return
        if origin and request.method == "OPTIONS" and "access-control-request-method" in request.headers:
            await Response(status_code=204)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _check(self, request: HttpRequest, origin: str) -> None:
        headers = request.headers
        if len(headers.raw) > MAX_HEADERS:
            raise Refusal(431, f"more than {MAX_HEADERS} headers", "too_many_headers")
        if sum(len(name) + len(value) for name, value in headers.raw) > MAX_HEADER_BYTES:
            raise Refusal(431, f"more than {MAX_HEADER_BYTES >> 10} kB of headers", "headers_too_large")
        if "transfer-encoding" in headers and "content-length" in headers:
            what = "a body is chunked or has a length, not both: a proxy may have read another one"
            raise Refusal(400, what, "two_lengths", closes=True)
        if not self._is_for_here(headers.get("host", "")):
            raise Refusal(421, "this server is not that host: call it by its address, or as localhost", "wrong_host")
        if origin and origin not in self._options.allow_origins:
            what = "pages of that origin may not call this server; --allow-origin lets them"
            raise Refusal(403, what, "origin_not_allowed")
        if headers.get("sec-fetch-site") == "cross-site" and not origin:
            raise Refusal(403, "another site sent this", "cross_site")
        is_preflight = request.method == "OPTIONS" and bool(origin)
        if self._options.api_key and request.url.path not in OPEN_PATHS and not is_preflight:
            self._check_key(headers)
        if request.method == "POST" and not _is_json(headers):
            raise Refusal(415, "content-type: application/json is needed", "unsupported_media_type")
        if headers.get("content-encoding", "identity").lower() != "identity":
            raise Refusal(415, "content-encoding: a body is taken as it is, not compressed", "unsupported_media_type")

    def _check_key(self, headers: Headers) -> None:
        if not hmac.compare_digest(key_of(headers).encode("utf-8", "replace"), self._options.api_key.encode()):
            raise Refusal(401, "the key is missing or wrong: authorization: Bearer KEY is needed", "invalid_api_key")

    def _is_for_here(self, host: str) -> bool:
        """Whether a Host header names this machine, against DNS rebinding."""
        if self._options.socket:
            return True
        name = host.rpartition("]")[0].lstrip("[") if host.startswith("[") else host.partition(":")[0]
        name = name.lower().rstrip(".")
        if name in self._own_names or name.endswith(".localhost"):
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return address.is_loopback or not is_loopback(self._options.host)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach that address."""
    if host.lower() in _LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _is_json(headers: Headers) -> bool:
    """Whether a body is declared as JSON. Some programs declare nothing, and `curl -d` a form, as in Ollama's examples;
    a page in a browser, which could do the same, always sends an Origin."""
    kind = headers.get("content-type", _FORM).partition(";")[0].strip().lower()
    if kind == _FORM:
        return "origin" not in headers and "sec-fetch-site" not in headers
    return kind == "application/json"


def _allowing(origin: str, headers: Headers) -> dict[str, str]:
    """Headers for a page that may call. SDKs in browsers send many of their own, and heed those of errors."""
    return {
        "access-control-allow-origin": origin,
        "access-control-allow-methods": "GET, POST, DELETE, OPTIONS",
        "access-control-allow-headers": headers.get("access-control-request-headers", ""),
        "access-control-expose-headers": "*",
        "vary": "origin, access-control-request-headers",
    }


def _with_headers(send: Send, more: Mapping[str, str]) -> Send:
    """`send` with these headers added to the response."""

    async def send_more(message: "dict[str, object]") -> None:
        if message["type"] == "http.response.start":
            headers = [(name.encode(), value.encode()) for name, value in more.items()]
            message = {**message, "headers": [*message.get("headers", ()), *headers]}  # type: ignore[misc]
        await send(message)

    return send_more  # type: ignore[return-value]
