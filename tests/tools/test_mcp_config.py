"""`mcp.json`: what is read of it, what is written to it, and what its variables become."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from localrun.base.errors import NotFoundError, UsageError
from localrun.tools.mcp.config import ServerEntry, read_servers, remove_server, write_server
from localrun.tools.mcp.listed import forget_list, keep_list, kept_list
from localrun.tools.mcp.other_programs import OTHER_PROGRAMS, offers
from localrun.tools.mcp.variables import expand, server_environment

LISTED = {"tools": [{"name": "echo", "description": "", "parameters": {}}], "notes": []}


def written(home: Path, servers: object, **more: object) -> Path:
    home.mkdir(parents=True, exist_ok=True)
    path = home / "mcp.json"
    path.write_text(json.dumps({"mcpServers": servers, **more}))
    return path


@pytest.mark.parametrize(
    ("values", "entry"),
    [
        ({"command": "npx", "args": ["-y", "x"]}, ServerEntry("s", "npx", ("-y", "x"))),
        ({"command": "x", "args": [8080], "env": {"A": 1}}, ServerEntry("s", "x", ("8080",), {"A": "1"})),
        ({"command": "x", "type": "stdio", "cwd": "/tmp", "args": None}, ServerEntry("s", "x", cwd="/tmp")),
        ({"url": "https://h/mcp", "type": "streamable-http"}, ServerEntry("s", url="https://h/mcp")),
        ({"url": "${HOST}/mcp", "headers": {"A": "b"}}, ServerEntry("s", url="${HOST}/mcp", headers={"A": "b"})),
        ({"command": "x", "disabled": True, "alwaysAllow": ["rm"]}, ServerEntry("s", "x", is_on=False)),
        ({"command": "x", "enabled": False}, ServerEntry("s", "x", is_on=False)),
    ],
)
def test_an_entry_is_read_as_other_programs_write_it(home: Path, values: object, entry: ServerEntry) -> None:
    written(home, {"s": values})
    assert read_servers().servers == (entry,)


@pytest.mark.parametrize(
    ("name", "values", "problem"),
    [
        ("s", 3, "not an object"),
        ("s", {}, "either a command or a url"),
        ("s", {"command": "x", "url": "http://x"}, "either a command or a url"),
        ("s", {"command": ""}, "the command is empty"),
        ("s", {"command": ["npx"]}, "command is not a text"),
        ("s", {"command": "x", "args": "a b"}, "args is not a list"),
        ("s", {"command": "x", "args": [["a"]]}, "args is not a list"),
        ("s", {"command": "x", "env": ["A=b"]}, "env is not an object"),
        ("s", {"command": "x", "env": {"A": {}}}, "env is not an object"),
        ("s", {"url": "file:///etc/passwd"}, "does not begin with http"),
        ("s", {"url": "http://h", "type": "sse"}, "streamable HTTP"),
        ("s", {"url": "http://h", "type": "carrier pigeon"}, "there is no type"),
        ("a b\x1b", {"command": "x"}, "a name has letters"),
        ("", {"command": "x"}, "a name has letters"),
    ],
)
def test_an_entry_that_is_none_costs_itself_only(home: Path, name: str, values: object, problem: str) -> None:
    written(home, {name: values, "good": {"command": "x"}})
    file = read_servers()
    assert [entry.name for entry in file.servers] == ["good"]
    assert problem in file.problems[0]
    with pytest.raises(UsageError):
        file.find(name)


@pytest.mark.parametrize(
    "data",
    [b"{", b"[]", b"\xff", b"[" * 100_000, b'{"mcpServers": []}', b'{"mcpServers": {"\\ud800": {}}}', b" " * (2 << 20)],
)
def test_a_file_that_is_none_is_an_error_and_stays(home: Path, data: bytes) -> None:
    path = written(home, {})
    path.write_bytes(data)
    with pytest.raises(UsageError, match=r"mcp\.json"):
        read_servers()
    with pytest.raises(UsageError):
        write_server(ServerEntry("s", "x"))
    assert path.read_bytes() == data


def test_other_entries_of_the_file_stay(home: Path) -> None:
    written(home, {"other": {"command": "x", "autoApprove": ["y"]}, "odd": 3}, inputs=[1])
    entry = ServerEntry("s", "npx", ("-y",), {"TOKEN": "${TOKEN}"}, "/tmp")
    path = write_server(entry)
    assert entry in read_servers().servers
    remove_server("s")
    remove_server("odd")
    assert json.loads(path.read_text()) == {
        "mcpServers": {"other": {"command": "x", "autoApprove": ["y"]}},
        "inputs": [1],
    }
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(UsageError, match="no MCP server 's'"):
        remove_server("s")


def test_variables_have_their_values() -> None:
    entry = ServerEntry(
        "s", "${BIN}/x", ("${env:A}", "${B:-b c}", "$A ${ }"), {"T": "${A}${A}"}, "${E:-}", headers={"H": "Bearer ${A}"}
    )
    full = expand(entry, {"BIN": "/bin", "A": "${B}", "E": ""})
    assert full.command == "/bin/x"
    assert full.args == ("${B}", "b c", "$A ${ }")  # a value is not looked through again
    assert (full.env, full.cwd, full.headers) == ({"T": "${B}${B}"}, "", {"H": "Bearer ${B}"})
    with pytest.raises(UsageError, match="variable BIN, which is not set"):
        expand(entry, {})


def test_a_server_inherits_what_it_needs_and_no_secret() -> None:
    ours = {"PATH": "/bin", "LC_ALL": "C", "HF_TOKEN": "t", "OPENAI_API_KEY": "k", "LOCALRUN_SERVER_KEY": "k"}
    assert server_environment(ServerEntry("s", "x", env={"A": "b"}), ours) == {"PATH": "/bin", "LC_ALL": "C", "A": "b"}


def test_a_list_is_kept_for_the_entry_it_is_of(home: Path) -> None:
    entry = ServerEntry("s", "x")
    assert kept_list(entry) is None
    keep_list(entry, LISTED)
    assert kept_list(entry) == LISTED
    assert kept_list(ServerEntry("s", "x", ("--other",))) is None
    damages: list[Any] = [{"tools": 3, "notes": []}, {"tools": [{"name": 1}], "notes": []}, [], {"tools": []}]
    for damage in damages:
        keep_list(entry, damage)
        assert kept_list(entry) is None
    keep_list(entry, LISTED)
    keep_list(ServerEntry("t", "x"), {**LISTED, "notes": ["x" * (3 << 20)]})
    assert kept_list(entry) == LISTED
    forget_list("s")
    assert kept_list(entry) is None


def test_servers_of_other_programs_are_offered(home: Path) -> None:
    assert offers() == []
    with pytest.raises(NotFoundError, match=r"\.cursor/mcp\.json is not there"):
        offers("cursor")
    for number, program in enumerate(OTHER_PROGRAMS.values()):
        program.path().parent.mkdir(parents=True)
        program.path().write_text(json.dumps({"mcpServers": {f"s{number}": {"command": "x"}, "odd": 3}}))
    write_server(ServerEntry("s1", "mine"))
    assert [[entry.name for entry in offer.servers] for offer in offers()] == [["s0"], [], ["s2"]]
    assert offers("claude")[0].problems == (
        "odd: this is not an object",
        "s1: there is a server of this name already",
    )
    OTHER_PROGRAMS["lmstudio"].path().write_text("{")
    assert "is not JSON" in offers()[-1].problems[0]
    vscode = home / "project.json"
    vscode.write_text(json.dumps({"servers": {"v": {"type": "stdio", "command": "x"}}}))
    assert [entry.name for entry in offers(str(vscode))[0].servers] == ["v"]
