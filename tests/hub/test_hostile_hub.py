"""A hub that names files and repositories to get out of the cache; the disk around it is watched."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.fake_hub import FakeHub

from localrun.base.errors import LocalrunError, NotFoundError
from localrun.cli.app import run_command_line
from localrun.hub.downloads.download import download
from localrun.hub.network.access import Access
from localrun.hub.network.http import Http
from localrun.hub.remote import api
from localrun.hub.remote.api import read_repo
from localrun.hub.remote.preview import find_on_hub, must_find_on_hub, preview
from localrun.hub.remote.variants import choose_variant, variants_of

Serve = Callable[..., FakeHub]
AccessTo = Callable[..., Access]
HOSTILE = [
    *("../escaped.gguf", "../../escaped.gguf", "a/../../../escaped.gguf", "/tmp/escaped.gguf", "//escaped/x.gguf"),
    *("..\\escaped.gguf", "C:\\escaped.gguf", "C:escaped.gguf", "a/./escaped.gguf", "escaped.gguf/", "a//b.gguf"),
    *("escaped\n.gguf", "escaped\x1b[2J.gguf", "escaped\x00.gguf", "escaped\u202egguf", "con.gguf", "a/nul.gguf"),
    *(
        "escaped.gguf ",
        "escaped.gguf.",
        "e" * 300 + ".gguf",
        "~/escaped.gguf\\..\\..",
        "blobs\\..\\..\\x.gguf",
        "a:b.gguf",
    ),
    *("../refs/main", "../../blobs/x", "..", ".", "", "a/..", "a/../b.gguf", "COM1.gguf", "x.gguf:ads", "<x>.gguf"),
    *("a|b.gguf", 'a"b.gguf', "a?b.gguf", "a*b.gguf", "\u2028.gguf", "lpt1", "aux/b.gguf"),
]


def outside(tmp_path: Path, cache: Path) -> set[str]:
    return {str(path) for path in tmp_path.rglob("*") if not path.is_relative_to(cache)}


def test_forty_hostile_names_write_nothing_outside(serve: Serve, access_to: AccessTo, tmp_path: Path) -> None:
    assert len(HOSTILE) >= 40
    hub = serve({"org/b-GGUF": {**dict.fromkeys(HOSTILE, b"evil"), "b-Q8_0.gguf": b"good"}})
    access = access_to(hub)
    before = outside(tmp_path, access.cache)
    http = Http(access)
    repo = read_repo(http, "org/b-GGUF")
    assert [file.path for file in repo.files] == ["b-Q8_0.gguf"]
    download(http, repo, repo.files)
    for name in HOSTILE:
        with pytest.raises(LocalrunError):
            repo.file(name)
        for text in (f"org/b-GGUF:{name}", f"https://huggingface.co/org/b-GGUF/resolve/main/{name}"):
            wanted = find_on_hub(text)
            if wanted is not None and wanted.precision:
                with pytest.raises(NotFoundError):
                    choose_variant(repo.name, variants_of(repo), wanted.precision)
    assert outside(tmp_path, access.cache) == before
    written = [path.name for path in access.cache.rglob("*") if path.is_file()]
    assert sorted(written) == sorted(["b-Q8_0.gguf", hub.etag(b"good"), "main"])


@pytest.mark.parametrize(
    "changes",
    [
        {"sha": "../../../../escaped"},
        {"sha": None},
        {"siblings": None},
        {"siblings": {"a": 1}},
        {"siblings": [{"rfilename": "x.gguf", "size": 4, "blobId": "../../escaped"}]},
        {"siblings": [{"rfilename": "x.gguf", "size": 1 << 60, "blobId": "0" * 40}]},
        {"siblings": [{"rfilename": "x.gguf", "size": 4, "lfs": {"sha256": "/etc/passwd", "size": 4}}]},
    ],
)
def test_a_listing_that_lies_about_hashes(
    serve: Serve, access_to: AccessTo, tmp_path: Path, changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    access = access_to(serve({}))
    listing = {"sha": "0" * 40, "siblings": [{"rfilename": "x.gguf", "size": 4, "blobId": "0" * 40}], **changes}
    monkeypatch.setattr(api, "get_json", lambda http, url, repo="": listing)
    with pytest.raises(LocalrunError):
        preview(Http(access), must_find_on_hub("a/b"))
    assert not [path for path in tmp_path.rglob("*") if "escaped" in path.name]


@pytest.mark.parametrize("name", ["../x", "a/../b", "a--b/c", "a/b\x1b[2J", "a/b/../../c", "..\\x", "a/.b", "a\0/b"])
def test_hostile_repositories_at_the_command_line(
    name: str, home: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setattr(api, "RETRY_SECONDS", ())
    for command in ("pull", "show", "fit"):
        code = run_command_line([command, name, "--json"])
        out, err = capsys.readouterr()
        assert code == 3
        assert json.loads(out)["error"]["kind"] == "not_found"
        assert "\x1b" not in err
    assert not (home / "huggingface").exists()
