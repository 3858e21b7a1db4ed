"""Who may call: hosts, origins, content types, keys."""

import gzip
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from localrun_testing.fake_client import FakeClient
from localrun_testing.served import Served, serving
from localrun_testing.waiting import PATIENCE
from starlette.routing import Route

from localrun.base.request import LoadOptions
from localrun.server.options import ServerOptions, origin

BODY = {"messages": [{"role": "user", "content": "x"}]}
PAGE = "https://page.example"


@pytest.fixture(scope="module")
def locked() -> Iterator[Served]:
    fake = FakeClient(LoadOptions(Path()), lambda request: "yes")
    with serving(lambda choice: fake, ServerOptions(port=0, api_key="secret", allow_origins=(PAGE,))) as running:
        yield running


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "app.localhost", "LOCALHOST:99", "127.9.9.9:1"])
def test_names_of_this_machine_are_let_in(http: httpx.Client, host: str) -> None:
    assert http.post("/v1/chat/completions", json=BODY, headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:11434", "", "localhost.evil.example", "169.254.169.254", "[fe80::1]", "a@b"]
)
def test_names_that_only_point_here_are_not(http: httpx.Client, host: str) -> None:
    assert http.post("/v1/chat/completions", json=BODY, headers={"host": host}).status_code == 421


@pytest.mark.parametrize("origin", ["null", "https://evil.example", "http://localhost:3000", PAGE])
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_pages_are_kept_out_unless_allowed(http: httpx.Client, origin: str, method: str) -> None:
    preflight = {"access-control-request-method": "POST"} if method == "OPTIONS" else {}
    answer = http.request(
        method, "/v1/models" if method == "GET" else "/v1/chat/completions", headers={"origin": origin, **preflight}
    )
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers


def test_an_allowed_page_is_let_in_by_name(locked: Served) -> None:
    address = f"{locked.url}/v1/chat/completions"
    headers = {"origin": PAGE, "authorization": "Bearer secret"}
    asked = httpx.options(address, headers={"origin": PAGE, "access-control-request-method": "POST"})
    assert (asked.status_code, asked.headers["access-control-allow-origin"]) == (204, PAGE)
    answer = httpx.post(address, json=BODY, headers=headers)
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, PAGE)
    assert "access-control-allow-credentials" not in answer.headers
    assert httpx.post(address, json=BODY, headers={**headers, "origin": "https://other.example"}).status_code == 403


@pytest.mark.parametrize(
    "text", ["https://app.example", "http://localhost:3000/", "http://[::1]:80", "chrome-extension://abc", "app://x.md"]
)
def test_sites_are_as_browsers_name_them(text: str) -> None:
    assert origin(text) == text.removesuffix("/")


@pytest.mark.parametrize(
    "text", ["app.example", "localhost:3000", "https://app.example/page", "*", "null", "", "https://*"]
)
def test_what_no_browser_sends_is_not_waited_for(text: str) -> None:
    with pytest.raises(ValueError, match="a site is needed"):
        origin(text)


def test_an_sdk_in_an_allowed_page_sends_its_headers_and_reads_errors(locked: Served) -> None:
    address, sent = f"{locked.url}/v1/chat/completions", "authorization,content-type,x-stainless-lang"
    preflight = {"access-control-request-method": "POST", "access-control-request-headers": sent}
    assert httpx.options(address, headers={"origin": PAGE, **preflight}).headers["access-control-allow-headers"] == sent
    refused = httpx.post(address, json=BODY, headers={"origin": PAGE, "authorization": "Bearer wrong"})
    assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, PAGE)
    assert refused.headers["access-control-expose-headers"] == "*", "retry-after and x-should-retry among them"
    unknown = httpx.options(address, headers={"origin": "https://other.example", **preflight})
    assert "access-control-allow-headers" not in unknown.headers


def test_a_compressed_body_is_refused_by_its_encoding(http: httpx.Client) -> None:
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    answer = http.post("/v1/chat/completions", content=gzip.compress(json.dumps(BODY).encode()), headers=headers)
    assert (answer.status_code, "content-encoding" in answer.json()["error"]["message"]) == (415, True)


@pytest.mark.parametrize("kind", ["text/plain", "multipart/form-data", ""])
def test_forms_are_no_calls(http: httpx.Client, kind: str) -> None:
    assert http.post("/v1/chat/completions", content=b"{}", headers={"content-type": kind}).status_code == 415


@pytest.mark.parametrize("kind", [{}, {"content-type": "application/x-www-form-urlencoded"}])
def test_a_program_may_leave_the_content_type_out_and_a_page_may_not(http: httpx.Client, kind: dict[str, str]) -> None:
    """litellm does, with Ollama's API, and `curl -d` says that it sends a form."""
    body = {"messages": [{"role": "user", "content": "hi", "images": []}], "options": {}, "stream": False}
    data = json.dumps(body).encode()
    assert http.post("/api/chat", content=data, headers=kind).status_code == 200
    for page in ({"sec-fetch-site": "same-site"}, {"origin": "http://page.example"}):
        assert http.post("/api/chat", content=data, headers={**kind, **page}).status_code in (403, 415)


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/chat/completions", "; try /v1/chat/completions"),
        ("/v1/v1/messages", "; try /v1/messages"),
        ("/v1/api/chat", "; try /api/chat"),
        ("/v1/audio/speech", ""),
    ],
)
def test_an_address_beside_the_right_one_is_told_it(http: httpx.Client, path: str, meant: str) -> None:
    answer = http.post(path, json=BODY)
    assert answer.status_code == 404
    assert answer.json()["error"]["message"] == f"there is nothing at this address{meant}"


def test_another_site_is_kept_out(http: httpx.Client) -> None:
    headers = {"sec-fetch-site": "cross-site"}
    assert http.post("/v1/chat/completions", json=BODY, headers=headers).status_code == 403


def test_every_route_but_health_needs_the_key(locked: Served) -> None:
    routes = [
        (method, route.path)
        for route in locked.app.routes
        if isinstance(route, Route)
        for method in route.methods or ()
        if route.path != "/health" and method != "HEAD"
    ]
    assert len(routes) >= 3
    wrong: tuple[dict[str, str], ...] = (
        {},
        {"authorization": "Bearer wrong"},
        {"x-api-key": "secre"},
        {"authorization": "secret"},
    )
    with httpx.Client(base_url=locked.url) as client:
        for method, path in routes:
            for headers in wrong:
                assert client.request(method, path, headers=headers).status_code == 401, (method, path)
        assert client.get("/health").json() == {"status": "ok"}
        for headers in ({"authorization": "Bearer secret"}, {"x-api-key": "secret"}):
            assert client.get("/v1/models", headers=headers).status_code == 200


@pytest.mark.parametrize("headers", [{f"x-{number}": "1" for number in range(101)}, {"x": "1" * 20_000}])
def test_many_or_long_headers_are_refused(http: httpx.Client, headers: dict[str, str]) -> None:
    assert http.get("/health", headers=headers).status_code == 431


def test_a_body_of_two_lengths_is_refused_and_its_connection_closed(served: Served) -> None:
    """A proxy that goes by the other length would take the rest of the body for a request of somebody else."""
    url = httpx.URL(served.url)
    head = "POST /v1/chat/completions HTTP/1.1", "host: localhost", "content-type: application/json"
    both = "content-length: 5", "transfer-encoding: chunked"
    with socket.create_connection((url.host, url.port or 0), PATIENCE) as connection:
        connection.sendall("\r\n".join((*head, *both, "", "0", "", "GET /health HTTP/1.1", "", "")).encode())
        said = b"".join(iter(lambda: connection.recv(4096), b""))
    assert said.startswith(b"HTTP/1.1 400 ")
    assert said.count(b"HTTP/1.1") == 1
