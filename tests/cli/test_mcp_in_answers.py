"""`run --tools mcp:SERVER`: a server's tools are called as far as that was allowed, and its faults end no answer."""

import json
import sys
from pathlib import Path

import pytest
from localrun_testing import fake_mcp_server
from localrun_testing.faces import Faces
from localrun_testing.fake_chat_server import FakeChatServer, calling, said

SAY = said("Done.")


@pytest.fixture
def servers(home: Path) -> None:
    """An mcp.json with a server of each sort."""
    home.mkdir(parents=True)
    entries = {
        name: {"command": sys.executable, "args": [fake_mcp_server.__file__, name]} for name in ("fine", "dies", "ends")
    }
    off = {"off": {"command": "x", "disabled": True}}
    (home / "mcp.json").write_text(json.dumps({"mcpServers": {**entries, **off}}))


def run(faces: Faces, server: FakeChatServer, *options: str) -> tuple[int, str, str]:
    return faces.run("run", "--server", server.url, "--no-stdin", *options, "?")


@pytest.mark.parametrize("allowed", ["mcp:fine", "mcp:fine/echo"])
def test_a_tool_of_a_server_is_called(faces: Faces, server: FakeChatServer, servers: None, allowed: str) -> None:
    server.replies = [calling("echo", text="one\x1b[31m two"), SAY]
    code, out, err = run(faces, server, "--tools", "time,mcp:fine/echo", "--allow", allowed)
    assert (code, out) == (0, "Done.\n"), err
    asked = server.seen[-1].body
    assert [tool["function"]["name"] for tool in asked["tools"]] == ["time", "echo"]
    assert asked["messages"][-1]["content"] == "one two"
    assert "fine echo" in err


def test_a_tool_that_was_not_allowed_is_not_called(faces: Faces, server: FakeChatServer, servers: None) -> None:
    server.replies = [calling("echo", text="one"), SAY]
    code, _, err = run(faces, server, "--tools", "mcp:fine")
    assert code == 9
    assert "--allow mcp:fine/echo allows it" in err


def test_servers_that_fail_end_a_call_and_no_answer(faces: Faces, server: FakeChatServer, servers: None) -> None:
    server.replies = [calling("echo", text="one"), SAY]
    code, out, err = run(faces, server, "--tools", "mcp:dies,mcp:ends", "--allow", "mcp:dies")
    assert (code, out) == (0, "Done.\n")
    assert "the MCP server ends cannot be used: it ended with exit code 3" in err
    result = server.seen[-1].body["messages"][-1]["content"]
    assert result == "the MCP server dies did not answer the call: it ended with exit code 7"


def test_all_servers_that_are_on_can_be_meant(faces: Faces, server: FakeChatServer, servers: None) -> None:
    server.replies = [SAY]
    assert run(faces, server, "--tools", "mcp")[0] == 0
    names = [tool["function"]["name"] for tool in server.seen[-1].body["tools"]]
    assert names == ["fine_echo", "dies_echo"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--tools", "mcp:nothing"), "there is no MCP server 'nothing'"),
        (("--tools", "mcp:off"), "the MCP server off is switched off"),
        (("--tools", "mcp:fine", "--allow", "mcp:dies"), "neither a folder nor a tool"),
        (("--tools", "mcp:fine", "--allow", "echo"), "neither a folder nor a tool"),
        (("--tools", "mcp:fine", "--raw"), "--raw has no place for tools"),
    ],
)
def test_mcp_tool_option_errors(
    faces: Faces, server: FakeChatServer, servers: None, options: tuple[str, ...], said: str
) -> None:
    code, _, err = run(faces, server, *options)
    assert code == 2
    assert said in err
