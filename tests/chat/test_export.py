"""A chat as a document."""

import json

from localrun.chat.export import to_json, to_markdown
from localrun.chat.journal import ChatStore


def test_markdown_is_the_selected_branch_to_read() -> None:
    chat = ChatStore(None).create(title="Tides", model="m", system="Be brief.")
    question = chat.add_user("How?\n")
    chat.add_answer(question.id, "The moon.\n\n```c\nint x;\n```", "the sea\n\nthe moon")
    chat.edit(question.id, "Why?")
    chat.add_answer(chat.tree.head or "", "Grav", interrupted=True)
    _, date, *rest = to_markdown(chat).split("\n\n")
    assert date.endswith("Z, m")
    assert rest == ["## System", "Be brief.", "## You", "Why?", "## Model", "Grav", "*(stopped)*\n"]
    chat.select(question.id)
    assert "> the sea\n>\n> the moon\n\nThe moon.\n\n```c\nint x;\n```\n" in to_markdown(chat)


def test_json_has_the_branch_as_messages_and_every_branch_as_a_tree() -> None:
    chat = ChatStore(None).create(system="S")
    question = chat.add_user("one \x1b 天")
    chat.add_answer(question.id, "uno", "hm", stats={"seed": 1})
    chat.add_answer(question.id, "eins")
    data = json.loads(to_json(chat))
    assert data["messages"] == [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "one \x1b 天"},
        {"role": "assistant", "content": "eins"},
    ]
    assert [(node["parent"], node["content"], node["thinking"], node["stats"]) for node in data["tree"]] == [
        (None, "one \x1b 天", "", {}),
        (question.id, "uno", "hm", {"seed": 1}),
        (question.id, "eins", "", {}),
    ]
    assert data["head"] == data["tree"][2]["id"]


def test_a_chat_without_words_is_a_document_too() -> None:
    chat = ChatStore(None).create()
    assert to_markdown(chat).startswith("# A chat\n")
    assert json.loads(to_json(chat))["messages"] == []
