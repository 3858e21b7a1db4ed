"""What of a model's answer is a title, and when one is asked for."""

import pytest

from localrun.chat.journal import ChatStore
from localrun.chat.titles import title_in, title_request, wants_title


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


def test_only_an_answered_chat_that_nobody_named_gets_one() -> None:
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
