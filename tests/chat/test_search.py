"""Search: the index finds what reading everything finds, and is never needed."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from localrun.chat.journal import INDEX_NAME, ChatStore
from localrun.chat.search import Hit, folded, matches, search

TEXTS = (
    "How do tides work?",
    "Ebbe und Flut: Gezeiten im Café",
    "日本語の文章です",
    "snake_case and CamelCase, 3.14",
    "",
)
WORDS = st.text(st.sampled_from("aàeéEt日本語 _.\"*'-3(ﬁß"), max_size=6)


@pytest.fixture
def store(tmp_path: Path) -> ChatStore:
    made = ChatStore(tmp_path)
    for number, text in enumerate(TEXTS):
        chat = made.create(title=f"Chat {number}")
        chat.add_answer(chat.add_user(text).id, f"answer {number} about the moon")
    return made


def found(store: ChatStore, words: str) -> set[str]:
    return {hit.title for hit in search(store, words)}


def without_index(store: ChatStore, words: str) -> list[Hit]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("localrun.chat.search._look_up", lambda *_: None)
        return search(store, words)


@pytest.mark.parametrize(
    ("words", "chats"),
    [
        ("tides", {0}), ("TIDE", {0}), ("ides", set()), ("cafe", {1}), ("CAFÉ", {1}), ("gezeiten flut", {1}),
        ("gezeiten tides", set()), ("日本", {2}), ("文章", {2}), ("文本", set()), ("case", {3}), ("camel", {3}),
        ("3.14", {3}), ("moon", {0, 1, 2, 3, 4}), ("answer 2", {2}), ("chat 4", {4}), ("?!", set()), ("", set()),
        ('"tides" OR moon', set()), ("tides*", {0}), ("NOT tides", set()), ("a" * 5000, set()),
    ],
)  # fmt: skip
def test_every_word_begins_a_word_of_the_message(store: ChatStore, words: str, chats: set[int]) -> None:
    assert found(store, words) == {f"Chat {number}" for number in chats}
    assert search(store, words) == without_index(store, words)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(WORDS)
def test_the_index_finds_what_reading_everything_finds(store: ChatStore, words: str) -> None:
    if not store.summaries()[0].n_messages > 2:
        store.open(store.summaries()[0].id).add_user("àé ét_3 日本ﬁ ß Et")
    assert search(store, words) == without_index(store, words)


def test_hits_say_where_and_what(store: ChatStore) -> None:
    (hit,) = search(store, "tides")
    chat = store.open(hit.chat_id)
    assert chat.tree[hit.message_id].text == TEXTS[0]
    assert hit.snippet == TEXTS[0]
    (long,) = [chat.add_user("x " * 500 + "needle " + "y " * 500)]
    (hit,) = search(store, "needle")
    assert hit.message_id == long.id
    assert "needle" in hit.snippet
    assert len(hit.snippet) < 130
    assert hit.snippet.startswith("…")
    assert hit.snippet.endswith("…")
    assert [one.message_id for one in search(store, "chat 0")] == [""], "the title"
    assert len(search(store, "moon", limit=2)) == 2
    assert [one.title for one in search(store, "moon")] == [f"Chat {n}" for n in (4, 3, 2, 1, 0)], "newest first"


def test_the_index_follows_the_chats(store: ChatStore) -> None:
    assert found(store, "comet") == set()
    first = store.summaries()[-1].id
    ChatStore(store.folder).open(first).add_user("a comet")
    assert found(store, "comet") == {"Chat 0"}
    store.change(first, title="Renamed")
    assert found(store, "comet") == {"Renamed"}
    assert found(store, "renamed") == {"Renamed"}
    store.delete(first)
    assert found(store, "comet") == set()
    assert store.folder is not None
    with sqlite3.connect(store.folder / INDEX_NAME) as index:
        rows = index.execute("SELECT count(*) FROM found WHERE chat = ?", (first,)).fetchone()
    index.close()
    assert rows == (0,), "what was deleted is not in the index either"


@pytest.mark.parametrize("content", [b"", b"not a database at all" * 100, None, "older", "broken"])
def test_a_damaged_index_is_rebuilt(store: ChatStore, content: bytes | str | None) -> None:
    search(store, "tides")
    assert store.folder is not None
    path = store.folder / INDEX_NAME
    if content is None:
        path.unlink()
    elif content == "older":
        with sqlite3.connect(path) as index:
            index.execute("PRAGMA user_version = 77")
        index.close()
    elif content == "broken":
        data = path.read_bytes()
        path.write_bytes(data[:4096] + os.urandom(len(data) - 4096))
    else:
        path.write_bytes(bytes(content))  # type: ignore[arg-type]
    assert found(store, "tides") == {"Chat 0"}
    with sqlite3.connect(path) as index:
        assert index.execute("SELECT count(*) FROM files").fetchone() == (5,)
    index.close()


def test_where_there_can_be_no_index_everything_is_read(store: ChatStore, monkeypatch: pytest.MonkeyPatch) -> None:
    assert store.folder is not None
    (store.folder / INDEX_NAME).mkdir()
    assert found(store, "tides") == {"Chat 0"}
    (store.folder / INDEX_NAME).rmdir()
    monkeypatch.setattr("localrun.chat.search._SECONDS", 0.05)
    search(store, "tides")
    with sqlite3.connect(store.folder / INDEX_NAME) as other:
        other.execute("BEGIN EXCLUSIVE")
        store.create(title="New").add_user("tides again")
        there = (store.folder / INDEX_NAME).stat().st_ino
        assert found(store, "tides") == {"Chat 0", "New"}
        assert (store.folder / INDEX_NAME).stat().st_ino == there, "what another program works on is left alone"
    other.close()
    monkeypatch.setitem(__import__("sys").modules, "sqlite3", None)
    assert found(store, "tides") == {"Chat 0", "New"}


@pytest.mark.parametrize("text", ["Why is the sky blue?", "Why is the sky blue? " * 50])
def test_a_message_that_is_its_chats_title_is_found_once(tmp_path: Path, text: str) -> None:
    store = ChatStore(tmp_path)
    message = store.create().add_user(text)
    assert [hit.message_id for hit in search(store, "sky")] == [message.id]
    assert search(store, "sky") == without_index(store, "sky")


def test_chats_in_memory_are_searched_too() -> None:
    store = ChatStore(None)
    store.create(title="T").add_user("a comet")
    assert [(hit.title, hit.snippet) for hit in search(store, "COMET")] == [("T", "a comet")]


def test_words_are_words_whatever_they_are_made_of() -> None:
    assert folded("Ärger, naïve ﬁn; STRASSE/straße") == " arger naive fin strasse strasse"
    assert matches("日本語", [folded("本語")])
    assert not matches("restful", [folded("ful")])


def test_the_index_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "chats"
    folder.mkdir(mode=0o755)
    before = os.umask(0)
    try:
        store = ChatStore(folder)
        chat = store.create()
        chat.add_user("a secret")
        folder.chmod(0o755)
        (folder / f"{chat.id}.jsonl").chmod(0o644)
        assert search(ChatStore(folder), "secret")
        assert (folder.stat().st_mode & 0o777, modes(folder)) == (0o700, {0o600})
        (folder / INDEX_NAME).chmod(0o644)
        assert search(ChatStore(folder), "secret")
        assert modes(folder) == {0o600}
    finally:
        os.umask(before)


def modes(folder: Path) -> set[int]:
    return {path.stat().st_mode & 0o777 for path in folder.iterdir()}


def test_a_search_never_closes_an_index_that_another_search_has_locked(store: ChatStore, tmp_path: Path) -> None:
    """Closing any descriptor of a file gives up all locks that the process has on it."""
    search(store, "moon")
    with closing(sqlite3.connect(tmp_path / INDEX_NAME)) as other:
        other.execute("BEGIN IMMEDIATE")
        search(store, "moon")
        line = f"import sqlite3; sqlite3.connect({str(tmp_path / INDEX_NAME)!r}, timeout=0).execute('BEGIN IMMEDIATE')"
        assert subprocess.run([sys.executable, "-c", line], capture_output=True).returncode == 1
