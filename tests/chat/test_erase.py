"""What is left of an erased chat, anywhere in the home folder: nothing. What others have in common with it stays."""

import json
import os
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from localrun.base.events import Done
from localrun.base.request import LoadOptions, Request, RequestMessage, Sampling
from localrun.base.resources import resource
from localrun.chat.conversation import Chat
from localrun.chat.journal import ChatStore
from localrun.chat.requests import request_messages
from localrun.chat.search import search
from localrun.client.local import LocalClient

COMMON = "What follows are notes on the way a computer keeps what it has read. " * 12
SECRET = "The heron of Quillbrook nests above the third lock and hides nine brass keys in the reeds. " * 3
RUN = 8  # consecutive ids that are not found by chance


def client() -> LocalClient:
    path = resource("localrun/builtin/localrun-tiny.gguf")
    return LocalClient(LoadOptions(path, ctx=1024, disk_cache=1 << 30))


def ask(one: LocalClient, chat: Chat, text: str) -> Done:
    """One turn, as the faces do it."""
    question = chat.add_user(text)
    messages: tuple[RequestMessage, ...] = tuple(request_messages(chat.visible(question.id), chat.system))
    request = Request(messages=messages, sampling=Sampling(temperature=0.0), max_tokens=24, chat_id=chat.id)
    done = next(event for event in one.generate(request) if isinstance(event, Done))
    ids = (*done.prompt_ids, *done.completion.token_ids)
    chat.add_answer(question.id, done.completion.text, ids=ids)
    return done


def files(home: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}


def traces(home: Path, ids: list[int], words: tuple[str, ...], others: Sequence[int] = ()) -> list[Path]:
    """Files with a run of these ids that `others` do not have, as numbers or digits, or one of the words."""
    theirs = {tuple(others[n : n + RUN]) for n in range(len(others) - RUN + 1)}
    runs = [ids[n : n + RUN] for n in range(len(ids) - RUN + 1) if tuple(ids[n : n + RUN]) not in theirs]
    needles = [struct.pack(f"<{RUN}I", *run) for run in runs]
    needles += [json.dumps(run, separators=(",", ":"))[1:-1].encode() for run in runs]
    needles += [word.encode() for word in words]
    return [path for path, content in files(home).items() if any(needle in content.lower() for needle in needles)]


def test_nothing_of_an_erased_chat_is_left_and_nothing_of_another_is_missing(home: Path) -> None:
    store = ChatStore(home / "chats")
    gone, kept = store.create(), store.create()
    with client() as one:
        ask(one, kept, COMMON + "What is a cache?")
        ask(one, gone, COMMON + SECRET + "Where are the keys?")
        turn = ask(one, gone, "And the heron of Quillbrook?")
        own = list(turn.prompt_ids)
        shared = next(n for n, (a, b) in enumerate(zip(own, kept.known_ids(), strict=False)) if a != b)
    assert shared > 2 * 64
    assert search(store, "quillbrook heron")
    words = ("quillbrook", "heron")
    before = traces(home, own[shared:], words, kept.known_ids())  # the answers of both may be the same
    assert {path.suffix for path in before} == {".kv", ".jsonl", ".sqlite"}
    n_blocks = len(list(home.rglob("*.kv")))

    store.erase(gone.id)
    assert traces(home, own[shared:], words, kept.known_ids()) == []
    assert 0 < len(list(home.rglob("*.kv"))) < n_blocks
    assert search(store, "quillbrook") == []
    assert search(store, "computer")
    with client() as one:
        again = ask(one, kept, "And then?")
    assert again.completion.cache.restored_tokens >= shared // 64 * 64


def test_an_engine_that_still_has_it_in_memory_writes_nothing_of_it(home: Path) -> None:
    store = ChatStore(home / "chats")
    gone, kept = store.create(), store.create()
    with client() as one:
        own = list(ask(one, gone, SECRET).prompt_ids)
        store.erase(gone.id)
        ask(one, kept, COMMON)
    assert traces(home, own[8:], ("quillbrook",)) == []
    assert list(home.rglob("*.kv"))


def test_blocks_without_an_owner_are_erased_too(home: Path) -> None:
    store = ChatStore(home / "chats")
    gone = store.create()
    with client() as one:
        ask(one, gone, SECRET)
    for path in home.rglob("chats/*"):
        if "kv" in path.parts:
            path.unlink()  # as if the process had died before it said so
    left = next(home.rglob("*.kv"))
    (left.parent / "tmpabc.tmp").write_bytes(left.read_bytes()[:1000])
    old = left.parents[1] / left.name  # where an earlier version had them
    old.write_bytes(left.read_bytes())
    store.erase(gone.id)
    assert not list(home.rglob("*.kv"))
    assert not list(home.rglob("*.tmp"))


def test_a_chat_that_was_deleted_a_month_ago_leaves_nothing_either(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ChatStore(home / "chats")
    gone = store.create()
    with client() as one:
        own = list(ask(one, gone, SECRET).prompt_ids)
    assert search(store, "quillbrook")
    store.delete(gone.id)
    now = time.time()
    monkeypatch.setattr("localrun.chat.summary.time.time", lambda: now + 31 * 86400)
    assert ChatStore(home / "chats").summaries() == []
    assert traces(home, own[8:], ("quillbrook",)) == []


def test_a_failed_erase_is_an_error_and_keeps_the_chat(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ChatStore(home / "chats")
    chat = store.create()
    chat.add_user(SECRET)
    search(store, "heron")
    unlink = os.unlink

    def refuse(path: str, **more: object) -> None:
        if str(path).endswith(".sqlite"):
            raise PermissionError(13, "Permission denied", str(path))
        unlink(path)

    monkeypatch.setattr(os, "unlink", refuse)
    with pytest.raises(Exception, match=r"search\.sqlite cannot be removed: Permission denied"):
        store.erase(chat.id)
    assert [one.id for one in store.summaries()] == [chat.id]


def test_history_rm_erase_also_takes_what_was_removed_before(home: Path) -> None:
    chat = ChatStore(home / "chats").create()
    chat.add_user(SECRET)
    for arguments in (("rm", "1", "--yes"), ("rm", chat.id, "--yes", "--erase")):
        subprocess.run([sys.executable, "-m", "localrun", "history", *arguments], check=True)
    assert not list((home / "chats").glob("*.jsonl"))
