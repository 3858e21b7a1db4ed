"""Images of chats: kept by their hash, sent with every turn, and gone with the last chat that names them."""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from localrun_testing.scripted_client import INFO
from PIL import Image

from localrun.base.content import ImagePart, TextPart, is_sha256
from localrun.base.errors import ImageError, UsageError
from localrun.base.events import ImageProgress, Prefill
from localrun.base.image_words import looking_words
from localrun.base.request import Request, Sampling
from localrun.chat.export import to_json, to_markdown
from localrun.chat.files import read_files
from localrun.chat.images import ImageShelf
from localrun.chat.journal import Chat, ChatStore
from localrun.chat.sight import require_sight, unseen_words
from localrun.chat.titles import title_request
from localrun.chat.turn import Answer, TurnOptions, begin_turn, preview_request

OPTIONS = TurnOptions(Sampling())


def picture(path: Path, width: int = 8, height: int = 5) -> Path:
    Image.fromarray(np.full((height, width, 3), width, dtype=np.uint8)).save(path, "PNG")
    return path


def kept(home: Path) -> set[str]:
    return {path.name for path in (home / "chats" / "images").iterdir()}


@pytest.fixture
def store(home: Path) -> ChatStore:
    return ChatStore(home / "chats")


def ask(store: ChatStore, path: Path, words: str = "what is it?") -> tuple[Chat, ImagePart]:
    chat, part = store.create(), store.images.attach(path)
    chat.add_user((part, TextPart(words)))
    return chat, part


def asked(chat: Chat, sees: bool = True) -> Request:
    assert chat.tree.head is not None
    return begin_turn(chat, chat.tree.head, OPTIONS, 0, sees)[0]


def test_a_chat_goes_on_with_its_image_after_a_restart(store: ChatStore, home: Path, tmp_path: Path) -> None:
    chat, part = ask(store, picture(tmp_path / "cat.png"))
    chat.add_answer(chat.tree.head or "", "a cat")
    (tmp_path / "cat.png").unlink()
    again = ChatStore(home / "chats").open(chat.id)
    question = again.add_user("sure?").id
    request = asked(again)
    (image,) = request.images
    assert (image.sha256, image.width, image.height) == (part.sha256, 8, 5)
    assert image.path is not None
    assert image.path.read_bytes().startswith(b"\x89PNG")
    assert request.messages[0]["content"][0] == {"type": "image", "name": "cat.png", "sha256": part.sha256,
                                                 "width": 8, "height": 5, "media_type": "image/png"}  # fmt: skip
    assert title_request(again).images == preview_request(again, (), OPTIONS).images == request.images
    assert unseen_words(again, question, INFO) == ""
    if os.name == "posix":
        assert (image.path.stat().st_mode & 0o77, image.path.parent.stat().st_mode & 0o77) == (0, 0)


def test_an_image_that_is_gone_is_named_and_the_chat_goes_on(store: ChatStore, home: Path, tmp_path: Path) -> None:
    chat, part = ask(store, picture(tmp_path / "cat.png"))
    (home / "chats" / "images" / part.sha256).unlink()
    request = asked(chat)
    assert (request.images, request.messages[0]["content"]) == ((), "[image: cat.png]\n\nwhat is it?")
    assert "no longer on disk" in unseen_words(chat, chat.tree.head or "", INFO)
    (home / "chats" / "images" / part.sha256).symlink_to("/etc/passwd")
    assert asked(chat).images == ()


def test_a_model_that_does_not_see_reads_the_names_of_earlier_images(store: ChatStore, tmp_path: Path) -> None:
    chat, part = ask(store, picture(tmp_path / "cat.png"))
    blind = replace(INFO, why_blind="choose a model that sees")
    with pytest.raises(UsageError, match="sees no images") as raised:
        require_sight(blind, (part,))
    assert raised.value.hint == "choose a model that sees"
    require_sight(blind, (TextPart("hi"),))
    require_sight(INFO, (part,))
    assert asked(chat, sees=False).messages[0]["content"] == "[image: cat.png]\n\nwhat is it?"
    assert "names only of cat.png" in unseen_words(chat, chat.tree.head or "", blind)


def test_erasing_takes_the_images_that_no_other_chat_or_draft_names(
    store: ChatStore, home: Path, tmp_path: Path
) -> None:
    first, shared = ask(store, picture(tmp_path / "a.png", 8))
    own = store.images.attach(picture(tmp_path / "b.png", 9))
    first.add_user((own, TextPart('"sha256":"' + "0" * 64 + '"')))
    second, _ = ask(store, tmp_path / "a.png")
    drafted = store.images.attach(picture(tmp_path / "c.png", 10))
    unsent = store.images.attach(picture(tmp_path / "d.png", 11))
    old = store.images.attach(picture(tmp_path / "e.png", 12))
    first.add_user((drafted, TextPart("also")))
    (home / "chats" / "draft-1.json").write_text(json.dumps({"parts": [{"sha256": drafted.sha256}]}))
    os.utime(home / "chats" / "images" / old.sha256, (0, 0))
    assert len(kept(home)) == 5
    store.erase(first.id)
    assert kept(home) == {shared.sha256, drafted.sha256, unsent.sha256}
    store.erase(second.id)
    assert kept(home) == {drafted.sha256, unsent.sha256}


def test_waiting_messages_keep_their_images(store: ChatStore, home: Path, tmp_path: Path) -> None:
    chat, part = ask(store, picture(tmp_path / "cat.png"))
    waiting = [(part, TextPart("and this?")), (TextPart("plain"),)]
    chat.wait(waiting)
    assert list(ChatStore(home / "chats").open(chat.id).waiting) == waiting
    chat.set(waiting_parts=[[{"type": "image", "sha256": "../x", "span": [0, 3]}], []])
    assert [type(one[0]) for one in chat.waiting] == [TextPart, TextPart]


def test_exports_have_the_name_and_the_size_and_no_bytes(store: ChatStore, tmp_path: Path) -> None:
    chat, part = ask(store, picture(tmp_path / "cat.png"))
    assert "[image: cat.png 8 × 5]\n\nwhat is it?" in to_markdown(chat)
    told = to_json(chat)
    assert '"width": 8' in told
    assert part.sha256 in told
    assert "PNG" not in told.replace("image/png", "")


def test_images_are_attached_by_their_names_and_not_with_a_folder(tmp_path: Path) -> None:
    shelf = ImageShelf(None)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("words")
    picture(tmp_path / "docs" / "cat.png")
    picture(tmp_path / "docs" / "dog.JPG", 9)
    (tmp_path / "docs" / "broken.png").write_bytes(b"no image")
    whole = read_files("docs", tmp_path, shelf)
    assert [one.name for one in whole.files] == ["docs/a.txt"]
    assert "cat.png is an image: name it to attach it" in whole.left_out
    some = read_files("docs/*.png", tmp_path, shelf)
    assert [one.name for one in some.files] == ["cat.png"]
    assert "broken.png cannot be seen" in some.left_out
    (cat,) = read_files("docs/cat.png", tmp_path, shelf).files
    assert isinstance(cat, ImagePart)
    assert is_sha256(cat.sha256)
    assert cat.chip == "cat.png 8 × 5"
    found = shelf.find(cat)
    assert found is not None
    assert found.data == (tmp_path / "docs" / "cat.png").read_bytes()
    with pytest.raises(ImageError, match="no image of a known kind"):
        read_files("docs/broken.png", tmp_path, shelf)


def test_an_answer_says_how_far_an_image_is_looked_at(store: ChatStore, tmp_path: Path) -> None:
    chat, _ = ask(store, picture(tmp_path / "cat.png"))
    answer = Answer(chat, chat.tree.head or "", asked(chat), INFO)
    answer.take(ImageProgress(0, 2, 0.4))
    assert answer.image is not None
    assert (answer.phase, looking_words(answer.image)) == ("looking", "looking at image 1 of 2: 40%")
    assert looking_words(ImageProgress(0, 1, 1.0)) == "looking at the image: 100%"
    answer.take(Prefill(0, 0, 12))
    told: str = answer.phase
    assert told == "reading"
