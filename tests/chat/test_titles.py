"""What of a model's answer is a title, and when one is asked for."""

import pytest

from localrun.chat.journal import ChatStore
from localrun.chat.summary import title_of
from localrun.chat.titles import short_title_request, title_in, title_request, wants_short_title, wants_title


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ("Puffins at Sea", "Puffins at Sea"),
        ('  **Title: "Puffins at Sea."**\nand more', "Puffins at Sea"),
        ("海鳥について", "海鳥について"),
        ("", ""),
        ("12 + 4", ""),
        ("I think that a good name for this conversation would be the following one", ""),
    ],
)
def test_a_title_is_one_short_line(answer: str, title: str) -> None:
    assert title_in(answer) == title


def test_only_an_answered_chat_without_a_name_gets_a_title() -> None:
    chat = ChatStore(None).create()
    assert not wants_title(chat)
    question = chat.add_user("hello")
    assert not wants_title(chat)
    chat.add_answer(question.id, "half", interrupted=True)
    assert not wants_title(chat)
    chat.add_answer(question.id, "whole", ids=(1, 2))
    assert wants_title(chat)
    request = title_request(chat)
    assert request.known_ids == (1, 2)
    assert request.chat_id == "", "nothing of it goes to the disk"
    assert [message["role"] for message in request.messages] == ["user", "assistant", "user"]
    chat.set(title="mine")
    assert not wants_title(chat)


@pytest.mark.parametrize(
    ("message", "title"),
    [
        ("What is 3 plus 4? My son asks, and I should know.", "What is 3 plus 4?"),
        ("Hello! How are you today?", "Hello! How are you today?"),
        ("海鳥はどこで眠りますか？冬も同じですか", "海鳥はどこで眠りますか？"),
        ("# Plan\n> what is 2**10 - `x`?", "Plan what is 2**10 - x?"),
        ("```python\nprint(3.5)\n```", "print(3.5)"),
        ("Tell me of the whole " + "long " * 7 + "history of cats", "Tell me of the whole " + "long " * 6 + "long…"),
        ("x" * 100, "x" * 59 + "…"),
        ("```", "```"),
    ],
)  # fmt: skip
def test_without_a_title_a_chat_is_called_by_the_first_sentence(message: str, title: str) -> None:
    assert title_of(message) == title
    chat = ChatStore(None).create()
    chat.add_user(message)
    assert chat.title == title


def test_a_server_is_asked_once_and_sees_no_more_than_how_a_chat_begins() -> None:
    chat = ChatStore(None).create(system="Be brief.")
    question = chat.add_user("q" * 5000)
    answer = chat.add_answer(question.id, "a" * 5000)
    assert wants_short_title(chat)
    request = short_title_request(chat)
    assert [len(message["content"]) for message in request.messages[:2]] == [1000, 1000]
    assert [message["role"] for message in request.messages] == ["user", "assistant", "user"]
    assert (request.max_tokens, request.think) == (24, "auto"), "nothing that a server may not know"
    chat.select(answer.id)
    chat.add_answer(chat.add_user("and on?").id, "on")
    assert not wants_short_title(chat)
