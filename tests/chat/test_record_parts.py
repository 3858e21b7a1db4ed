"""Messages of several parts in a journal: read back as they were, by this version and by those before and after it."""

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from localrun.base.content import CallPart, Content, FilePart, ResultPart, TextPart, as_content, text_of
from localrun.chat.attachments import title_for
from localrun.chat.export import as_data
from localrun.chat.journal import ChatStore
from localrun.chat.record_parts import pack_parts, parts_in
from localrun.chat.records import pack, pack_message, parse, unpack_message
from localrun.chat.tree import Message

FILE = FilePart("notes.txt", "buy milk\n```\nand bread\n```")
TYPED_AS_A_FILE = "[file: notes.txt]\n```\nbuy milk\n```"
texts = st.text(st.sampled_from("a`\n[] :fileé😀"), max_size=20)
counts = st.integers(0, 1 << 40)
calls = st.builds(CallPart, texts, texts, texts, texts, counts)
results = st.builds(ResultPart, texts, texts, texts, st.booleans(), st.floats(0, 9), counts, counts)
parts = st.one_of(st.builds(TextPart, texts), st.builds(FilePart, texts, texts), calls, results)


def record(message: Message) -> dict[str, object]:
    fields = parse(pack_message(message, None).strip())
    assert fields is not None
    return fields


def reread(message: Message) -> Message:
    found = unpack_message(record(message))
    assert found is not None
    return found


@given(st.lists(parts, min_size=1, max_size=4).map(tuple), st.sampled_from(["user", "assistant"]))
@example(as_content(TYPED_AS_A_FILE), "user")
@example((FILE, TextPart("")), "user")
def test_every_content_comes_back_as_it_was(content: Content, role: str) -> None:
    message = Message("m", None, role, content, created=1.0)
    found = reread(message)
    assert found.text == text_of(content) == record(message)["text"], "as versions read it that know no parts"
    assert found == message


def test_only_what_a_text_does_not_say_has_parts() -> None:
    assert "parts" not in record(Message("m", None, "user", as_content("hello")))
    assert "parts" not in record(Message("m", None, "assistant", as_content(TYPED_AS_A_FILE)))
    assert "parts" not in record(Message("m", None, "user", (FILE, TextPart("what is missing?"))))
    assert record(Message("m", None, "user", as_content(TYPED_AS_A_FILE)))["parts"]
    assert record(Message("m", None, "user", (TextPart("above"), FILE)))["parts"]


def test_files_of_earlier_versions_are_parts() -> None:
    text = text_of((FILE, FilePart("b.txt", ""), TextPart("and now?")))
    fields = parse(pack("message", id="m", parent=None, role="user", created=1.0, text=text).strip())
    assert fields is not None
    found = unpack_message(fields)
    assert found is not None
    assert found.content == (FILE, FilePart("b.txt", ""), TextPart("and now?"))


@pytest.mark.parametrize(
    "odd",
    [
        [],
        "text",
        [{"type": "image", "sha256": "00", "at": 0}],
        [{"type": "text", "span": [0, 1 << 60]}, {"type": "text", "span": [3, 4]}],
        [{"type": "text", "span": [-4, -1]}],
        [{"type": "text", "span": [2, 1]}],
        [{"type": "text", "span": ["0", "5"]}],
        [{"type": "file", "name": 5, "span": [0, 5]}],
        [{"type": "call", "id": "c", "name": "x", "server": 5, "span": [0, 5]}],
        [{"type": "result", "id": "c", "name": "x", "cut": "much", "span": [0, 5]}],
        [{"type": "text", "span": [0, 5], "more": 1}, None],
    ],
)
def test_parts_that_this_version_does_not_know_leave_the_text_and_are_carried_along(odd: object) -> None:
    fields = {**record(Message("m", None, "user", as_content("hello"))), "parts": odd}
    found = unpack_message(fields)
    assert found is not None
    assert found.content == as_content("hello")
    assert record(found)["parts"] == odd


def test_a_copy_and_an_export_have_fields_that_this_version_does_not_know(tmp_path: Path) -> None:
    store = ChatStore(tmp_path)
    chat = store.create()
    chat.add_user((FILE, TextPart("what is missing?")))
    path = tmp_path / f"{chat.id}.jsonl"
    fields = {"id": "n", "parent": chat.tree.head, "role": "assistant", "created": 2.0, "text": "eggs", "mood": ["new"]}
    path.write_bytes(path.read_bytes() + pack("message", **fields))

    copy = ChatStore(tmp_path).duplicate(chat.id)
    again = ChatStore(tmp_path).open(copy.id)
    asked, answered = again.tree.path(again.tree.head)
    assert asked.content == (FILE, TextPart("what is missing?"))
    assert answered.extra == {"mood": ["new"]}
    nodes = json.loads(json.dumps(as_data(again)))["tree"]
    assert nodes[1]["mood"] == ["new"]
    assert [part["type"] for part in nodes[0]["parts"]] == ["file", "text"]
    assert nodes[0]["content"] == asked.text


def test_a_chat_that_begins_with_files_is_named_after_what_was_typed() -> None:
    assert title_for((FILE, TextPart("and  now?"))) == "and now?"
    assert title_for((FILE, TextPart("Which errors are in it? Name each."))) == "Which errors are in it?", (
        "as without a file"
    )
    assert title_for((FILE, FilePart("b.txt", ""), TextPart(""))) == "notes.txt, b.txt"
    assert title_for(as_content("just words")) == ""


def test_parts_say_where_they_stand_in_the_text() -> None:
    content = (TextPart("above"), FILE, TextPart("below"))
    text = text_of(content)
    spans = [part["span"] for part in pack_parts(content, text, "user")]
    assert [text[start:end] for start, end in spans] == ["above", FILE.text, "below"]
    assert parts_in(text) == (TextPart(text),), "a text that does not begin with a file is one"
