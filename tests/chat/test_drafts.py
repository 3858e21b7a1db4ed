"""Answers written down piece by piece: what a crash leaves of them, and how the whole one takes its place."""

from pathlib import Path
from typing import Any

import pytest

from localrun.base.content import FilePart, TextPart, as_content
from localrun.chat.conversation import Chat
from localrun.chat.draft import Draft
from localrun.chat.journal import ChatStore
from localrun.chat.records import pack


@pytest.fixture
def chat(tmp_path: Path) -> Chat:
    chat = ChatStore(tmp_path).create()
    chat.add_user("tell me all")
    return chat


def begun(chat: Chat, *texts: str) -> Draft:
    """A draft that has grown by each of these."""
    draft = chat.draft(chat.tree.head or "")
    for number in range(len(texts)):
        draft.write("".join(texts[: number + 1]), "hm" * (number + 1))
    return draft


def journal(folder: Path) -> Path:
    (path,) = folder.glob("*.jsonl")
    return path


def reopened(folder: Path) -> Chat:
    return ChatStore(folder).open(journal(folder).stem)


def test_a_half_answer_survives_a_crash(tmp_path: Path, chat: Chat) -> None:
    draft = begun(chat, "It is ", "a long 天 ", "story")
    last = reopened(tmp_path).tree.messages()[-1]
    assert (last.id, last.parent, last.role) == (draft.id, chat.tree.head, "assistant")
    assert (last.text, last.thinking) == ("It is a long 天 story", "hmhmhm")
    assert last.interrupted
    assert last.unfinished
    assert last.created > 0
    size = journal(tmp_path).stat().st_size
    draft.write("It is a long 天 story", "hmhmhm")
    assert journal(tmp_path).stat().st_size == size, "nothing new is not written"


def test_the_whole_answer_takes_its_place(tmp_path: Path, chat: Chat) -> None:
    asked = chat.tree.head or ""
    draft = begun(chat, "It is ", "a long ")
    other = reopened(tmp_path)
    follows = other.add_user("go on")
    chat.add_answer(asked, "It is a long story.", ids=(1, 2), draft=draft)
    other.refresh()
    for one in (chat, other, reopened(tmp_path)):
        whole = one.tree[draft.id]
        assert (whole.text, whole.ids) == ("It is a long story.", (1, 2))
        assert not whole.interrupted
        assert not whole.unfinished
        assert one.tree.siblings(draft.id) == [draft.id]
    assert [message.text for message in reopened(tmp_path).tree.path(follows.id)][1:] == [
        "It is a long story.",
        "go on",
    ]


def test_a_piece_that_comes_late_changes_nothing(tmp_path: Path, chat: Chat) -> None:
    asked = chat.tree.head or ""
    draft = begun(chat, "It is ")
    chat.add_answer(asked, "It is ", draft=draft)
    draft.write("It is more")
    assert reopened(tmp_path).tree[draft.id].text == "It is "


def test_a_lost_piece_ends_the_text_and_leaves_no_hole(tmp_path: Path, chat: Chat) -> None:
    draft = begun(chat, "one ", "two ", "three ")
    path = journal(tmp_path)
    path.write_bytes(path.read_bytes().replace(b'"two "', b'"TWO "'))
    assert reopened(tmp_path).tree[draft.id].text == "one "


def test_ones_own_draft_is_no_second_answer(chat: Chat) -> None:
    asked = chat.tree.head or ""
    begun(chat, "It is ")
    chat.refresh()
    assert chat.tree.children(asked) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": 7},
        {"id": ["x"]},
        {"parent": None},
        {"parent": ["x"]},
        {"parent": "nobody"},
        {"after": None},
        {"after": [1, 0]},
        {"text": None},
        {"thinking": 3},
    ],
)
def test_a_piece_of_another_make_is_passed_over(tmp_path: Path, chat: Chat, wrong: dict[str, Any]) -> None:
    fields = {"id": "x", "parent": chat.tree.head, "at": 1.0, "after": [0, 0], "text": "hello", "thinking": ""}
    with journal(tmp_path).open("ab") as file:
        file.write(pack("piece", **{**fields, **wrong}))
    assert len(reopened(tmp_path).tree) == 1
    with journal(tmp_path).open("ab") as file:
        file.write(pack("piece", **fields))
    assert reopened(tmp_path).tree["x"].text == "hello"


def test_a_piece_never_changes_a_message(tmp_path: Path, chat: Chat) -> None:
    asked = chat.tree.head
    with journal(tmp_path).open("ab") as file:
        file.write(pack("piece", id=asked, parent=asked, at=1.0, after=[11, 0], text="!", thinking=""))
    assert reopened(tmp_path).tree[asked or ""].text == "tell me all"


def test_a_list_counts_messages_and_not_pieces(tmp_path: Path, chat: Chat) -> None:
    begun(chat, "one ", "two ")
    (summary,) = ChatStore(tmp_path).summaries()
    assert (summary.title, summary.n_messages) == ("tell me all", 1)


def test_waiting_messages_are_stored_until_sent(tmp_path: Path, chat: Chat) -> None:
    chat.wait([as_content("and then?"), as_content("and so?")])
    assert reopened(tmp_path).waiting == (as_content("and then?"), as_content("and so?"))
    chat.set(waiting="one text, as it was once kept")
    assert reopened(tmp_path).waiting == (as_content("one text, as it was once kept"),)
    with_file = (FilePart("notes.txt", "buy milk"), TextPart("what is missing?"))
    chat.wait([with_file])
    assert reopened(tmp_path).waiting == (with_file,)
    chat.wait([])
    assert reopened(tmp_path).waiting == ()
