"""A chat as a document."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from localrun.base.content import TextPart
from localrun.base.errors import StorageError, UsageError
from localrun.chat.export import to_json, to_markdown, write_export
from localrun.chat.journal import Chat, ChatStore


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


def test_a_chat_is_exported_once_files_have_all_branches_and_nothing_is_under_way(tmp_path: Path) -> None:
    chat = ChatStore(None).create()
    question = chat.add_user("How?")
    chat.add_answer(question.id, "uno")
    chat.add_answer(question.id, "eins")
    write_export(chat, tmp_path / "one.md", as_json=False)
    assert not chat.is_exported, "the first answer is on another branch"
    write_export(chat, tmp_path / "all.json", as_json=True)
    assert chat.is_exported
    chat.wait([(TextPart("and then?"),)])
    assert not chat.is_exported
    chat.wait([])
    assert chat.is_exported
    chat.draft(question.id).write("ichi")
    assert not chat.is_exported


def test_a_chat_without_words_is_a_document_too() -> None:
    chat = ChatStore(None).create()
    assert to_markdown(chat).startswith("# A chat\n")
    assert json.loads(to_json(chat))["messages"] == []


def test_a_markdown_file_steers_no_terminal(tmp_path: Path) -> None:
    chat = ChatStore(None).create(title="a\x1b]0;title\x07b", system="\x9b2J")
    question = chat.add_user("\x1b[31mred\x1b[0m\ttab")
    chat.add_answer(question.id, "\x1bPq#0\x1b\\done", "th\x07ought")
    write_export(chat, tmp_path / "chat.md", as_json=False)
    text = (tmp_path / "chat.md").read_text()
    assert not set(text) & {"\x1b", "\x07", "\x9b"}
    for kept in ("# ab", "red\ttab", "done", "> thought"):
        assert kept in text


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    chat = ChatStore(None).create(title="Tides")
    chat.add_user("How?")
    write_export(chat, tmp_path / "chat.md", as_json=False)
    write_export(chat, tmp_path / "chat.json", as_json=True)
    assert (tmp_path / "chat.md").read_text() == to_markdown(chat)
    assert json.loads((tmp_path / "chat.json").read_text())["title"] == "Tides"
    with pytest.raises(UsageError, match="exists already"):
        write_export(chat, tmp_path / "chat.md", as_json=False)


def test_a_full_disk_leaves_no_half_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    chat = ChatStore(None).create()
    path = tmp_path / "chat.md"

    def open_full(self: Path, *_: Any, **__: Any) -> Full:
        self.touch()
        return Full()

    monkeypatch.setattr(Path, "open", open_full)
    with pytest.raises(StorageError, match="No space left"):
        write_export(chat, path, as_json=False)
    assert not path.exists()


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    """A JPEG with a camera and a place."""
    exif = Image.Exif()
    exif[0x010F] = "Leica"
    gps = exif.get_ifd(0x8825)
    gps[1], gps[2] = "N", (48.0, 51.0, 30.24)
    path = tmp_path / "a [photo](x).jpg"
    Image.fromarray(np.zeros((5, 8, 3), dtype=np.uint8)).save(path, exif=exif)
    return path


def chat_about(photo: Path, store: ChatStore) -> Chat:
    chat = store.create()
    chat.add_user((store.images.attach(photo), TextPart("where?")))
    return chat


@pytest.mark.parametrize("keep", [False, True])
def test_images_lie_beside_an_export_and_say_no_place_unless_asked(photo: Path, tmp_path: Path, keep: bool) -> None:
    chat = chat_about(photo, ChatStore(tmp_path / "chats"))
    write_export(chat, tmp_path / "chat.md", as_json=False, keep_metadata=keep)
    (image,) = (tmp_path / "chat-images").iterdir()
    text = (tmp_path / "chat.md").read_text()
    assert f"![a \\[photo\\](x).jpg 8 × 5](<chat-images/{image.name}>)\n\nwhere?" in text
    with Image.open(image) as opened:
        assert bool(opened.getexif().get_ifd(0x8825)) == keep
        assert opened.size == (8, 5)
    assert (b"Leica" in image.read_bytes()) == keep
    write_export(chat, tmp_path / "all.json", as_json=True)
    (node,) = json.loads((tmp_path / "all.json").read_text())["tree"]
    assert b"Leica" not in (tmp_path / node["parts"][0]["file"]).read_bytes()


def test_an_image_whose_copy_is_gone_is_named(photo: Path, tmp_path: Path) -> None:
    chat = chat_about(photo, ChatStore(tmp_path / "chats"))
    for copy in (tmp_path / "chats" / "images").iterdir():
        copy.unlink()
    write_export(chat, tmp_path / "chat.md", as_json=False)
    assert "[image: a [photo](x).jpg 8 × 5]" in (tmp_path / "chat.md").read_text()


def test_a_folder_that_is_there_is_left_alone(photo: Path, tmp_path: Path) -> None:
    chat = chat_about(photo, ChatStore(tmp_path / "chats"))
    (tmp_path / "chat-images").mkdir()
    (tmp_path / "chat-images" / "mine").touch()
    with pytest.raises(UsageError, match="exists already"):
        write_export(chat, tmp_path / "chat.md", as_json=False)
    assert not (tmp_path / "chat.md").exists()
    assert [one.name for one in (tmp_path / "chat-images").iterdir()] == ["mine"]
