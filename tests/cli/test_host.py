"""`localrun host`: servers are added, listed, asked and forgotten; a key is written nowhere."""

import json
from pathlib import Path

import pytest
from localrun_testing.faces import Faces
from localrun_testing.fake_chat_server import fake_chat_server
from localrun_testing.schemas import check

from localrun.client.remote.endpoint import Endpoint
from localrun.client.remote.endpoints import change_endpoint, read_endpoints, server_named, write_endpoints

KEY = "sk-canary-123456"


def test_a_server_is_added_asked_and_forgotten(faces: Faces, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_KEY", KEY)
    assert "there are no servers yet" in faces.run("host", "list")[2]
    with fake_chat_server() as server:
        server.key = KEY
        server.models = [{"id": "tiny", "max_model_len": 4096, "owned_by": "vllm"}, {"id": "big"}]
        server.pages = {"/version": {"version": "0.32.0"}}
        assert faces.run("host", "add", "lab", server.url, "--key-env", "LAB_KEY", "-m", "tiny")[0] == 0
        rows = json.loads(faces.run("host", "list", "--json")[1])
        check(rows, "host list")
        about = {"model": "tiny", "tokenizer": None, "key_from": "LAB_KEY", "has_key": True}
        assert rows == [{"name": "lab", "url": server.url, **about}]
        shown = json.loads(faces.run("host", "show", "lab", "--json")[1])
        check(shown, "host show")
        assert (shown["engine"], shown["version"]) == ("vLLM", "0.32.0")
        assert [(model["name"], model["ctx"]) for model in shown["models"]] == [("tiny", 4096), ("big", None)]
        assert set(shown["models"][0]["abilities"].values()) == {None}
        code, out, err = faces.run("host", "show", "lab")
        head, *rows = [line.split() for line in out.splitlines()]
        assert (head, rows) == (["MODEL", "CONTEXT", "TOKENIZER", "CAN", "CANNOT"], [["tiny", "4,096"], ["big"]])
        assert (code, "vLLM 0.32.0" in err, "not said: tools, schemas" in err) == (0, True, True)
        code, out, _ = faces.run("run", "--server", "lab", "Hi")
        assert (code, out.strip()) == (0, "Hello, wörld")
        assert server.seen[-1].body["model"] == "tiny"
    assert KEY not in (home / "endpoints.toml").read_text()
    assert faces.run("host", "rm", "lab")[0] == 0
    assert not read_endpoints()


def test_a_variable_that_is_not_set_is_named(faces: Faces, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAB_KEY", raising=False)
    with fake_chat_server() as server:
        server.key = KEY
        assert "LAB_KEY is not set yet" in faces.run("host", "add", "lab", server.url, "--key-env", "LAB_KEY")[2]
        assert "LAB_KEY, which is not set" in faces.run("host", "list")[1]
        code, _, err = faces.run("host", "show", "lab")
        assert (code, "set LAB_KEY" in err) == (2, True)


def test_a_change_keeps_the_variable_and_keys_of_before(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_KEY", KEY)
    write_endpoints(
        [Endpoint("lab", "http://lab/v1", KEY, key_env="LAB_KEY"), Endpoint("old", "http://old/v1", "sk-1")]
    )
    change_endpoint(server_named("old"), Endpoint("older", "http://old/v1", "sk-1"))
    assert read_endpoints() == [
        Endpoint("lab", "http://lab/v1", KEY, key_env="LAB_KEY"),
        Endpoint("older", "http://old/v1", "sk-1"),
    ]
    assert KEY not in (home / "endpoints.toml").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("add", "lab", "http://other/v1"), 2, "there is a server called lab already"),
        (("add", "x", "ftp://x"), 2, "is not the address of a server"),
        (("add", "x", "http://key@x/v1"), 2, "does not belong into the server's address"),
        (("add", "x", "http://x", "--key-env", "sk-canary-1"), 2, "the name of a variable, not the key itself"),
        (("show", "other"), 3, "there is lab"),
        (("rm", "lab", "other"), 3, "there is no server other"),
    ],
)
def test_errors(faces: Faces, arguments: tuple[str, ...], code: int, said: str) -> None:
    faces.run("host", "add", "lab", "http://127.0.0.1:9/v1")
    found, _, err = faces.run("host", *arguments)
    assert (found, said in err) == (code, True), err
    assert [one.name for one in read_endpoints()] == ["lab"]


def test_a_tokenizer_for_a_server_has_to_be_there(faces: Faces, home: Path, tmp_path: Path) -> None:
    code, _, err = faces.run("host", "add", "lab", "http://lab/v1", "--tokenizer", str(tmp_path))
    assert (code, read_endpoints()) == (3, []), err
    assert faces.run("host", "add", "lab", "http://lab/v1", "--tokenizer", "builtin")[0] == 0
    assert read_endpoints() == [Endpoint("lab", "http://lab/v1", tokenizer="builtin")]
    rows = json.loads(faces.run("host", "list", "--json")[1])
    check(rows, "host list")
    assert rows[0]["tokenizer"] == "builtin"
