"""A home that an earlier version wrote: every chat is there, and nothing that it computed is computed again."""

import json
import tarfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.kept_weights import keep_packed_weights

from localrun.backends.cpu.library import NativeLibrary
from localrun.base.content import FilePart, TextPart
from localrun.base.paths import writable_folder
from localrun.base.request import LoadOptions, Sampling
from localrun.base.settings import read_settings
from localrun.chat.journal import Chat, ChatStore
from localrun.chat.records import parse, split
from localrun.chat.turn import Answer, TurnOptions, begin_turn
from localrun.client.local import LocalClient

HOMES = sorted((Path(__file__).parent / "homes").glob("*.tar.xz"))
TURN = TurnOptions(Sampling(temperature=0.0), max_tokens=4)


@dataclass(frozen=True)
class EarlierHome:
    """Where it lies now, and what is in it."""

    model: Path
    expected: dict[str, Any]

    def open_chat(self) -> Chat:
        return ChatStore(writable_folder("chats")).open(self.expected["chat"])

    def load(self) -> LocalClient:
        how = LoadOptions(self.model, "tiny", "Q8_0", "cpu", threads=1, ctx=512, kv="f16", disk_cache=1 << 30)
        return LocalClient(replace(how, packed_weights=1 << 20, chat_id=self.expected["chat"]))


@pytest.fixture(params=HOMES, ids=lambda path: path.name.partition(".")[0])
def earlier(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: NativeLibrary
) -> EarlierHome:
    with tarfile.open(request.param) as archive:
        archive.extractall(tmp_path, filter="data")
    monkeypatch.setenv("LOCALRUN_HOME", str(tmp_path / "home"))
    keep_packed_weights(monkeypatch)
    library.use_isa("generic")  # every machine has it
    return EarlierHome(tmp_path / "tiny.gguf", json.loads((tmp_path / "expected.json").read_text()))


def test_every_message_is_there(earlier: EarlierHome) -> None:
    assert len(ChatStore(writable_folder("chats")).summaries()) == earlier.expected["n_chats"]
    chat = earlier.open_chat()
    messages = chat.tree.messages()
    assert (chat.title, chat.system, chat.pinned, chat.damaged) == ("Rivers", "Be brief.", True, 0)
    assert [message.text for message in messages] == earlier.expected["texts"]
    assert not any(message.lost or message.unfinished or message.extra for message in messages)
    assert messages[2].content == (FilePart("notes.txt", "buy milk"), TextPart("What is missing?"))


def test_settings_are_there(earlier: EarlierHome) -> None:
    settings = read_settings()
    assert (settings.temperature, settings.theme) == (0.5, "nord")


def test_a_chat_goes_on_from_what_was_computed(earlier: EarlierHome) -> None:
    chat = earlier.open_chat()
    chat.rewind(earlier.expected["rewound_to"])
    question = chat.add_user("And what else?")
    with earlier.load() as client:
        request, _ = begin_turn(chat, question.id, TURN, client.info.ctx)
        answer = Answer(chat, question.id, request, client.info)
        for event in client.generate(request):
            answer.take(event)
    assert answer.done is not None
    figures = answer.done.completion
    assert figures.cached_tokens
    assert figures.cached_tokens > 128, "of the two turns before"
    assert figures.cached_tokens == figures.cache.restored_tokens, "from the disk"


def test_packed_weights_are_mapped_from_the_second_start_on(earlier: EarlierHome) -> None:
    with earlier.load() as client:
        client.model.kept.thread.join()
    with earlier.load() as client:
        assert len(client.model.kept.found) == earlier.expected["packed"]


def test_what_is_written_now_is_read_by_that_version(earlier: EarlierHome) -> None:
    """Its rules: a text in every message, known fields of these types, unknown ones passed over."""
    types = {"id": str, "parent": str | None, "role": str, "text": str, "created": float | int}
    may_be = {"thinking": str, "ids": list, "kept": int, "stats": dict, "grandparent": str | None, "interrupted": bool}
    chat = earlier.open_chat()
    question = chat.add_user((TextPart("above"), FilePart("notes.txt", "buy milk"), TextPart("below")))
    with earlier.load() as client:
        request, _ = begin_turn(chat, question.id, TURN, client.info.ctx)
        answer = Answer(chat, question.id, request, client.info)
        for event in client.generate(request):
            answer.take(event)
        assert answer.keep()
    folder = writable_folder("chats")
    assert folder is not None
    records = [parse(record or b"") for _, record in split((folder / f"{chat.id}.jsonl").read_bytes())]
    messages = [record for record in records if record is not None and record["kind"] == "message"]
    assert len(messages) == len(earlier.expected["texts"]) + 2
    for record in messages:
        assert all(isinstance(record[name], kind) for name, kind in types.items())
        assert all(isinstance(record[name], kind) for name, kind in may_be.items() if name in record)
