"""What plain chat has in common with the app: versions, chats put in order, numbers of a chat, files in a line."""

from pathlib import Path
from typing import Any

import pytest
from localrun_testing.faces import Faces, script, type_in
from PIL import Image

from localrun.base.adapter_choice import AdapterChoice
from localrun.base.content import with_files_as_text
from localrun.base.errors import LocalrunError
from localrun.chat.chat_settings import held_with
from localrun.chat.journal import ChatStore
from localrun.cli import session

Patch = pytest.MonkeyPatch


@pytest.fixture
def chats(home: Path) -> ChatStore:
    return ChatStore(home / "chats")


def test_versions_are_read_one_below_the_other_and_one_is_taken(
    faces: Faces, monkeypatch: Patch, chats: ChatStore
) -> None:
    answers = iter(["The moon.", "Gravity.", "Both."])
    faces.answer = lambda request: next(answers)
    type_in(monkeypatch, "why tides?", "/compare", "/retry", "/compare", "/compare 3", "/compare 1", "go on")
    _, _, err = faces.run("chat")
    assert "there is one version of each message" in err
    first, second = "--- 1/2 · fake F32 · 9 tokens · 5.5 tok/s\nThe moon.", "--- 2/2 · fake F32 · 8 tokens · 5.5 tok/s"
    assert f"{first}\n{second} (current)\nGravity." in err
    assert "there is no version 3" in err
    assert [message["content"] for message in faces.request.messages] == ["why tides?", "The moon.", "go on"]


def test_a_chat_is_pinned_put_in_a_folder_copied_deleted_and_brought_back(
    faces: Faces, monkeypatch: Patch, chats: ChatStore
) -> None:
    type_in(
        monkeypatch, "/pin", "/delete", "/undelete", "about tides", "/pin", "/folder Sea", "/folder", "/list",
        "/duplicate", "/title Copy", "/delete", "/list", "/undelete", "more",
    )  # fmt: skip
    _, _, err = faces.run("chat")
    assert err.count("this chat has no messages yet") == 2
    assert "nothing was deleted since the start" in err
    assert "There are Sea; /folder NAME" in err
    assert "about tides  (pinned, Sea)" in err
    assert "(deleted: Copy; /undelete brings it back" in err
    copy, first = chats.summaries()
    assert (first.title, first.pinned, first.folder, first.n_messages) == ("about tides", True, "Sea", 2)
    assert (copy.title, copy.pinned, copy.folder, copy.n_messages) == ("Copy", False, "Sea", 4)
    assert [message["content"] for message in faces.request.messages][::2] == ["about tides", "more"]


def test_words_are_found_in_the_chat(faces: Faces, monkeypatch: Patch) -> None:
    type_in(monkeypatch, "un café", "tea", "/find cafe", "/find", "/find cocoa")
    _, _, err = faces.run("chat")
    assert "message 1 of 4, You: un café\nmessage 2 of 4, Model: You said un café.\n(2 found" in err
    assert "/find needs words" in err
    assert "(nothing found)" in err


def test_a_chat_has_numbers_of_its_own(faces: Faces, monkeypatch: Patch, chats: ChatStore) -> None:
    type_in(
        monkeypatch, "/chat-settings temperature 0.3", "/chat-settings max-tokens 9", "one", "/chat-settings",
        "/chat-settings temperature none", "/chat-settings preset exact", "two", "/chat-settings seed x",
        "/chat-settings temprature 1", "/chat-settings preset wild", "/chat-settings temperature 9",
    )  # fmt: skip
    _, _, err = faces.run("chat")
    first, second = faces.clients[0].requests
    assert (first.sampling.temperature, first.max_tokens) == (0.3, 9)
    assert (second.sampling.temperature, second.max_tokens) == (0.0, 9)
    assert "temperature: 0.3 (of this chat)" in err
    assert "seed: the default (from the settings)" in err
    for words in (
        "seed cannot be x",
        "did you mean temperature?",
        "there is no preset wild",
        "temperature cannot be 9",
    ):
        assert words in err


def test_files_are_named_inside_a_line(faces: Faces, monkeypatch: Patch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.py", "b.py", "my notes.txt"):
        (tmp_path / name).write_text(f"text of {name}")
    type_in(
        monkeypatch, 'Look at @a.py, and @"my notes.txt"; mail me@home or @nobody.', "/attach *.py", "go", "/attach x"
    )
    _, _, err = faces.run("chat")
    first, second = (with_files_as_text(request.messages[-1])["content"] for request in faces.clients[0].requests)
    assert first.count("[file: ") == 2
    assert "text of a.py" in first
    assert "text of my notes.txt" in first
    assert first.endswith("\n\nLook at a.py, and my notes.txt; mail me@home or @nobody.")
    assert "(@nobody stays text: nobody is not a file)" in err
    assert [name in second for name in ("[file: a.py]", "[file: b.py]", "my notes")] == [True, True, False]
    assert "x is not a file" in err


def test_skipped_files_of_a_folder_are_listed(faces: Faces, monkeypatch: Patch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("text of a")
    (tmp_path / "docs" / "b.txt").write_bytes(b"\xff")
    type_in(monkeypatch, "/attach docs", "go", "look at @docs")
    _, _, err = faces.run("chat")
    assert err.count("(1 of 2 left out: docs/b.txt is not UTF-8 text)") == 2


def test_a_line_from_a_pipe_reads_no_files(faces: Faces, monkeypatch: Patch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text("secret")
    script(monkeypatch, "look at @a.py\n")
    faces.run("chat")
    assert faces.request.messages[-1]["content"] == "look at @a.py"


def test_an_answer_is_copied_where_there_is_a_terminal(faces: Faces, monkeypatch: Patch) -> None:
    type_in(monkeypatch, "/copy", "one", "/copy")
    _, _, err = faces.run("chat")
    assert "there is no answer yet" in err
    assert "only a terminal has a clipboard" in err
    monkeypatch.setattr("localrun.cli.line.commands.is_terminal", lambda stream: True)
    type_in(monkeypatch, "one", "/copy")
    assert "\x1b]52;c;WW91IHNhaWQgb25lLg==\x07(answer copied)" in faces.run("chat")[2]


def test_another_model_answers_and_stays(faces: Faces, monkeypatch: Patch, chats: ChatStore) -> None:
    type_in(
        monkeypatch, "/retry-with builtin", "one", "/retry-with nowhere", "/retry-with", "/retry-with builtin", "two"
    )
    _, _, err = faces.run("chat")
    assert "there is no message yet" in err
    assert "nowhere" in err
    assert "/retry-with needs a model" in err
    first, second = faces.clients
    assert [[str(m["content"]) for m in request.messages] for request in first.requests] == [["one"]]
    assert [request.messages[-1]["content"] for request in second.requests] == ["one", "two"]
    (chat,) = chats.summaries()
    assert chat.n_messages == 5


def test_a_chat_keeps_its_adapters(faces: Faces, monkeypatch: Patch, chats: ChatStore) -> None:
    """They are changed in it, go with a new one, and come back with --continue, unless others are typed."""
    a, b = AdapterChoice(Path("/a.gguf")), AdapterChoice(Path("/b.gguf"), 0.5)
    type_in(monkeypatch, "/lora", "one", "/lora /b.gguf:0.5", "/lora 'no end", "/retry", "/new", "two")
    _, _, err = faces.run("chat", "--lora", "/a.gguf")
    assert "(a.gguf × 1 beside the weights" in err
    assert "(b.gguf × 0.5 beside the weights" in err
    assert "No closing quotation" in err
    assert [client.options.adapters for client in faces.clients] == [(a,), (b,)]
    assert [held_with(chats.open(one.id)).adapters for one in chats.summaries()] == [("/b.gguf:0.5",)] * 2
    for typed, adapters in (((), (b,)), (("--lora", "none"), ()), ((), ()), (("--lora", "/a.gguf"), (a,))):
        faces.run("run", "--continue", *typed, "three")
        assert faces.clients[-1].options.adapters == adapters
    assert faces.run("run", "--lora", "/a.gguf", "--server", "http://127.0.0.1:1", "x")[0] == 2


def test_where_another_model_fails_the_first_comes_back(faces: Faces, monkeypatch: Patch) -> None:
    opened: list[Any] = []
    real = session.open_engine

    def open_engine(*arguments: Any) -> Any:
        opened.append(arguments)
        if len(opened) == 2:
            raise LocalrunError("there is no memory for it")
        return real(*arguments)

    monkeypatch.setattr("localrun.cli.chats.open_engine", open_engine)
    type_in(monkeypatch, "one", "/retry-with builtin", "two")
    _, out, err = faces.run("chat")
    assert "there is no memory for it" in err
    assert out == "You said one.\nYou said two.\n"
    assert [client.closed for client in faces.clients] == [True, True]


def test_images_go_along_and_an_edit_keeps_them(
    faces: Faces, monkeypatch: Patch, chats: ChatStore, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    Image.new("RGB", (8, 5)).save(tmp_path / "cat.png")
    (tmp_path / "bad.png").write_bytes(b"no image")
    type_in(monkeypatch, "/attach bad.png", "/attach cat.png", "what?", "look at @cat.png", "/edit sure?")
    _, _, err = faces.run("chat")
    assert "no image of a known kind" in err
    assert "(cat.png 8 × 5, 1,000 tokens, ≈ 12.0 s, will be sent with the next message)" in err
    first, second, third = (request.images for request in faces.clients[0].requests)
    assert first == second == third
    assert first[0].path is not None
    assert first[0].path.parent == chats.images.folder
    last = faces.request.messages[-1]["content"]
    assert [part["type"] for part in last] == ["image", "text"]
    assert last[1]["text"] == "sure?"


def test_an_image_is_sent_in_the_size_that_was_chosen(faces: Faces, monkeypatch: Patch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    Image.new("RGB", (8, 5)).save(tmp_path / "cat.png")
    type_in(monkeypatch, "/image", "/attach cat.png", "/image", "/image 2 small", "/image small", "what?")
    _, _, err = faces.run("chat")
    assert "no image is attached" in err
    assert "1  cat.png 8 × 5\n○ small   120 tokens, ≈ 1.5 s\n● full    1,000 tokens, ≈ 12.0 s" in err
    assert "there is no image 2" in err
    assert "1  cat.png 8 × 5, small\n● small   120 tokens" in err
    assert [image.most_rows for image in faces.request.images] == [128]
