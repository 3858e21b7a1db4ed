"""Parts of a message, and what they become: the text that a model reads, the list that a program sends."""

from localrun.base.content import (
    FilePart,
    TextPart,
    as_content,
    as_message_content,
    files_in,
    text_of,
    typed_text,
    with_files_as_text,
)

FILES = (FilePart("a.md", "text\n```\ncode\n```"), FilePart("b\nc.txt", ""))


def test_files_stand_in_fences_below_their_names_and_before_what_was_typed() -> None:
    written = "[file: a.md]\n````\ntext\n```\ncode\n```\n````\n\n[file: b c.txt]\n```\n\n```\n\nand now?"
    assert text_of((*FILES, TextPart("and now?"))) == written


def test_a_plain_text_is_its_own_content() -> None:
    assert text_of(as_content("just words")) == typed_text(as_content("just words")) == "just words"
    assert as_message_content(as_content("just words")) == "just words"
    assert as_content(FILES) == FILES


def test_files_and_typed_text_are_told_apart() -> None:
    content = (*FILES, TextPart("[file: no file]\n```\nx\n```"))
    assert files_in(content) == list(FILES)
    assert typed_text(content) == "[file: no file]\n```\nx\n```"


def test_a_list_of_parts_becomes_the_text_that_the_model_reads() -> None:
    content = (*FILES, TextPart("and now?"))
    parts = as_message_content(content)
    assert isinstance(parts, list)
    assert [part["type"] for part in parts] == ["file", "file", "text"]
    message = {"role": "user", "content": parts, "name": "Tim"}
    assert with_files_as_text(message) == {"role": "user", "content": text_of(content), "name": "Tim"}


def test_content_without_our_files_is_left_as_it_is() -> None:
    foreign = [{"type": "text", "text": "a"}, {"type": "file", "file": {"file_id": "f"}}, "odd", None]
    for content in ("a", None, foreign, [{"type": "text", "text": "a"}]):
        assert with_files_as_text({"role": "user", "content": content})["content"] == content
