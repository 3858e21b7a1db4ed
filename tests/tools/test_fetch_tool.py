"""Fetching pages: what a name leads to is checked and connected to, at each step, and nothing else is."""

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.fake_chat_server import FakeChatServer, Reply, fake_chat_server
from localrun_testing.tool_room import ToolRoom
from localrun_testing.waiting import PATIENCE

from localrun.tools.built_in.fetch import MAX_PAGE, fetch_url_tool
from localrun.tools.built_in.page_text import text_of_page
from localrun.tools.built_in.public_address import connect, is_public
from localrun.tools.run_tool import run_tool
from localrun.tools.running_call import RunningCall, ToolError, ToolResult


@pytest.fixture(autouse=True)
def _online(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOCALRUN_OFFLINE", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "0.0.0.0", "10.1.2.3", "192.168.1.1", "172.16.0.1", "169.254.169.254", "100.64.0.1"),
        *("224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1%eth0", "fc00::1", "ff02::1", "::ffff:127.0.0.1"),
        *("64:ff9b::7f00:1", "2002:7f00:1::", "::ffff:10.0.0.1"),
    ],
)
def test_addresses_of_this_machine_and_around_are_not_public(address: str) -> None:
    assert not is_public(address)


def test_addresses_of_the_internet_are_public() -> None:
    assert is_public("93.184.216.34")
    assert is_public("2606:2800:220:1:248:1893:25c8:1946")


def resolve_to(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Let a resolver give these answers in turn; gives the addresses that are connected to."""
    waiting, connected = list(answers), list[str]()

    def look_up(host: str, port: int, **more: object) -> list[Any]:
        addresses = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    def open_connection(address: tuple[str, int], timeout: float) -> socket.socket:
        connected.append(address[0])
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setattr(socket, "create_connection", open_connection)
    return connected


def test_a_name_that_leads_elsewhere_the_second_time_gains_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    connected = resolve_to(monkeypatch, ["93.184.216.34"], ["127.0.0.1"])
    with pytest.raises(ToolError, match="cannot be reached"):
        connect("example.org", 80, RunningCall())
    assert connected == ["93.184.216.34"], "the address that was checked"
    with pytest.raises(ToolError, match=r"127\.0\.0\.1, which is not an address on the internet"):
        connect("example.org", 80, RunningCall())


def test_one_private_address_among_others_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    connected = resolve_to(monkeypatch, ["93.184.216.34", "192.168.0.1"])
    with pytest.raises(ToolError, match=r"192\.168\.0\.1"):
        connect("example.org", 80, RunningCall())
    assert connected == []


def fetch(server: FakeChatServer, *replies: Reply, allowed: Callable[[str], bool] = lambda address: True) -> ToolResult:
    server.replies = list(replies)
    server.models = replies[0]
    tool = fetch_url_tool(allowed)
    return run_tool(tool, {"url": f"{server.url}/models"}, RunningCall(tool.seconds))


def page(text: bytes, kind: str = "text/html; charset=utf-8", status: int = 200, **headers: str) -> Reply:
    return Reply((text,), status, {"Content-Type": kind, **headers})


def test_a_page_is_text() -> None:
    html = "<head><title>Milk</title><style>x{}</style></head><p>Buy &amp; <b>drink</b></p><script>evil()</script><p>é"
    with fake_chat_server() as server:
        result = fetch(server, page(html.encode()))
        assert result.text == f"{server.url}/models\n\nMilk\nBuy & drink\né"
        assert fetch(server, page(b'{"a": 1}', "application/json")).text.endswith('\n{"a": 1}')
        assert "401" in fetch(server, page(b"no", status=401)).text
        assert "is image/png, not text" in fetch(server, page(b"x", "image/png")).text
        assert "is compressed" in fetch(server, page(b"x", "text/plain", 200, **{"Content-Encoding": "gzip"})).text
        assert "99 bytes are missing" in fetch(server, page(b"x", "text/plain", 200, **{"Content-Length": "100"})).text
        assert fetch(server, page(b"\xff", "text/plain; charset=nonsense")).text.endswith("\ufffd")


def test_a_page_that_is_too_large_is_cut() -> None:
    with fake_chat_server() as server:
        result = fetch(server, page(b"a" * (MAX_PAGE + 5), "text/plain"))
        assert result.cut
        assert not result.is_error


def test_a_private_address_is_not_connected_to() -> None:
    with fake_chat_server() as server:
        result = fetch(server, page(b"secret"), allowed=is_public)
        assert "127.0.0.1, which is not an address on the internet" in result.text
        assert not server.seen


def test_a_page_that_leads_to_another_host_is_a_question_of_its_own() -> None:
    with fake_chat_server() as server:
        result = fetch(server, page(b"", status=302, Location="http://169.254.169.254/latest/meta-data"))
        assert "leads to another host: http://169.254.169.254/latest" in result.text
        assert len(server.seen) == 1
        again = fetch(server, page(b"", status=302, Location="/v1/models"))
        assert "leads on more than 5 times" in again.text
        for odd in ("file:///etc/passwd", "ftp://example.org", "http://a@b/", "http://[::1", ""):
            assert fetch(server, page(b"", status=302, Location=odd)).is_error


def test_addresses_are_looked_at_again_at_each_step() -> None:
    seen: list[str] = []
    with fake_chat_server() as server:
        result = fetch(
            server,
            page(b"", status=302, Location="/v1/models"),
            allowed=lambda address: not seen.append(address) and len(seen) < 2,  # type: ignore[func-returns-value]
        )
    assert "which is not an address on the internet" in result.text
    assert len(seen) == 2


@pytest.mark.parametrize(
    "url",
    [
        *("", "example.org", "file:///etc/passwd", "ftp://example.org/", "http://", "http://user:pw@example.org/"),
        *(
            "http://exa mple.org/",
            "http://example.org/\r\nX: y",
            "http://ex\u0430mple.org/",
            "http://[::1/",
            "http://a:b/",
        ),
    ],
)
def test_invalid_urls_are_refused_without_a_question(tmp_path: Path, url: str) -> None:
    room = ToolRoom(tmp_path)
    with pytest.raises(ToolError):
        room.permit("fetch_url", {"url": url})
    assert not room.asked


def test_each_host_is_asked_about(tmp_path: Path) -> None:
    room = ToolRoom(tmp_path)
    room.answer = "chat"
    for url in ("https://a.org/x", "http://a.org/y", "https://a.org:8443/", "https://b.org/"):
        room.permit("fetch_url", {"url": url})
    assert [question.scope for question in room.asked] == ["a.org", "a.org:8443", "b.org"]
    assert room.asked[0].preview == "fetch https://a.org/x"


def test_nothing_is_fetched_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALRUN_OFFLINE", "1")
    assert "offline" in ToolRoom(tmp_path).call("fetch_url", url="http://93.184.216.34/").text


def test_a_server_that_stalls_is_hung_up_on() -> None:
    with fake_chat_server() as server:
        server.models = Reply((b"a",), headers={"Content-Type": "text/plain"}, end="stall")
        call = RunningCall(0.3)
        assert run_tool(fetch_url_tool(lambda address: True), {"url": f"{server.url}/models"}, call).is_error
        assert server.hung_up.wait(PATIENCE)


def test_html_of_any_kind_is_read() -> None:
    assert text_of_page("<script>" * 3 + "x") == ""
    assert text_of_page("</p></script><p>a<br>b<![CDATA[x]]><!-- c --><svg><p>no</svg>d") == "a\nb\nd"
    assert text_of_page("<" * 1000 + "&#x110000;") != "\ud800"
