"""The journal: what was acknowledged is there, whatever happened to the rest of the file."""

import json
import multiprocessing
import os
import random
import subprocess
import sys
import time
import zlib
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from localrun_testing import REPOSITORY

from localrun.base.errors import LocalrunError, NotFoundError
from localrun.chat import records
from localrun.chat.conversation import Chat
from localrun.chat.journal import ChatStore
from localrun.chat.requests import request_messages
from localrun.chat.tree import LOST_TEXT

posix = pytest.mark.skipif(os.name == "nt", reason="windows has other rights and locks")


def journal(folder: Path) -> Path:
    (path,) = folder.glob("*.jsonl")
    return path


def reopened(folder: Path) -> Chat:
    return ChatStore(folder).open(journal(folder).stem)


def texts(chat: Chat) -> list[str]:
    return [message.text for message in chat.tree.path(chat.tree.head)]


def talk(chat: Chat, turns: int = 3) -> None:
    for number in range(turns):
        question = chat.add_user(f"question {number} 天")
        ids = (*chat.known_ids(), number, 7)
        chat.add_answer(question.id, f"answer {number}", "hm", ids, {"prompt_tokens": number})


def test_a_journal_round_trips_a_chat(tmp_path: Path) -> None:
    store = ChatStore(tmp_path)
    chat = store.create(title="", model="m", system="be brief", preset="calm")
    talk(chat)
    chat.set(policy="roll", title="A title")
    last = chat.add_user("stopped \ud800 here\x00\u2028")
    chat.add_answer(last.id, "half", stats={"itl": float("nan"), "n": 3}, interrupted=True)
    other = ChatStore(tmp_path).open(chat.id)
    assert [(m.id, m.parent, m.role, m.text, m.thinking, m.ids, m.kept, m.created) for m in other.tree.messages()] == [
        (m.id, m.parent, m.role, m.text, m.thinking, m.ids, m.kept, m.created) for m in chat.tree.messages()
    ]
    assert (other.title, other.model, other.system, other.preset, other.policy) == (
        "A title", "m", "be brief", "calm", "roll",
    )  # fmt: skip
    assert other.created == chat.created
    assert other.tree.head == chat.tree.head
    assert other.known_ids(last.id) == chat.known_ids(last.id) == (0, 7, 1, 7, 2, 7)
    assert other.tree[other.tree.head or ""].stats == {"n": 3}
    assert other.tree[other.tree.head or ""].interrupted
    assert other.damaged == 0


def test_the_file_is_lines_of_json_with_a_checksum(tmp_path: Path) -> None:
    talk(ChatStore(tmp_path).create(), turns=1)
    _, *lines = journal(tmp_path).read_bytes().split(b"\n")
    assert [json.loads(line)["kind"] for line in lines] == ["chat", "message", "message"]
    for line in lines:
        body, _, end = line.rpartition(b',"crc32":"')
        assert int(end[:8], 16) == zlib.crc32(body)


@posix
def test_a_chat_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    talk(ChatStore(tmp_path / "chats").create(), turns=1)
    assert journal(tmp_path / "chats").stat().st_mode & 0o077 == 0
    assert (tmp_path / "chats").stat().st_mode & 0o077 == 0


def test_a_users_message_is_synced_before_it_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    real = os.fsync

    def fsync(fd: int) -> None:
        synced.append(os.fstat(fd).st_size)
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    chat = ChatStore(tmp_path).create()
    assert synced == [], "a chat in which nothing was said is not kept"
    assert not list(tmp_path.iterdir())
    chat.add_user("hello")
    assert journal(tmp_path).stat().st_size in synced
    assert texts(reopened(tmp_path)) == ["hello"]


def test_edits_and_second_answers_are_branches(tmp_path: Path) -> None:
    chat = ChatStore(tmp_path).create()
    talk(chat, turns=2)
    path = chat.tree.path(chat.tree.head)
    chat.edit(path[2].id, "another question")
    assert texts(chat) == ["question 0 天", "answer 0", "another question"]
    chat.add_answer(chat.tree.head or "", "another answer")
    chat.select(path[2].id)
    assert texts(chat)[2:] == ["question 1 天", "answer 1"]
    chat.rewind(path[2].id)
    second = chat.add_answer(path[2].id, "second")
    assert chat.tree.siblings(second.id) == [path[3].id, second.id]
    chat.rewind(None)
    chat.add_user("from the beginning")
    other = reopened(tmp_path)
    assert texts(other) == ["from the beginning"]
    assert len(other.tree.children(None)) == 2
    other.select(path[3].id)
    assert texts(other)[-1] == "answer 1"


def test_known_ids_are_kept_once_and_come_back_whole() -> None:
    chat = ChatStore(None).create()
    first = chat.add_user("a")
    one = chat.add_answer(first.id, "b", ids=tuple(range(100)))
    second = chat.add_user("c")
    grown = (*range(100), *range(500, 520))
    two = chat.add_answer(second.id, "d", ids=grown)
    assert (two.kept, two.ids) == (100, tuple(range(500, 520)))
    third = chat.add_user("e")
    rewritten = (*range(90), 7, 8)
    three = chat.add_answer(third.id, "f", ids=rewritten)
    assert three.kept == 90
    assert chat.known_ids() == rewritten
    assert chat.known_ids(second.id) == chat.known_ids(one.id) == tuple(range(100))
    assert chat.known_ids(two.id) == grown
    chat.select(two.id)
    retry = chat.add_answer(second.id, "elsewhere", ids=())
    assert chat.known_ids(retry.id) == (), "an engine that does not tell its ids"
    fourth = chat.add_user("g", retry.id)
    chat.add_answer(fourth.id, "h", ids=(1, 2))
    assert chat.known_ids() == (1, 2)


def test_ids_that_build_on_a_lost_answer_are_not_made_up(tmp_path: Path) -> None:
    talk(ChatStore(tmp_path).create())
    damage(tmp_path, "answer 0")
    assert reopened(tmp_path).known_ids() == ()


def damage(folder: Path, what: str) -> None:
    path = journal(folder)
    data = path.read_bytes()
    at = data.index(what.encode())
    path.write_bytes(data[:at] + b"#" + data[at + 1 :])


@pytest.mark.parametrize("lost", ["question 0", "answer 0", "question 1", "answer 1", "question 2"])
def test_a_damaged_record_costs_itself_only(tmp_path: Path, lost: str) -> None:
    chat = ChatStore(tmp_path).create(model="m")
    talk(chat)
    before = texts(chat)
    damage(tmp_path, lost)
    other = reopened(tmp_path)
    expected = [LOST_TEXT if text.startswith(lost) else text for text in before]
    assert texts(other) == expected
    assert other.damaged == 1
    assert [message.role for message in other.tree.path(other.tree.head)] == ["user", "assistant"] * 3
    assert [m["content"] for m in request_messages(other.visible(), other.system)] == expected
    assert other.tree.path(other.tree.head)[expected.index(LOST_TEXT)].lost
    other.add_user("and on")
    assert texts(reopened(tmp_path)) == [*expected, "and on"]


def test_two_lost_in_a_row_and_a_lost_beginning(tmp_path: Path) -> None:
    chat = ChatStore(tmp_path).create(title="gone with the header")
    talk(chat)
    damage(tmp_path, "question 1")
    damage(tmp_path, "answer 1")
    damage(tmp_path, "gone with")
    other = reopened(tmp_path)
    assert texts(other) == ["question 0 天", "answer 0", LOST_TEXT, "question 2 天", "answer 2"]
    roles = [m["role"] for m in request_messages(other.visible(), other.system)]
    assert roles == ["user", "assistant", "user", "assistant"], "turns take turns"
    assert other.title == "question 0 天"
    assert other.created > 0


def test_a_file_cut_anywhere_loses_what_was_cut(tmp_path: Path) -> None:
    store = ChatStore(tmp_path)
    chat = store.create()
    talk(chat, turns=4)
    path = journal(tmp_path)
    data = path.read_bytes()
    ends = [i for i in range(len(data) + 1) if data[:i].endswith(b'"}') and (i == len(data) or data[i] == 10)]
    for cut in range(0, len(data), 7):
        path.write_bytes(data[:cut])
        whole = sum(end <= cut for end in ends)
        cut_chat = ChatStore(tmp_path).open(chat.id)
        assert len(cut_chat.tree) == max(0, whole - 1), "all but the header are messages"
        cut_chat.add_user("after")
        again = ChatStore(tmp_path).open(chat.id)
        assert texts(again)[-1] == "after"
        assert len(again.tree) == len(cut_chat.tree), "the torn record costs itself only"


def test_flipped_bits_cost_one_record_each(tmp_path: Path) -> None:
    chat = ChatStore(tmp_path).create()
    talk(chat, turns=4)
    path = journal(tmp_path)
    data = path.read_bytes()
    rng = random.Random(5)
    for _ in range(400):
        at = rng.randrange(len(data))
        path.write_bytes(data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :])
        other = ChatStore(tmp_path).open(chat.id)
        read = [message for message in other.tree.messages() if not message.lost]
        assert len(read) >= 7, f"bit at {at}"
        assert {message.id for message in read} <= {message.id for message in chat.tree.messages()}


@pytest.mark.parametrize("filler", [b"", b'{"kind":', b'{"kind":"x"', b'x{"kind":"message"y'])
def test_a_line_of_many_ends_of_records_is_read_once_for_each_beginning(
    monkeypatch: pytest.MonkeyPatch, filler: bytes
) -> None:
    read: list[int] = []

    def counted(data: bytes, crc: int = 0) -> int:
        read.append(len(data))
        return crc32(data, crc)

    crc32 = zlib.crc32
    monkeypatch.setattr("localrun.chat.records.zlib.crc32", counted)
    whole = records.pack("select", head=None)[1:]
    for n in (100, 1000):
        read.clear()
        line = (filler + b',"crc32":"00000000"}') * n + whole + b"torn"
        found = list(records.split(line))
        assert [record for _, record in found] == [None, whole, None]
        assert sum(read) <= 20 * len(line)
        assert len(read) <= 20 * n + 20


def test_records_inside_of_a_record_that_is_torn(tmp_path: Path) -> None:
    """Up to sixteen that were cut before the one that is whole."""
    inner = records.pack("select", head=None)[1:]
    outer = records.pack("message", stats={"kind": "x", "crc32": "00000000"}, text="all of it")[1:]
    for torn in (0, 1, 7, 15):
        for whole in (inner, outer):
            line = b'{"kind":"message","te' * torn + whole + b"!" + whole
            assert [record for _, record in records.split(line) if record] == [whole, whole]


def test_blocks_of_a_file_that_changed_places_lose_nothing(tmp_path: Path) -> None:
    chat = ChatStore(tmp_path).create(model="m")
    talk(chat)
    before = texts(chat)
    path = journal(tmp_path)
    _, head, *lines = path.read_bytes().split(b"\n")
    for order in permutations(range(len(lines))):
        path.write_bytes(b"\n" + b"\n".join([head, *(lines[number] for number in order)]))
        assert texts(reopened(tmp_path)) == before


def test_zeros_after_a_power_cut_are_passed_over(tmp_path: Path) -> None:
    chat = ChatStore(tmp_path).create()
    talk(chat, turns=1)
    with journal(tmp_path).open("ab") as file:
        file.write(bytes(4096))
    assert len(reopened(tmp_path).tree) == 2
    reopened(tmp_path).add_user("after")
    assert texts(reopened(tmp_path)) == ["question 0 天", "answer 0", "after"]


def test_records_of_newer_versions_are_ignored_and_kept(tmp_path: Path) -> None:
    from localrun.chat.records import pack

    chat = ChatStore(tmp_path).create()
    talk(chat, turns=1)
    path = journal(tmp_path)
    newer = [
        pack("vote", message="x", value=1),
        pack("set", policy="compress", colour="red", shape={"a": 1}),
        pack("message", id="n1", parent=chat.tree.head, role="user", text="new", created=1, mood="fine"),
        pack("message", id="n2", parent="n1", role="tool", text="result", created=2),
    ]
    with path.open("ab") as file:
        file.write(b"".join(newer))
    other = reopened(tmp_path)
    assert texts(other)[-2:] == ["new", "result"]
    assert other.policy == "stop"
    assert [m["role"] for m in request_messages(other.visible(), other.system)] == ["user", "assistant", "user"]
    other.add_user("and on")
    assert all(record in path.read_bytes() for record in newer)


@pytest.mark.parametrize(
    "fields",
    [
        {"id": 5}, {"text": None}, {"role": []}, {"ids": [1, "x"]}, {"ids": {"a": 1}}, {"kept": -1}, {"parent": 3},
        {"created": "now"}, {"stats": []}, {"thinking": 1}, {"ids": [True]}, {"kept": 1.5},
    ],
)  # fmt: skip
def test_fields_of_the_wrong_kind_are_no_message(tmp_path: Path, fields: dict[str, Any]) -> None:
    from localrun.chat.records import pack

    whole = {"id": "x", "parent": None, "role": "user", "text": "t", "created": 1.0}
    (tmp_path / "20260101-a.jsonl").write_bytes(pack("message", **whole, n=1) + pack("message", **{**whole, **fields}))
    chat = ChatStore(tmp_path).open("20260101-a")
    assert [message.text for message in chat.tree.messages()] == ["t"]


@pytest.mark.parametrize("at", ["1e999", "-5", "NaN", '"x"', "1e30", "9" * 400, "null", "true"])
def test_times_that_no_calendar_has(tmp_path: Path, at: str) -> None:
    body = f'{{"kind":"message","id":"x","parent":null,"role":"user","text":"t","created":{at}'.encode()
    (tmp_path / "a-b.jsonl").write_bytes(b'\n%b,"crc32":"%08x"}' % (body, zlib.crc32(body)))
    store = ChatStore(tmp_path)
    (summary,) = store.summaries()
    for moment in (summary.updated, summary.created, store.open("a-b").created):
        time.gmtime(moment)


def test_a_message_cannot_be_its_own_ancestor(tmp_path: Path) -> None:
    from localrun.chat.records import pack

    def line(name: str, parent: str, grandparent: str | None) -> bytes:
        return pack("message", id=name, parent=parent, grandparent=grandparent, role="user", text=name, created=1)

    (tmp_path / "a-b.jsonl").write_bytes(line("x", "x", "x") + line("y", "z", "y") + line("z", "y", "x"))
    chat = ChatStore(tmp_path).open("a-b")
    for message in chat.tree.messages():
        assert len(chat.tree.path(message.id)) <= len(chat.tree)


def test_deeply_nested_records_are_damaged_ones(tmp_path: Path) -> None:
    body = b'{"kind":"message","id":' + b"[" * 100_000
    (tmp_path / "a-b.jsonl").write_bytes(b'\n%b,"crc32":"%08x"}' % (body, zlib.crc32(body)))
    assert len(ChatStore(tmp_path).open("a-b").tree) == 0
    assert ChatStore(tmp_path).summaries()[0].id == "a-b"


def test_without_a_folder_chats_live_in_memory() -> None:
    store = ChatStore(None)
    assert "not kept" in store.notice
    chat = store.create(model="m")
    assert store.summaries() == []
    talk(chat)
    assert [summary.id for summary in store.summaries()] == [chat.id]
    assert store.open(chat.id) is chat
    assert store.peek(chat.id) is chat
    assert not chat.kept
    assert not chat.problem
    store.change(chat.id, title="New")
    assert store.summaries()[0].title == "New"
    store.delete(chat.id)
    assert store.summaries() == []
    store.restore(chat.id)
    assert store.summaries()
    store.erase(chat.id)
    with pytest.raises(NotFoundError):
        store.open(chat.id)
    store.close()


def test_a_full_disk_is_reported_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ChatStore(tmp_path)
    chat = store.create()
    first = chat.add_user("before")
    real = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda fd, data: real(fd, data[:20]))
        second = chat.add_user("while it is full")
        assert "no space" in chat.problem
        chat.add_answer(second.id, "an answer")
        assert texts(chat) == ["before", "while it is full", "an answer"]
        assert texts(ChatStore(tmp_path).open(chat.id)) == ["before"]
        assert store.summaries()[0].n_messages == 3, "what is in memory is listed"
        with pytest.raises(LocalrunError, match="no space"):
            store.change(chat.id, title="x")
    store.close()
    assert chat.problem == ""
    other = ChatStore(tmp_path).open(chat.id)
    assert texts(other) == ["before", "while it is full", "an answer"]
    assert other.tree[first.id].text == "before"


def test_a_first_message_that_does_not_fit_leaves_no_chat_of_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ChatStore(tmp_path)
    chat = store.create(title="Full")
    real = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda fd, data: real(fd, data[:120]))
        chat.add_user("x" * 200)
    assert "no space" in chat.problem
    assert ChatStore(tmp_path).summaries() == []
    chat.add_user("y")
    assert texts(reopened(tmp_path)) == ["x" * 200, "y"]


def test_a_folder_that_is_full_from_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ChatStore(tmp_path)
    chat = store.create()
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        chat.add_user("x")
    assert "No space" in chat.problem
    assert [summary.id for summary in store.summaries()] == [chat.id]
    chat.add_user("y")
    assert texts(reopened(tmp_path)) == ["x", "y"]


def test_a_chat_that_another_program_erased_goes_on_in_memory(tmp_path: Path) -> None:
    chat = ChatStore(tmp_path).create()
    chat.add_user("x")
    ChatStore(tmp_path).erase(chat.id)
    chat.add_user("y")
    assert "another program" in chat.problem
    assert texts(chat) == ["x", "y"]
    assert not list(tmp_path.iterdir()), "nothing that was erased comes back"


def test_deleting_is_a_tombstone_and_writing_lifts_it(tmp_path: Path) -> None:
    here, there = ChatStore(tmp_path), ChatStore(tmp_path)
    chat = here.create()
    chat.add_user("x")
    there.delete(chat.id)
    assert here.summaries() == there.summaries() == []
    assert journal(tmp_path).exists()
    there.restore(chat.id)
    assert [one.id for one in here.summaries()] == [chat.id]
    there.delete(chat.id)
    chat.add_user("typed in the program that still had it open")
    assert [one.n_messages for one in there.summaries()] == [2]
    assert not ChatStore(tmp_path).open(chat.id).deleted


def test_a_deleted_chat_goes_after_thirty_days(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ChatStore(tmp_path)
    chat = store.create()
    chat.add_user("x")
    store.delete(chat.id)
    now = time.time()
    monkeypatch.setattr("localrun.chat.summary.time.time", lambda: now + 29 * 24 * 3600)
    assert store.summaries() == []
    assert journal(tmp_path).exists()
    monkeypatch.setattr("localrun.chat.summary.time.time", lambda: now + 31 * 24 * 3600)
    store.summaries()
    assert not list(tmp_path.glob("*.jsonl"))


def test_lists_are_newest_first_and_titled(tmp_path: Path) -> None:
    store = ChatStore(tmp_path)
    old, new = store.create(model="a"), store.create(title="Named", model="b")
    old.add_user("  How\n do tides   work " + "x" * 100)
    new.add_user("q")
    old.add_user("later")
    rows = ChatStore(tmp_path).summaries()
    assert [row.id for row in rows] == [old.id, new.id]
    assert rows[0].title.startswith("How do tides work xxx")
    assert len(rows[0].title) == 60
    assert rows[1].title == "Named"
    assert [row.model for row in rows] == ["a", "b"]
    assert [row.n_messages for row in rows] == [2, 1]
    assert rows == store.summaries()


@posix
@pytest.mark.parametrize("chat_id", ["../x", "a/b", "", ".hidden", "x" * 200, "a\x00b", "20260101-none"])
def test_ids_lead_nowhere_else(tmp_path: Path, chat_id: str) -> None:
    (tmp_path / "x.jsonl").write_text("secret")
    store = ChatStore(tmp_path / "chats")
    for call in (store.open, store.delete, store.peek, store.erase if chat_id != "20260101-none" else store.open):
        with pytest.raises(NotFoundError):
            call(chat_id)
    assert (tmp_path / "x.jsonl").exists()


@posix
def test_pipes_and_folders_in_the_folder_are_passed_over(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe-1.jsonl")
    (tmp_path / "folder-1.jsonl").mkdir()
    (tmp_path / "notes.txt").write_text("x")
    talk(ChatStore(tmp_path).create())
    assert len(ChatStore(tmp_path).summaries()) == 1
    for name in ("pipe-1", "folder-1"):
        with pytest.raises(LocalrunError):
            ChatStore(tmp_path).open(name)


WRITER = """
import sys
from pathlib import Path
from localrun.chat.journal import ChatStore
chat = ChatStore(Path(sys.argv[1])).open(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(sys.argv[4])):
    message = chat.add_user(f"{sys.argv[3]} {number} " + "x" * 3000, chat.tree.children(None)[0])
    print(message.id, flush=True)
"""


def writer(folder: Path, chat_id: str, name: str, count: int) -> "subprocess.Popen[str]":
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", WRITER, str(folder), chat_id, name, str(count)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_several_programs_may_write_at_once(tmp_path: Path) -> None:
    store = ChatStore(tmp_path)
    chat = store.create()
    chat.add_user("root")
    writers = [writer(tmp_path, chat.id, name, 60) for name in "ab"]
    for process in writers:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    mine = [chat.add_user(f"mine {number}", chat.tree.children(None)[0]).id for number in range(40)]
    acknowledged = set(mine)
    for process in writers:
        out, _ = process.communicate(timeout=60)
        acknowledged |= set(out.split())
    assert len(acknowledged) == 160
    other = ChatStore(tmp_path).open(chat.id)
    assert {message.id for message in other.tree.messages()} == acknowledged | set(other.tree.children(None))
    assert other.damaged == 0
    head = chat.tree.head
    assert chat.refresh()
    assert chat.tree.head == head, "what others write does not move the branch that is shown"
    assert len(chat.tree) == 161
    assert not chat.refresh()


def write_until_killed(folder: Path, chat_id: str, acknowledge: int) -> None:
    """In a process of its own: long messages, each told of once it is said to be on disk."""
    chat = ChatStore(folder).open(chat_id)
    while True:
        message = chat.add_user("x" * 5000, chat.tree.children(None)[0])
        os.write(acknowledge, f"{message.id}\n".encode())


@posix
@pytest.mark.parametrize("rounds", [10, pytest.param(200, marks=pytest.mark.slow)])
def test_no_acknowledged_turn_is_lost_to_a_kill(tmp_path: Path, rounds: int) -> None:
    """Kills at random moments of a program that does nothing but write, often in the middle of a record."""
    rng = random.Random(11)
    store = ChatStore(tmp_path)
    acknowledged: dict[str, set[str]] = {}
    for round_number in range(rounds):
        if round_number % 25 == 0:
            chat = store.create()
            chat.add_user("root")
            acknowledged[chat.id] = set()
        reading, writing = os.pipe()
        process = multiprocessing.get_context("fork").Process(
            target=write_until_killed, args=(tmp_path, chat.id, writing)
        )
        process.start()
        os.close(writing)
        with open(reading) as told:
            first = told.readline() if round_number % 4 else ""
            time.sleep(rng.uniform(0.0, 0.01))
            process.kill()
            process.join()
            acknowledged[chat.id] |= {line.strip() for line in (first, *told) if line.endswith("\n")}
    assert sum(map(len, acknowledged.values())) >= rounds // 2
    for chat_id, ids in acknowledged.items():
        read = ChatStore(tmp_path).open(chat_id)
        assert ids <= {message.id for message in read.tree.messages()}
        assert not any(message.lost for message in read.tree.messages())
    assert {one.id for one in ChatStore(tmp_path).summaries()} == set(acknowledged)


def test_seventy_long_chats_are_listed_quickly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """70 chats of 200 messages with the ids of their tokens: 28 MB. Counted by work, not by a clock: no message but
    the first and the last of a chat is parsed, and a second list reads no file."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    chat = ChatStore(tmp_path).create(model="m")
    for number in range(100):
        question = chat.add_user("what " * 30)
        chat.add_answer(question.id, "because " * 150, ids=(*chat.known_ids(), *range(number, number + 300)))
    data = journal(tmp_path).read_bytes()
    for number in range(69):
        (tmp_path / f"copy-{number}.jsonl").write_bytes(data)
    parsed: list[bytes] = []
    real = json.loads

    def loads(text: Any, **options: Any) -> Any:
        parsed.append(text)
        return real(text, **options)

    monkeypatch.setattr(json, "loads", loads)
    store = ChatStore(tmp_path)
    assert len(store.summaries()) == 70
    assert len(parsed) == 70 * 3
    monkeypatch.setattr("localrun.chat.summary.read_file", lambda path: pytest.fail("read again"))
    assert len(store.summaries()) == 70


def test_a_chat_is_as_old_as_its_last_words(tmp_path: Path) -> None:
    store = ChatStore(tmp_path)
    chat = store.create(title="One")
    said = chat.add_answer(chat.add_user("hello").id, "hi").created
    chat.set(title="Two", pinned=True)
    store.delete(chat.id)
    assert store.summaries(deleted=True)[0].updated > said, "when it was deleted"
    store.restore(chat.id)
    assert store.summaries()[0].updated == said
