"""`localrun mcp`: the servers in mcp.json, added, shown, taken over and removed."""

import json
import sys
from pathlib import Path

import pytest
from localrun_testing import fake_mcp_server
from localrun_testing.faces import Faces
from localrun_testing.schemas import check

FAKE = fake_mcp_server.__file__


def test_a_server_is_added_shown_and_removed(faces: Faces, home: Path) -> None:
    assert "there are no MCP servers yet" in faces.run("mcp", "list")[2]
    assert faces.run("mcp", "add", "fake", "--env", "KEY=a=b", "--", sys.executable, FAKE, "long")[0] == 0
    assert faces.run("mcp", "add", "web", "https://h/mcp", "--header", "Authorization: Bearer ${T}")[0] == 0
    assert json.loads((home / "mcp.json").read_text())["mcpServers"] == {
        "fake": {"command": sys.executable, "args": [FAKE, "long"], "env": {"KEY": "a=b"}},
        "web": {"url": "https://h/mcp", "headers": {"Authorization": "Bearer ${T}"}},
    }
    code, out, err = faces.run("mcp", "show", "fake")
    assert code == 0
    assert [line.split() for line in out.splitlines()] == [["TOOL", "DESCRIPTION"], ["echo", "Repeat", "a", "text"]]
    assert "long is left out" in err
    rows = json.loads(faces.run("mcp", "list", "--json")[1])
    check(rows, "mcp list")
    assert [(row["name"], row["n_tools"], row["env"], row["headers"]) for row in rows] == [
        ("fake", 1, ["KEY"], []),
        ("web", None, [], ["Authorization"]),
    ]
    assert "a=b" not in faces.run("mcp", "list")[1]
    assert faces.run("mcp", "rm", "fake", "web")[0] == 0
    assert json.loads((home / "mcp.json").read_text())["mcpServers"] == {}


def test_show_as_json_has_its_schema(faces: Faces) -> None:
    faces.run("mcp", "add", "fake", "--", sys.executable, FAKE)
    shown = json.loads(faces.run("mcp", "show", "fake", "--json")[1])
    check(shown, "mcp show")
    assert [tool["name"] for tool in shown["tools"]] == ["echo"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("add", "web", "http://x"), "there is an MCP server web already"),
        (("add", "a b", "http://x"), "a name has letters"),
        (("add", "x", "http://x", "--env", "A=b"), "--header is for a URL"),
        (("add", "x", "--header", "A:b", "--", "npx"), "--header is for a URL"),
        (("add", "x", "--env", "secret", "--", "npx"), "--env needs a name"),
        (("rm", "we"), "did you mean web?"),
        (("show", "nothing"), "there is no MCP server 'nothing'"),
        (("show", "web"), "it needs the variable T, which is not set"),
        (("import", "nowhere.json"), "nowhere.json is not there"),
    ],
)
def test_mcp_command_errors(faces: Faces, arguments: tuple[str, ...], said: str) -> None:
    faces.run("mcp", "add", "web", "http://127.0.0.1:9/${T}")
    code, _, err = faces.run("mcp", *arguments)
    assert code != 0
    assert said in err


def test_servers_are_taken_over_when_somebody_says_so(faces: Faces, home: Path) -> None:
    cursor = home / "user" / ".cursor" / "mcp.json"
    cursor.parent.mkdir(parents=True)
    servers = {"one": {"command": "x", "env": {"KEY": "hidden"}}, "two": {"url": "http://h"}, "odd": 3}
    cursor.write_text(json.dumps({"mcpServers": servers}))
    before = cursor.read_bytes()
    code, _, err = faces.run("mcp", "import")
    assert (code, "cannot ask without a terminal: one of Cursor: x (with KEY)" in err) == (2, True)
    assert "hidden" not in err
    assert not (home / "mcp.json").exists()
    code, _, err = faces.run("mcp", "import", "cursor", "two", "--yes")
    assert code == 0
    assert "odd: this is not an object" in err
    assert json.loads((home / "mcp.json").read_text())["mcpServers"] == {"two": {"url": "http://h"}}
    assert "one added" in faces.run("mcp", "import", str(cursor), "--yes")[2]
    assert "nothing was added" in faces.run("mcp", "import", "--yes")[2]
    assert cursor.read_bytes() == before
