"""What a hub, a mirror or somebody in between may not do to us."""

import gc
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from localrun_testing.fake_hub import FakeHub, FakeRepo

from localrun.base.errors import HubError
from localrun.hub.downloads.download import download
from localrun.hub.network import connection
from localrun.hub.network.access import Access
from localrun.hub.network.http import Http, NetworkError
from localrun.hub.network.url_origin import is_public, may_see_token
from localrun.hub.remote.api import read_repo

Serve = Callable[..., FakeHub]
AccessTo = Callable[..., Access]
FILES = {"big.gguf": bytes(10_000), "small.json": b"{}", "empty.json": b""}


def fetch(access: Access, url: str, limit: int = 1 << 20) -> tuple[int, bytes]:
    with Http(access).get(url) as response:
        return response.status, response.read(limit)


def test_redirects_lead_to_the_store_and_the_token_stays_behind(serve: Serve, access_to: AccessTo) -> None:
    hub = serve({"a/b": FakeRepo(FILES, private=True)}, token="hf_canary")
    url = f"{hub.url}/a/b/resolve/main/"
    assert fetch(access_to(hub, "hf_canary"), url + "big.gguf") == (200, FILES["big.gguf"])
    assert fetch(access_to(hub, "hf_canary"), url + "small.json") == (200, b"{}")
    assert [(seen.server, seen.token) for seen in hub.seen] == [
        ("hub", "hf_canary"),
        ("store", ""),
        ("hub", "hf_canary"),
    ]


def test_connections_are_used_again(serve: Serve, access_to: AccessTo, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = serve({"a/b": FILES})
    dials = []
    original = socket.socket.connect

    def connect(sock: socket.socket, to: object) -> None:
        dials.append(to)
        original(sock, to)  # type: ignore[arg-type]

    monkeypatch.setattr(socket.socket, "connect", connect)
    http = Http(access_to(hub))
    for _ in range(3):
        with http.get(f"{hub.url}/a/b/resolve/main/big.gguf") as response:
            response.read()
        with http.get(f"{hub.url}/a/b/resolve/main/empty.json") as response:
            assert response.read() == b""
    assert len(dials) == 2
    http.close()
    gc.collect()


def test_offline_opens_no_socket(serve: Serve, access_to: AccessTo, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = serve({"a/b": FILES})

    def no_socket(*args: object, **more: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", no_socket)
    monkeypatch.setattr(socket, "getaddrinfo", no_socket)
    with pytest.raises(HubError, match="offline"):
        fetch(access_to(hub, offline=True), hub.url)


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("http://169.254.169.254/latest/meta-data", "private network"),
        ("http://127.0.0.2/x", "private network"),
        ("http://[::1]:1/x", "private network"),
        ("http://10.0.0.1/x", "private network"),
        ("http://[::ffff:192.168.0.1]/x", "private network"),
        ("http://0.0.0.0/x", "private network"),
        ("http://2130706434/x", "private network"),
        ("http://localhost:1/x", "private network"),
        ("file:///etc/passwd", "nowhere"),
        ("http://host:99999/", "nowhere"),
        ("http://a b/", "nowhere"),
        ("/api/models", "in circles"),
    ],
)
def test_false_redirects(serve: Serve, access_to: AccessTo, target: str, says: str) -> None:
    hub = serve({})
    hub.break_file("api", "redirect", to=target)
    with pytest.raises(HubError, match=says):
        fetch(access_to(hub), f"{hub.url}/api/models")


@pytest.mark.parametrize("spelled", [str.lower, str.upper])
def test_names_of_headers_are_read_in_any_case(
    serve: Serve, access_to: AccessTo, spelled: Callable[[str], str]
) -> None:
    hub = serve({"a/b": FILES})
    hub.names_of_headers = spelled
    access = access_to(hub)
    repo = read_repo(Http(access), "a/b")
    (path,) = download(Http(access), repo, [repo.file("big.gguf")])  # over a redirect, by its identity
    assert path.read_bytes() == FILES["big.gguf"]
    hub.break_file("redirect big.gguf", "etag")
    with pytest.raises(HubError, match="a different file than the hub lists"):
        download(Http(replace(access, cache=access.cache / "other")), repo, [repo.file("big.gguf")])


@pytest.mark.parametrize(
    ("host", "may"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.8.9.10", True),
        ("::1", True),
        ("127.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("localhost.evil.example", False),
        ("10.0.0.1", False),
        ("0.0.0.0", False),
        ("", False),
    ],
)
def test_who_sees_a_token_over_http(host: str, may: bool) -> None:
    assert may_see_token(("http", host, 80)) is may
    assert may_see_token(("https", host, 443))


def test_public_addresses() -> None:
    assert is_public("8.8.8.8")
    assert is_public("2606:4700::1111")
    for address in ("224.0.0.1", "100.64.0.1", "fe80::1%eth0", "fd00::1", "::", "192.0.2.1"):
        assert not is_public(address)


def test_a_redirect_from_https_to_http_is_refused(access_to: AccessTo) -> None:
    with pytest.raises(HubError, match="https to http"):
        Http(Access())._redirected("https://huggingface.co/x", "http://huggingface.co/y")


@pytest.mark.parametrize(
    ("kind", "says"),
    [("gzip", "compressed"), ("huge", "more than"), ("drip", "broke off|cut short"), ("silent", "answer")],
)
def test_answers_have_limits_in_bytes_and_seconds(
    serve: Serve, access_to: AccessTo, kind: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind in ("drip", "silent"):
        monkeypatch.setattr(connection, "ANSWER_SECONDS" if kind == "drip" else "IDLE_SECONDS", 0.7)
    hub = serve({})
    hub.break_file("api", kind)
    started = time.monotonic()
    with pytest.raises(HubError, match=says):
        fetch(access_to(hub), f"{hub.url}/api/models")
    assert time.monotonic() - started < 60


def test_an_answer_in_crumbs_is_refused_before_it_takes_memory(serve: Serve, access_to: AccessTo) -> None:
    hub = serve({})
    hub.break_file("api", "crumbs", at=100)
    with pytest.raises(HubError, match="pieces of a few bytes"):
        fetch(access_to(hub), f"{hub.url}/api/models")
    assert hub.seen[0].sent < 100 * 60_000


def test_a_refused_connection_is_a_network_error(serve: Serve, access_to: AccessTo) -> None:
    hub = serve({})
    access = access_to(hub)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/"
        for target in (url, "http://unknown.invalid/", "http://" + "a" * 70 + ".example/", "http://a..b/"):
            with pytest.raises(NetworkError, match="cannot be reached") as caught:
                fetch(access, target + "?signature=s3cr3t")
            assert "s3cr3t" not in caught.value.message


def test_a_token_goes_nowhere_in_the_clear(serve: Serve) -> None:
    seen: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def listen() -> None:
            connection, _ = server.accept()
            seen.append(connection.recv(10_000))
            connection.close()

        threading.Thread(target=listen, daemon=True).start()
        access = Access(f"http://127.0.0.1:{server.getsockname()[1]}", "hf_canary")
        http = Http(access)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("localrun.hub.network.url_origin.is_this_machine", lambda host: False)
            with pytest.raises(NetworkError), http.get(access.endpoint):
                pass
    assert b"GET / HTTP/1.1" in seen[0]
    assert b"canary" not in seen[0]


def test_a_proxy_is_used_where_the_system_names_one(
    serve: Serve, access_to: AccessTo, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = serve({"a/b": FILES})
    monkeypatch.setenv("http_proxy", hub.url)
    monkeypatch.setenv("no_proxy", "")
    with Http(Access("http://hub.example")).get("http://hub.example/nothing") as response:
        assert response.status == 404
    assert hub.seen[0].path == "/nothing"
