"""Proxies as the environment names them, and those that are refused by name."""

import pytest
from localrun_testing.fake_hub import FakeHub

from localrun.base.errors import HubError, LocalrunError
from localrun.hub.network.access import Access
from localrun.hub.network.http import Http
from localrun.hub.network.proxy import Proxy, proxy_for

NAMES = ("http", "https", "all", "no")


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(f"{name}_proxy", raising=False)
        monkeypatch.delenv(f"{name}_PROXY".upper(), raising=False)


@pytest.mark.parametrize(
    ("environ", "origin", "proxy"),
    [
        ({}, ("https", "hub.example", 443), None),
        ({"https_proxy": "http://p:8080"}, ("https", "hub.example", 443), Proxy("p", 8080)),
        ({"https_proxy": "p:8080"}, ("https", "hub.example", 443), Proxy("p", 8080)),
        ({"https_proxy": "http://p"}, ("http", "hub.example", 80), None),
        ({"ALL_PROXY": "http://p:1"}, ("https", "hub.example", 443), Proxy("p", 1)),
        ({"all_proxy": "http://p:1", "https_proxy": "http://q:2"}, ("https", "hub.example", 443), Proxy("q", 2)),
        ({"all_proxy": "http://p:1", "no_proxy": ".example"}, ("https", "hub.example", 443), None),
        ({"all_proxy": "http://p:1", "NO_PROXY": "*"}, ("https", "hub.example", 443), None),
        ({"all_proxy": "http://p:1", "no_proxy": "hub.example:80"}, ("https", "hub.example", 443), Proxy("p", 1)),
        ({"all_proxy": "http://p:1", "no_proxy": "hub.example:443"}, ("https", "hub.example", 443), None),
        ({"all_proxy": "http://p:1", "no_proxy": "other hub.example"}, ("https", "hub.example", 443), None),
        ({"all_proxy": "http://p:1", "no_proxy": "*.Example"}, ("https", "hub.example", 443), None),
        ({"all_proxy": "http://p:1", "no_proxy": "ub.example,, *."}, ("https", "hub.example", 443), Proxy("p", 1)),
        ({"all_proxy": "http://p:1", "no_proxy": "10.0.0.0/8"}, ("https", "10.1.2.3", 443), None),
        ({"all_proxy": "http://p:1", "no_proxy": "10.0.0.0/8"}, ("https", "11.1.2.3", 443), Proxy("p", 1)),
        ({"all_proxy": " http://p:1 "}, ("https", "hub.example", 443), Proxy("p", 1)),
        ({"all_proxy": "http://p:1"}, ("http", "127.0.0.1", 8000), None),
        ({"all_proxy": "http://[::1]:1"}, ("https", "hub.example", 443), Proxy("::1", 1)),
        ({"all_proxy": "http://me:a%40b@p:1"}, ("https", "hub.example", 443), Proxy("p", 1, "Basic bWU6YUBi")),
    ],
)
def test_which_proxy(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], origin: tuple[str, str, int], proxy: Proxy | None
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert proxy_for(origin) == proxy


@pytest.mark.parametrize(
    ("name", "address", "says"),
    [
        ("http_proxy", "socks5h://me:s3cr3t@127.0.0.1:9", "http_proxy names a SOCKS proxy"),
        ("ALL_PROXY", "socks4://127.0.0.1:9", "all_proxy names a SOCKS proxy"),
        ("http_proxy", "https://me:s3cr3t@p:9", "http_proxy names a https proxy"),
        ("http_proxy", "http://me:s3cr3t@p:99999", "http_proxy is not the address"),
        ("http_proxy", "http://me:s3cr3t@[::1", "http_proxy is not the address"),
        ("http_proxy", "http://", "http_proxy is not the address"),
        ("http_proxy", "http://me:s3cr3t\udcff@p:9", "http_proxy is not the address"),
    ],
)
def test_refused_proxies_are_named_without_password(
    monkeypatch: pytest.MonkeyPatch, name: str, address: str, says: str
) -> None:
    monkeypatch.setenv(name, address)
    with pytest.raises(HubError, match=says) as caught, Http(Access("http://hub.example")).get("http://hub.example/"):
        pass
    assert "s3cr3t" not in caught.value.message + caught.value.hint


def test_a_proxy_that_is_not_there_is_named_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("all_proxy", "http://me:s3cr3t@127.0.0.1:9")
    for url in ("http://hub.example/", "https://hub.example/"):
        with pytest.raises(LocalrunError, match=r"over the proxy 127\.0\.0\.1:9: ") as caught, Http(Access()).get(url):
            pass
        assert "s3cr3t" not in caught.value.message + caught.value.hint


def test_all_proxy_is_asked_with_what_it_wants_to_know(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeHub({}) as hub:
        monkeypatch.setenv("ALL_PROXY", hub.url.replace("//", "//me:secret@"))
        with Http(Access("http://hub.example")).get("http://hub.example/nothing") as response:
            assert response.status == 404
        assert hub.seen[0].path == "/nothing"
