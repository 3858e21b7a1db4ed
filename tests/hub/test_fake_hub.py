"""The fake hub is worth something only if huggingface_hub itself takes it for a real one."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.fake_hub import COMMIT, FakeHub, FakeRepo

pytest.importorskip("huggingface_hub")

BIG = random.Random(0).randbytes(1 << 20)
ASK = """
import json, sys
import huggingface_hub as hub
from huggingface_hub.errors import GatedRepoError, RemoteEntryNotFoundError, RepositoryNotFoundError
from huggingface_hub.errors import RevisionNotFoundError

def refused(call, *args, **more):
    try:
        call(*args, **more)
    except (GatedRepoError, RemoteEntryNotFoundError, RevisionNotFoundError, RepositoryNotFoundError) as error:
        return type(error).__name__

api = hub.HfApi()
info = api.model_info("org/tiny-GGUF", files_metadata=True)
path = hub.hf_hub_download("org/tiny-GGUF", "tiny-Q8_0.gguf")
with hub.HfFileSystem().open("org/tiny-GGUF/tiny-Q8_0.gguf", "rb", block_size=65536) as file:
    file.seek(1000)
    middle = file.read(10).hex()
print(json.dumps({
    "search": [(m.id, m.downloads) for m in api.list_models(search="tiny", filter="gguf")],
    "sha": info.sha,
    "files": {s.rfilename: (s.size, s.lfs.sha256 if s.lfs else s.blob_id) for s in info.siblings},
    "tree": {e.path: e.size for e in api.list_repo_tree("org/tiny-GGUF", recursive=True)},
    "paths": [p.path for p in api.get_paths_info("org/tiny-GGUF", ["config.json", "none"])],
    "etag": hub.get_hf_file_metadata(hub.hf_hub_url("org/tiny-GGUF", "tiny-Q8_0.gguf")).etag,
    "downloaded": open(path, "rb").read().hex()[:64],
    "size": len(open(path, "rb").read()),
    "middle": middle,
    "config": open(hub.hf_hub_download("org/tiny-GGUF", "config.json")).read(),
    "refused": [
        refused(hub.hf_hub_download, "org/locked", "x.gguf"),
        refused(hub.hf_hub_download, "org/tiny-GGUF", "none.gguf"),
        refused(hub.hf_hub_download, "org/tiny-GGUF", "config.json", revision="other"),
        refused(hub.hf_hub_download, "org/none", "x.gguf"),
        refused(api.model_info, "org/secret"),
    ],
    "secret": api.model_info("org/secret", token="hf_fake").id,
    "unlocked": open(hub.hf_hub_download("org/locked", "x.gguf", token="hf_fake"), "rb").read().hex()[:64],
}))
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Any:
    repos = {
        "org/tiny-GGUF": FakeRepo({"tiny-Q8_0.gguf": BIG, "config.json": b"{}"}),
        "org/locked": FakeRepo({"x.gguf": BIG}, gated=True),
        "org/secret": FakeRepo({"x.gguf": BIG}, private=True),
    }
    home = tmp_path_factory.mktemp("real-client")
    with FakeHub(repos, token="hf_fake") as hub:
        environment = {**os.environ, "HF_ENDPOINT": hub.url, "HF_HOME": str(home), "HF_HUB_OFFLINE": "0"}
        environment |= {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_XET": "1"}
        done = subprocess.run([sys.executable, "-c", ASK], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout), list(hub.seen), hub


def test_the_real_client_searches_lists_and_downloads(answers: Any) -> None:
    found, _, hub = answers
    etag = hub.etag(BIG)
    assert [name for name, _ in found["search"]] == ["org/tiny-GGUF"]
    assert found["sha"] == COMMIT
    assert found["files"] == {"tiny-Q8_0.gguf": [1 << 20, etag], "config.json": [2, hub.etag(b"{}")]}
    assert found["tree"] == {"tiny-Q8_0.gguf": 1 << 20, "config.json": 2}
    assert found["paths"] == ["config.json"]
    assert found["etag"] == etag
    assert (found["downloaded"], found["size"]) == (BIG[:32].hex(), 1 << 20)
    assert found["middle"] == BIG[1000:1010].hex()
    assert found["config"] == "{}"


def test_the_real_client_understands_refusals(answers: Any) -> None:
    found = answers[0]
    assert found["refused"] == [
        "GatedRepoError",
        "RemoteEntryNotFoundError",
        "RevisionNotFoundError",
        "RepositoryNotFoundError",
        "RepositoryNotFoundError",
    ]
    assert found["secret"] == "org/secret"
    assert found["unlocked"] == BIG[:32].hex()


def test_large_files_come_from_another_host_that_sees_no_token(answers: Any) -> None:
    seen = answers[1]
    assert {s.server for s in seen} == {"hub", "store"}
    assert any(s.range for s in seen if s.server == "store")
    assert any(s.token for s in seen if s.server == "hub")
    assert not any(s.token for s in seen if s.server == "store")


def test_files_are_cut_where_asked(tmp_path: Path) -> None:
    import http.client

    with FakeHub({"a/b": {"x": BIG}}) as hub:
        hub.break_file("x", "cut", times=1, at=100_000)
        host = hub.store_url.removeprefix("http://")
        for expected in (100_000, len(BIG)):
            connection = http.client.HTTPConnection(host)
            connection.request("GET", "/a/b/x")
            try:
                got = connection.getresponse().read()
            except http.client.IncompleteRead as error:
                got = error.partial
            connection.close()
            assert len(got) == expected
        assert hub.sent("x") == 100_000 + len(BIG)
