"""Responses that are kept by id: bounded, private, and gone with the process unless the disk was asked for."""

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from localrun_testing.fake_client import FakeClient
from localrun_testing.protocols import frames
from localrun_testing.served import serving

from localrun.base.request import LoadOptions, Request
from localrun.base.resources import resource
from localrun.client.local import LocalClient
from localrun.server.options import ServerOptions
from localrun.server.refusal import Refusal
from localrun.server.responses import stored as stored_responses
from localrun.server.responses.stored import FOLDER, StoredResponse, StoredResponses


@pytest.fixture(params=[False, True], ids=["memory", "disk"])
def on_disk(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setenv("LOCALRUN_HOME", str(tmp_path))
    return bool(request.param)


def name(number: int) -> str:
    return f"resp_{number:032x}"


def response(number: int, previous: int | None = None, text: str = "") -> StoredResponse:
    before = None if previous is None else name(previous)
    return StoredResponse({"id": name(number), "previous_response_id": before, "output": []}, [{"text": text}])


def numbers(stored: StoredResponses, upto: int) -> list[int]:
    """Those that are there."""
    found = []
    for number in range(upto):
        with suppress(Refusal):
            found.append(int(stored.get(name(number)).response["id"][5:], 16))
    return found


def test_what_is_kept_comes_back_until_it_is_removed(on_disk: bool) -> None:
    stored = StoredResponses(on_disk)
    for number in range(3):
        stored.keep(response(number, number - 1 if number else None, "\ud800ä"))
    assert [one.response["id"] for one in stored.chain(name(2))] == [name(0), name(1), name(2)]
    assert stored.chain("") == []
    assert stored.get(name(0)) == response(0, None, "\ud800ä")
    stored.remove(name(1))
    assert numbers(stored, 3) == [0, 2]
    with pytest.raises(Refusal, match="not stored") as caught:
        stored.chain(name(2))
    assert caught.value.code == "previous_response_not_found"


@pytest.mark.parametrize("limit", ["MAX_RESPONSES", "MAX_BYTES"])
def test_those_nobody_used_go_first(on_disk: bool, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(stored_responses, limit, {"MAX_RESPONSES": 2, "MAX_BYTES": 500}[limit])
    stored = StoredResponses(on_disk)
    stored.keep(response(0, text="x" * 50))
    stored.keep(response(1, text="x" * 50))
    stored.get(name(0))
    stored.keep(response(2, text="x" * 50))
    assert numbers(stored, 3) == [0, 2]


@pytest.mark.parametrize("id", ["", "resp_1", "../../secret", f"{name(1)}/..", name(1).upper()])
def test_ids_lead_nowhere_else(on_disk: bool, id: str) -> None:
    with pytest.raises(Refusal) as caught:
        StoredResponses(on_disk).get(id)
    assert caught.value.status == 404


def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOCALRUN_HOME", str(tmp_path))
    return tmp_path / "cache" / FOLDER


def test_files_are_private_and_outlive_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = folder(tmp_path, monkeypatch)
    StoredResponses(True).keep(response(1))
    (path,) = files.iterdir()
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(files.stat().st_mode) == 0o700
    assert StoredResponses(True).get(name(1)) == response(1)
    assert numbers(StoredResponses(False), 2) == [], "another server that keeps nothing on disk reads nothing there"


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_text("[]"),
        lambda path: path.write_text('{"response": 5, "items": 5}'),
        lambda path: path.write_bytes(b"\xff"),
        lambda path: path.write_text("[" * 100_000),
        lambda path: (path.unlink(), path.mkdir()),
        lambda path: (path.unlink(), path.symlink_to("/etc/passwd")),
    ],
)
def test_damaged_files_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Any) -> None:
    files = folder(tmp_path, monkeypatch)
    stored = StoredResponses(True)
    stored.keep(response(1))
    damage(files / f"{name(1)}.json")
    assert numbers(stored, 2) == []
    stored.keep(response(0))
    assert numbers(stored, 1) == [0], "what is put beside it is kept"


def test_what_the_disk_does_not_take_stays_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = folder(tmp_path, monkeypatch)
    stored = StoredResponses(True)
    files.write_text("a file in the way")
    assert stored.keep(response(1)) == "this response is kept in memory only: File exists"
    assert numbers(stored, 2) == [1]


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
def test_a_response_that_the_disk_does_not_take_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_stream: bool
) -> None:
    files = folder(tmp_path, monkeypatch)
    files.parent.mkdir(exist_ok=True)
    files.write_text("a file in the way")
    fake = FakeClient(LoadOptions(Path()), lambda request: "yes")
    with serving(lambda choice: fake, ServerOptions(port=0, store_disk=True)) as running:
        answer = httpx.post(f"{running.url}/v1/responses", json={"input": "x", "stream": is_stream}, timeout=60)
    last = frames(answer.text)[-1]["response"] if is_stream else answer.json()
    assert last["localrun"]["notes"] == ["this response is kept in memory only: File exists"]


def test_files_in_a_circle_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder(tmp_path, monkeypatch)
    stored = StoredResponses(True)
    stored.keep(response(1, previous=1))
    with pytest.raises(Refusal) as caught:
        stored.chain(name(1))
    assert caught.value.code == "previous_response_not_found"


def test_a_chain_goes_on_after_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder(tmp_path, monkeypatch)
    fake = FakeClient(LoadOptions(Path()), lambda request: str(request.messages[-1]["content"]))
    options = ServerOptions(port=0, store_disk=True)

    def ask(text: str, **more: Any) -> Any:
        with serving(lambda choice: fake, options) as running:
            return httpx.post(f"{running.url}/v1/responses", json={"input": text, **more}, timeout=60).json()

    ask("two", previous_response_id=ask("one")["id"])
    last: Request = fake.requests[-1]
    assert [message["content"] for message in last.messages] == ["one", "one", "two"]


def test_what_was_computed_of_a_chain_is_found_after_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though no key names the conversation: as it would be with one."""
    folder(tmp_path, monkeypatch)
    model = LoadOptions(Path(resource("localrun/builtin/localrun-tiny.gguf")), ctx=1024, disk_cache=1 << 27)

    def ask(text: str, **more: Any) -> Any:
        with LocalClient(model) as client, serving(lambda choice: client, ServerOptions(port=0, store_disk=True)) as at:
            body = {"input": text, "max_output_tokens": 2, "seed": 1, **more}
            return httpx.post(f"{at.url}/v1/responses", json=body, timeout=60).json()

    first = ask("Tell me a story of a small town by the sea. " * 12)
    second = ask("Go on.", previous_response_id=first["id"])
    third = ask("And then?", previous_response_id=second["id"])
    assert second["localrun"]["restored_from_disk"] > 64
    assert third["localrun"]["restored_from_disk"] >= second["localrun"]["restored_from_disk"]
