from collections.abc import Callable
from typing import Any

import pytest
from localrun_testing.fake_hub import COMMIT, FakeHub, FakeRepo, Trouble

from localrun.base.errors import HubError, LocalrunError, NotFoundError
from localrun.hub.network import connection
from localrun.hub.network.access import Access
from localrun.hub.network.http import Http
from localrun.hub.remote import api
from localrun.hub.remote.repo import RemoteFile

Serve = Callable[..., FakeHub]
AccessTo = Callable[..., Access]
FILES = {"tiny-Q8_0.gguf": bytes(5000), "config.json": b'{"a": 1}'}


def test_search(serve: Serve, access_to: AccessTo) -> None:
    about = {"architecture": "qwen3", "total": 4022468096, "context_length": 40960}
    hub = serve({"a/tiny-GGUF": FakeRepo(FILES, gguf=about, gated=True), "b/other": FakeRepo(FILES)})
    (found,) = api.search(Http(access_to(hub)), "tiny")
    assert found == api.FoundModel("a/tiny-GGUF", 111, 3, True, "apache-2.0", "qwen3", 4022468096, 40960)
    assert api.search(Http(access_to(hub)), "nothing & = ?") == []


def test_a_repository_that_is_found_twice_is_one_find(serve: Serve, access_to: AccessTo) -> None:
    hub = serve({"a/tiny-GGUF": FILES, "b/other": FILES})
    hub.trouble["api"] = [Trouble("twice")]
    assert [found.repo for found in api.search(Http(access_to(hub)), "")] == ["a/tiny-GGUF", "b/other"]


def test_files_with_sizes_and_hashes(serve: Serve, access_to: AccessTo) -> None:
    hub = serve({"a/b": FILES})
    http = Http(access_to(hub))
    repo = api.read_repo(http, "a/b")
    assert (repo.name, repo.commit, repo.gated, repo.licence) == ("a/b", COMMIT, False, "apache-2.0")
    assert {file.path: (file.size, file.etag) for file in repo.files} == {
        "tiny-Q8_0.gguf": (5000, hub.etag(FILES["tiny-Q8_0.gguf"])),
        "config.json": (8, hub.etag(FILES["config.json"])),
    }
    assert api.read_small_file(http, repo, "config.json") == b'{"a": 1}'
    with pytest.raises(HubError, match="more than the limit of"):
        api.read_small_file(http, repo, "tiny-Q8_0.gguf", limit=100)
    with pytest.raises(NotFoundError, match="no file x"):
        api.read_small_file(http, repo, "x.json")


def test_hostile_names_are_not_even_listed(serve: Serve, access_to: AccessTo) -> None:
    hub = serve({"a/b": {"../x.gguf": b"1", "C:\\x": b"2", "ok.gguf": b"3"}})
    assert [file.path for file in api.read_repo(Http(access_to(hub)), "a/b").files] == ["ok.gguf"]
    for name in ("../b", "a/..", "a/b/../../c", "a", "a/\x1b[2J"):
        with pytest.raises(NotFoundError, match="cannot be the name") as caught:
            api.read_repo(Http(access_to(hub)), name)
        assert "\x1b" not in caught.value.message


@pytest.mark.parametrize(
    ("repo", "token", "kind", "error", "says", "hint"),
    [
        ("a/none", "", "", NotFoundError, "the hub has no a/none", "localrun search"),
        ("a/secret", "", "", NotFoundError, "the hub has no a/secret", "HF_TOKEN"),
        ("a/secret", "hf_wrong", "", NotFoundError, "the hub has no a/secret", "spelling"),
        ("a/b", "hf_wrong", "bad-token", HubError, "does not accept the token", "settings/tokens"),
        ("a/b", "", "bad-token", HubError, "wants a token", "HF_TOKEN"),
        ("a/b", "hf_x", "forbidden", HubError, "does not allow this", "more rights"),
        ("a/b", "", "rate-limit", HubError, "too many requests", "77 s; with HF_TOKEN"),
        ("a/b", "", "busy", HubError, "an internal error", "in a minute"),
        ("a/b", "", "html", HubError, "does not answer as a hub should", "HF_ENDPOINT"),
        ("a/b", "", "deep", HubError, "does not answer as a hub should", "HF_ENDPOINT"),
        ("a/b", "", "list", HubError, "does not answer as a hub should", "HF_ENDPOINT"),
    ],
)
def test_refusals_say_what_to_do(
    serve: Serve,
    access_to: AccessTo,
    repo: str,
    token: str,
    kind: str,
    error: type[LocalrunError],
    says: str,
    hint: str,
) -> None:
    hub = serve({"a/b": FILES, "a/secret": FakeRepo(FILES, private=True)}, token="hf_right")
    if kind:
        hub.break_file("api", kind)
    with pytest.raises(error) as caught:
        api.read_repo(Http(access_to(hub, token)), repo)
    assert says in caught.value.message
    assert hint in caught.value.hint
    assert not token or token not in caught.value.message + caught.value.hint


def test_gated_files(serve: Serve, access_to: AccessTo) -> None:
    hub = serve({"a/b": FakeRepo(FILES, gated=True)}, token="hf_right")
    http = Http(access_to(hub))
    repo = api.read_repo(http, "a/b")
    assert repo.gated
    with pytest.raises(HubError, match="gated: its authors") as caught:
        api.read_small_file(http, repo, "config.json")
    assert f"{hub.url}/a/b" in caught.value.hint
    with pytest.raises(HubError, match="your token has no access"):
        api.read_small_file(Http(access_to(hub, "hf_wrong")), repo, "config.json")
    assert api.read_small_file(Http(access_to(hub, "hf_right")), repo, "config.json") == b'{"a": 1}'


def test_a_busy_hub_is_asked_again(serve: Serve, access_to: AccessTo) -> None:
    hub = serve({"a/b": FILES})
    hub.break_file("api", "busy", times=2)
    assert api.read_repo(Http(access_to(hub)), "a/b").commit == COMMIT
    assert len(hub.seen) == 3


def test_listings_that_lie_about_types(serve: Serve, access_to: AccessTo, monkeypatch: pytest.MonkeyPatch) -> None:
    good = {"rfilename": "x.gguf", "size": 1, "blobId": "0" * 40}
    for bad in (
        None,
        {**good, "size": "1"},
        {**good, "size": -1},
        {**good, "size": True},
        {**good, "blobId": "../../x"},
        {**good, "rfilename": 7},
        {**good, "lfs": {"sha256": "0" * 63}},
    ):
        assert api._file(bad) is None
    assert api._file(good) == RemoteFile("x.gguf", 1, "0" * 40)


def test_a_hub_that_is_too_busy_is_waited_for_as_long_as_it_asks(
    serve: Serve, access_to: AccessTo, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    told: list[str] = []
    monkeypatch.setattr("localrun.hub.remote.api.time.sleep", slept.append)
    hub = serve({"a/b": FILES})
    hub.break_file("api", "rate-limit", times=1, at=30)
    assert api.read_repo(Http(access_to(hub), told.append), "a/b").commit == COMMIT
    assert slept == [30]
    assert told == ["127.0.0.1 asks localrun to slow down (too many requests): waiting 30 s"]
    hub.break_file("api", "rate-limit", times=1, at=61)
    with pytest.raises(HubError, match="too many requests"):
        api.read_repo(Http(access_to(hub)), "a/b")
    assert slept == [30]


def test_a_hub_that_says_nothing_is_mentioned(
    serve: Serve, access_to: AccessTo, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = serve({"a/b": FILES})
    monkeypatch.setattr(api, "SILENT_SECONDS", 0.01)
    monkeypatch.setattr(api, "MOST_SECONDS", 0.0)
    monkeypatch.setattr(connection, "ANSWER_SECONDS", 0.5)
    hub.break_file("api", "drip")
    told: list[str] = []
    with pytest.raises(HubError):
        api.read_repo(Http(access_to(hub), told.append), "a/b")
    assert told == ["waiting for 127.0.0.1, which is slow to answer"]
    assert len([seen for seen in hub.seen if "/api/" in seen.path]) <= 1, "it is not asked again"


def test_a_file_that_is_listed_twice_is_one_file(
    serve: Serve, access_to: AccessTo, monkeypatch: pytest.MonkeyPatch
) -> None:
    access = access_to(serve({"a/b": {"x-Q8_0.gguf": bytes(5000), "y-Q8_0.gguf": bytes(6000)}}))
    real = api.get_json

    def twice(*arguments: Any) -> Any:
        row = real(*arguments)
        return {**row, "siblings": row["siblings"] * 2}

    monkeypatch.setattr(api, "get_json", twice)
    repo = api.read_repo(Http(access), "a/b")
    assert [file.path for file in repo.files] == ["x-Q8_0.gguf", "y-Q8_0.gguf"]

    def differing(*arguments: Any) -> Any:
        row = real(*arguments)
        return {**row, "siblings": [*row["siblings"], {**row["siblings"][1], "rfilename": "x-Q8_0.gguf"}]}

    monkeypatch.setattr(api, "get_json", differing)
    with pytest.raises(HubError, match="twice, as different files"):
        api.read_repo(Http(access), "a/b")
