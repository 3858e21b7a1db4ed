"""The size of an attached image is chosen, told with its cost, kept in the journal, and part of a request."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from localrun.base.content import FilePart, ImagePart, TextPart
from localrun.base.errors import UsageError
from localrun.base.image_size import IMAGE_ROWS, SIZES
from localrun.base.views import ImageView, SizeView
from localrun.chat.image_sizes import cost_of, next_size, resized, size_lines
from localrun.chat.journal import ChatStore
from localrun.chat.record_parts import pack_parts, unpack_parts
from localrun.chat.sight import seen_chat

CAT, DOG = (ImagePart(f"{name}.png", hash_ * 64, 10, 20, "image/png") for name, hash_ in (("cat", "a"), ("dog", "b")))
NOTES = FilePart("notes.txt", "words")
COSTS = {"full": SizeView(600, 12.0), "medium": SizeView(250, 0.0), "small": SizeView(120, None)}


def test_all_images_or_one_of_them_take_a_size() -> None:
    assert [one.most_rows for one in resized([CAT, NOTES, DOG], "small") if isinstance(one, ImagePart)] == [128, 128]
    assert resized([CAT, NOTES, DOG], "2 medium") == [CAT, NOTES, replace(DOG, most_rows=256)]


def test_an_image_that_takes_the_size_of_its_twin_is_one() -> None:
    assert resized([CAT, replace(CAT, most_rows=128)], "small") == [replace(CAT, most_rows=128)]


@pytest.mark.parametrize(
    "typed", ["tiny", "3 small", "0 small", "small 2", "1 2 small", "-1 small", f"{9:0>5000} small"]
)
def test_what_is_no_size_is_refused(typed: str) -> None:
    with pytest.raises(UsageError):
        resized([CAT, DOG], typed)


def test_a_size_needs_an_image() -> None:
    with pytest.raises(UsageError, match="no image is attached"):
        resized([NOTES], "small")


def test_the_next_size_is_smaller_and_after_the_smallest_full() -> None:
    found = [CAT]
    for _ in SIZES:
        found.append(next_size(found[-1]))
    assert [one.most_rows for one in found] == [1024, 256, 128, 1024]
    assert next_size(replace(CAT, most_rows=700)).most_rows == 256, "also from a size without a name"


def test_costs_are_told_as_far_as_they_are_known() -> None:
    views = [ImageView(CAT.sha256, COSTS)]
    assert cost_of(CAT, views) == "600 tokens, ≈ 12.0 s"
    assert cost_of(replace(CAT, most_rows=256), views) == "250 tokens, encoded already"
    assert cost_of(DOG, views) == ""
    assert size_lines(DOG, {}) == []
    assert size_lines(replace(CAT, most_rows=128), COSTS) == [
        "● small   120 tokens",
        "○ medium  250 tokens, encoded already",
        "○ full    600 tokens, ≈ 12.0 s",
    ]


def test_a_record_has_the_size_where_it_is_not_the_usual_one() -> None:
    text = "[image: cat.png]\n\nwhat?"
    for part in (CAT, replace(CAT, most_rows=128)):
        content = (part, TextPart("what?"))
        packed = pack_parts(content, text, "user")
        assert ("most_rows" in packed[0]) == (part.most_rows != IMAGE_ROWS)
        assert unpack_parts(text, packed) == content


@pytest.mark.parametrize("most_rows", [0, -5, "128", None, 1.5])
def test_a_record_with_another_kind_of_size_is_not_read(most_rows: object) -> None:
    text = "[image: cat.png]\n\nwhat?"
    packed = pack_parts((CAT, TextPart("what?")), text, "user")
    packed[0]["most_rows"] = most_rows
    assert unpack_parts(text, packed) is None


def test_a_chat_asks_for_an_image_in_the_sizes_that_it_was_sent_in(tmp_path: Path) -> None:
    path = tmp_path / "cat.png"
    Image.fromarray(np.zeros((5, 8, 3), dtype=np.uint8)).save(path)
    store = ChatStore(tmp_path / "chats")
    cat = store.images.attach(path)
    chat = store.create()
    for part in (cat, replace(cat, most_rows=128)):
        chat.add_user((part, TextPart("what?")))
    again = ChatStore(tmp_path / "chats").open(chat.id)
    seen = seen_chat(again, again.visible())
    assert [image.most_rows for image in seen.images] == [1024, 128]
    assert len({image.path for image in seen.images}) == 1
