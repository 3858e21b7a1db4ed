"""Documents in requests of every protocol: their text is read as that of a file."""

import base64
from typing import Any

import httpx
import pytest
from localrun_testing.fake_client import FakeClient

NOTES = "The boiler is hot.\n```\nDo not touch it.\n```"
READ = f"[file: notes.md]\n````\n{NOTES}\n````\nWhat is hot?"


def encoded(data: str | bytes) -> str:
    return base64.b64encode(data.encode() if isinstance(data, str) else data).decode()


def document(**fields: Any) -> dict[str, Any]:
    return {"type": "document", "title": "notes.md", **fields}


def file(**fields: Any) -> dict[str, Any]:
    return {"type": "file", "file": {"filename": "notes.md", **fields}}


def input_file(**fields: Any) -> dict[str, Any]:
    return {"type": "input_file", "filename": "notes.md", **fields}


def said(fake: FakeClient, http: httpx.Client, part: dict[str, Any]) -> Any:
    """What the engine is given to read for a document and a question."""
    match part["type"]:
        case "document":
            path, question = "/v1/messages", {"type": "text", "text": "What is hot?"}
        case "file":
            path, question = "/v1/chat/completions", {"type": "text", "text": "What is hot?"}
        case _:
            path, question = "/v1/responses", {"type": "input_text", "text": "What is hot?"}
    messages = [{"role": "user", "content": [part, question]}]
    answer = http.post(path, json={"max_tokens": 9, "messages": messages, "input": messages})
    assert answer.status_code == 200, answer.text
    return fake.requests[-1].messages[-1]["content"]


PARTS = [
    document(source={"type": "text", "media_type": "text/plain", "data": NOTES}),
    document(source={"type": "content", "content": NOTES}),
    document(source={"type": "content", "content": [{"type": "text", "text": line} for line in NOTES.split("\n")]}),
    document(source={"type": "base64", "media_type": "text/plain", "data": encoded(NOTES)}),
    file(file_data=encoded(NOTES)),
    file(file_data=f"data:text/markdown;base64,{encoded(NOTES)}"),
    input_file(file_data=encoded(f"\ufeff{NOTES}")),
]


@pytest.mark.parametrize("part", PARTS)
def test_a_document_is_read_as_a_file(fake: FakeClient, http: httpx.Client, part: dict[str, Any]) -> None:
    assert said(fake, http, part) == READ


def test_a_document_may_have_a_context_and_no_title(fake: FakeClient, http: httpx.Client) -> None:
    part = {"type": "document", "context": "From 1890.", "source": {"type": "text", "data": "It is hot."}}
    assert said(fake, http, part) == "[file: document]\n```\nFrom 1890.\n\nIt is hot.\n```\nWhat is hot?"


def test_a_document_in_the_result_of_a_tool(fake: FakeClient, http: httpx.Client) -> None:
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [PARTS[0]]}
    call = {"type": "tool_use", "id": "t1", "name": "read", "input": {}}
    messages = [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    answer = http.post("/v1/messages", json={"max_tokens": 9, "messages": messages})
    assert answer.status_code == 200, answer.text
    assert fake.requests[-1].messages[-1]["content"] == READ.removesuffix("\nWhat is hot?")


@pytest.mark.parametrize(
    ("path", "part", "field", "needed"),
    [
        ("/v1/messages", document(), "source.type", "one of text, content, base64"),
        ("/v1/messages", document(source={"type": "url", "url": "http://x/y"}), "source.type", "one of"),
        ("/v1/messages", document(source={"type": "text", "data": 1}), "source.data", "a string"),
        (
            "/v1/messages",
            document(source={"type": "content", "content": [{"type": "image"}]}),
            "content[0].type",
            "text",
        ),
        (
            "/v1/messages",
            document(source={"type": "base64", "data": encoded(b"%PDF-1.7\n")}),
            "source.data",
            "its text",
        ),
        ("/v1/chat/completions", file(file_id="f1"), "file.file_id", "file_data"),
        ("/v1/chat/completions", file(file_data="not base64"), "file.file_data", "base64 of a text file"),
        ("/v1/chat/completions", file(file_data=""), "file.file_data", "base64 of a text file"),
        ("/v1/chat/completions", file(file_data=encoded(b"\xff\xfe\x00")), "file.file_data", "not UTF-8 text"),
        ("/v1/chat/completions", file(file_data=encoded(b"a\x00b")), "file.file_data", "not UTF-8 text"),
        ("/v1/responses", input_file(file_url="http://x/y"), "file_url", "file_data"),
        ("/v1/responses", input_file(), "file_data", "base64 of a text file"),
    ],
)
def test_what_is_no_text_is_refused_by_name(
    http: httpx.Client, path: str, part: dict[str, Any], field: str, needed: str
) -> None:
    messages = [{"role": "user", "content": [part]}]
    answer = http.post(path, json={"max_tokens": 9, "messages": messages, "input": messages})
    assert answer.status_code == 400
    message = answer.json()["error"]["message"]
    assert field in message.partition(": ")[0]
    assert needed in message
