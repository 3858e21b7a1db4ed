"""MCP's own suite for clients, in both generations of the protocol, and servers that its package makes.

Left out of the suite: logins in a browser, and tools that ask the user, which localrun does not have (docs/tools.md);
and how long a broken stream waits, which a busy machine cannot tell.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from localrun_testing.cli import environment
from localrun_testing.client_programs import installed
from localrun_testing.waiting import PATIENCE

from localrun.tools.mcp.config import ServerEntry
from localrun.tools.mcp.servers import McpServers
from localrun.tools.running_call import RunningCall

pytestmark = [pytest.mark.slow, pytest.mark.process]
PACKAGE = """
import sys
from mcp.server import MCPServer

server = MCPServer("package")

@server.tool()
def add(a: int, b: int) -> int:
    "Add two numbers"
    return a + b

if sys.argv[1] == "stdio":
    server.run("stdio")
else:
    import socket, uvicorn
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error")).run(sockets=[listener])
"""


@pytest.mark.parametrize(
    ("scenario", "version"),
    [
        ("initialize", ""),
        ("tools_call", "2025-06-18"),
        ("tools_call", "2026-07-28"),
        ("request-metadata", ""),
        ("http-standard-headers", ""),
        ("http-custom-headers", ""),
        ("http-invalid-tool-headers", ""),
        ("json-schema-ref-no-deref", ""),
        ("json-schema-2020-12-preservation", ""),
    ],
)
def test_the_suite_for_clients(scenario: str, version: str, tmp_path: Path) -> None:
    suite = installed("node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
    client = f"{sys.executable} {Path(__file__).with_name('call_mcp_tools.py')}"
    done = subprocess.run(
        [
            *(installed("node_modules", "node", "bin", "node"), suite, "client", "--scenario", scenario),
            *("--command", client, *(("--spec-version", version) if version else ())),
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment(),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "OVERALL: PASSED" in done.stdout + done.stderr


@contextmanager
def packaged(transport: str) -> Iterator[ServerEntry]:
    """A server that the package makes."""
    command = [sys.executable, "-c", PACKAGE, transport]
    if transport == "stdio":
        yield ServerEntry("package", command[0], tuple(command[1:]))
        return
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ}) as process:
        assert process.stdout
        try:
            yield ServerEntry("package", url=f"http://127.0.0.1:{int(process.stdout.readline())}/mcp")
        finally:
            process.terminate()


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_server_of_the_package_answers(transport: str) -> None:
    with packaged(transport) as entry, closing(McpServers([entry], use_kept=False)) as servers:
        servers.wait()
        assert servers.problems() == []
        (tool,) = servers.tools()
        assert tool.run({"a": 2, "b": 3}, RunningCall(PATIENCE)).text == "5"
        assert tool.run({"a": "x"}, RunningCall(PATIENCE)).is_error
