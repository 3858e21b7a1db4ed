"""News of what another program wrote in an open chat: by its place, and followed on the selected branch only."""

from pathlib import Path

import pytest

from localrun.chat.journal import Chat, ChatStore
from localrun.chat.other_writers import Others, read_others


@pytest.fixture
def own(tmp_path: Path) -> Chat:
    chat = ChatStore(tmp_path).create()
    chat.add_answer(chat.add_user("first?").id, "first.")
    return chat


@pytest.fixture
def other(own: Chat, tmp_path: Path) -> Chat:
    """The same chat, as another program has it open."""
    return ChatStore(tmp_path).open(own.id)


def shown(chat: Chat) -> list[str]:
    return [message.text for message in chat.tree.path(chat.tree.head)]


def ask(chat: Chat, text: str) -> None:
    chat.add_answer(chat.add_user(f"{text}?").id, f"{text}.")


def test_the_branch_is_followed_once_its_question_is_answered(own: Chat, other: Chat) -> None:
    assert read_others(own) is None
    question = other.add_user("theirs?")
    assert read_others(own) is Others.ASK
    draft = other.draft(question.id)
    draft.write("the")
    assert read_others(own) is Others.ASK
    assert shown(own) == ["first?", "first."]
    other.add_answer(question.id, "theirs.", draft=draft)
    assert read_others(own) is Others.WROTE_BELOW
    assert shown(own) == ["first?", "first.", "theirs?", "theirs."]
    assert read_others(own) is None


def test_another_branch_is_not_followed(own: Chat, other: Chat) -> None:
    ask(own, "mine")
    ask(other, "theirs")
    assert read_others(own) is Others.WROTE_ELSEWHERE
    assert shown(own) == ["first?", "first.", "mine?", "mine."]


def test_what_was_taken_back_here_stays_so_whatever_others_write_below(own: Chat, other: Chat) -> None:
    question = own.add_user("mine?")
    own.add_answer(question.id, "mine.")
    own.rewind(question.parent)
    assert read_others(other) is Others.WROTE_BELOW
    ask(other, "theirs")
    assert read_others(own) is Others.WROTE_ELSEWHERE
    assert shown(own) == ["first?", "first."]
    other.add_answer(question.id, "again.")
    assert read_others(own) is Others.WROTE_ELSEWHERE
    assert shown(own) == ["first?", "first."]


def test_a_deleted_chat_is_told_once_and_may_come_back(own: Chat, other: Chat) -> None:
    other.bury(True)
    assert read_others(own) is Others.DELETED
    assert read_others(own) is None
    ask(other, "again")
    assert read_others(own) is Others.WROTE_BELOW
    assert not own.deleted


def test_settings_and_a_file_that_is_gone_are_no_news(own: Chat, other: Chat, tmp_path: Path) -> None:
    other.set(pinned=True)
    assert read_others(own) is None
    assert own.pinned
    ChatStore(tmp_path).erase(own.id)
    assert read_others(own) is None
