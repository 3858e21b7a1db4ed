"""`run --tools` in front of a server that calls them: nothing is asked, what was not allowed has a code of its own."""

import json
from pathlib import Path

import pytest
from localrun_testing.faces import Faces
from localrun_testing.fake_chat_server import DONE, FakeChatServer, Reply, delta, said
from localrun_testing.schemas import SCHEMAS, check

from localrun.base.content import CallPart, ResultPart, TextPart
from localrun.chat.journal import ChatStore

SAY = said("It is 4.")


def calling(name: str, **arguments: object) -> Reply:
    """A server's answer that says something and calls a tool, in several pieces."""
    spelled = json.dumps(arguments)
    begun = {"index": 0, "id": "c1", "type": "function", "function": {"name": name, "arguments": ""}}
    pieces = [{"index": 0, "function": {"arguments": part}} for part in (spelled[:5], spelled[5:])]
    calls = (delta(tool_calls=[piece]) for piece in (begun, *pieces))
    return Reply((delta(content="Let me see."), *calls, delta("tool_calls"), DONE))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "notes.txt").write_text("buy milk\nand bread\n")
    return tmp_path


def test_a_tool_is_called_and_the_answer_goes_on(faces: Faces, server: FakeChatServer) -> None:
    server.replies = [calling("calculator", expression="2+2"), SAY]
    code, out, err = faces.run("run", "--server", server.url, "--no-stdin", "--tools", "calc,time", "2+2?")
    assert (code, out) == (0, "Let me see.\n\nIt is 4.\n")
    assert "(calculator  expression: 2+2)" in err
    asked = server.seen[-1].body
    assert [message["role"] for message in asked["messages"]] == ["user", "assistant", "tool"]
    assert asked["messages"][-1]["content"] == "4"
    assert [tool["function"]["name"] for tool in asked["tools"]] == ["calculator", "time"]


def test_jsonl_has_calls_and_results(faces: Faces, server: FakeChatServer) -> None:
    server.replies = [calling("calculator", expression="1/0"), SAY]
    code, out, _ = faces.run("run", "--server", server.url, "--no-stdin", "--tools", "calculator", "--jsonl", "?")
    lines = [json.loads(line) for line in out.splitlines()]
    for line in lines:
        check(line, f"jsonl: {line['type']}")
    assert [line["type"] for line in lines if line["type"].startswith("tool")] == [
        *["tool_call"] * 4,
        "tool_started",
        "tool_result",
    ]
    (result,) = [line for line in lines if line["type"] == "tool_result"]
    assert (result["text"], result["is_error"]) == ("division by zero", True)
    assert (code, lines[-1]["text"]) == (0, "Let me see.\n\nIt is 4.")
    assert "jsonl: tool_result" in SCHEMAS


@pytest.mark.parametrize("flag", ["--json", "--jsonl"])
def test_a_call_that_was_not_allowed_ends_it(
    faces: Faces, server: FakeChatServer, folder: Path, tmp_path_factory: pytest.TempPathFactory, flag: str
) -> None:
    elsewhere = tmp_path_factory.mktemp("other") / "secret.txt"
    elsewhere.write_text("secret")
    server.replies = [calling("read_file", path=str(elsewhere)), SAY]
    arguments = ("run", "--server", server.url, "--no-stdin", "--tools", "read", "--allow", str(folder), flag, "?")
    code, out, _ = faces.run(*arguments)
    error = json.loads(out.splitlines()[-1])["error"]
    assert (code, error["code"], error["kind"]) == (9, 9, "refused")
    assert error["message"] == f"the model called read_file for {elsewhere.parent}, which was not allowed"
    assert "secret" not in out.replace(str(elsewhere), "").replace("secret.txt", "")
    assert len(server.seen) == 2, "the list of models, and one request"


def test_files_in_an_allowed_folder_are_read(faces: Faces, server: FakeChatServer, folder: Path) -> None:
    server.replies = [calling("read_file", path="notes.txt"), SAY]
    tools = ("--tools", "read_file", "--allow", str(folder))
    assert faces.run("run", "--server", server.url, "--no-stdin", *tools, "?")[0] == 0
    assert server.seen[-1].body["messages"][-1]["content"] == "buy milk\nand bread"


def test_a_chat_that_goes_on_has_what_was_called(faces: Faces, server: FakeChatServer, home: Path) -> None:
    chat = ChatStore(home / "chats").create()
    chat.add_answer(chat.add_user("hi").id, "Hello")
    server.replies = [calling("calculator", expression="2+2"), SAY]
    tools = ("--tools", "calculator", "-c")
    assert faces.run("run", "--server", server.url, "--no-stdin", *tools, "2+2?")[0] == 0
    kept = ChatStore(home / "chats").open(chat.id)
    message = kept.tree.path(kept.tree.head)[-1]
    call, result = message.content[1:3]
    assert isinstance(call, CallPart)
    assert isinstance(result, ResultPart)
    assert (call.name, json.loads(call.arguments), result.text) == ("calculator", {"expression": "2+2"}, "4")
    assert (message.content[0], message.content[3]) == (TextPart("Let me see."), TextPart("It is 4."))
    assert faces.run("run", "--server", server.url, "--no-stdin", *tools, "thanks")[0] == 0
    roles = [message["role"] for message in server.seen[-1].body["messages"]]
    assert roles == ["user", "assistant", "user", "assistant", "tool", "assistant", "user"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--tools", "teleport"), "teleport means no tool"),
        (("--tools", "l,"), ""),
        (("--tools", "calculator", "--raw"), "--raw has no place for tools"),
        (("--tools", "calculator", "--schema", "{}"), "the schema constrains the answer from its first word"),
        (("--allow", "."), "--allow needs tools, and none are chosen"),
        (("--tools", "read_file", "--allow", "/nowhere/at/all"), "neither a folder nor a tool"),
        (("--tools", "calculator", "--allow", "read_file"), "neither a folder nor a tool"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    faces: Faces, server: FakeChatServer, arguments: tuple[str, ...], says: str
) -> None:
    code, _, err = faces.run("run", "--server", server.url, "--no-stdin", *arguments, "?")
    assert code == (2 if says else 0)
    assert says in err
