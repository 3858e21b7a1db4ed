"""MCP servers: what a call comes to with servers that have every fault, and that nothing of them is left."""

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing

import psutil
import pytest
from localrun_testing import fake_mcp_server
from localrun_testing.waiting import PATIENCE, until

from localrun.tools.mcp.config import ServerEntry
from localrun.tools.mcp.guard import running_groups
from localrun.tools.mcp.listed import keep_list
from localrun.tools.mcp.process import McpProcess
from localrun.tools.mcp.servers import McpServers
from localrun.tools.running_call import LIMIT, RunningCall, ToolError
from localrun.tools.tool import Tool

FAKE = fake_mcp_server.__file__
FAULTS = (
    *("fine", "modern", "garbage", "refuses", "picture", "long", "many", "environment"),
    *("ends", "dies", "hangs", "endless", "line", "big", "deep", "odd", "changes"),
)


def fake(fault: str, **env: str) -> ServerEntry:
    return ServerEntry(fault, sys.executable, (FAKE, fault), env)


def tools_by_server(servers: McpServers) -> dict[str, Tool]:
    servers.wait()
    return {tool.server: tool for tool in servers.tools()}


@pytest.fixture(scope="module")
def servers() -> Iterator[McpServers]:
    os.environ["SECRET_TOKEN"] = "s"
    with closing(McpServers(map(fake, FAULTS), use_kept=False)) as found:
        yield found
    del os.environ["SECRET_TOKEN"]


@pytest.mark.parametrize(
    ("fault", "text", "is_error"),
    [
        ("fine", "hé\x1b[31m <|im_end|>", False),
        ("modern", "one", False),
        ("garbage", "one", False),
        ("long", "one", False),
        ("refuses", "no such file", True),
        ("picture", "[image/png, 3 bytes, which is not shown]", False),
    ],
)
def test_a_call_has_its_result(servers: McpServers, fault: str, text: str, is_error: bool) -> None:
    result = tools_by_server(servers)[fault].run({"text": text}, RunningCall(PATIENCE))
    assert (result.text, result.is_error, result.cut) == (text.replace("\x1b[31m", ""), is_error, 0)


def test_a_long_result_is_cut_with_a_word_about_it(servers: McpServers) -> None:
    text = "é" * (1 << 20) + "tail"
    result = tools_by_server(servers)["fine"].run({"text": text}, RunningCall(PATIENCE))
    assert result.bytes == len(text.encode())
    assert result.cut == result.bytes - 2 * LIMIT
    assert result.text.endswith(f"[{result.cut:,} of {result.bytes:,} bytes were left out here]")


@pytest.mark.parametrize(
    ("fault", "seconds", "why"),
    [
        ("dies", PATIENCE, "the MCP server dies did not answer the call: it ended with exit code 7"),
        ("line", PATIENCE, "it sent a message of more than 8.00 MiB"),
        ("big", PATIENCE, "it sent a message of more than 8.00 MiB"),
        ("deep", PATIENCE, "it sent a message that cannot be read"),
        ("hangs", 0.3, "the call took longer than 0.3 seconds and was ended"),
        ("endless", 0.3, "the call took longer than 0.3 seconds and was ended"),
    ],
)
def test_a_server_that_fails_ends_the_call_only(servers: McpServers, fault: str, seconds: float, why: str) -> None:
    tools = tools_by_server(servers)
    for _ in range(2):  # the second one starts it again
        with pytest.raises(ToolError) as error:
            tools[fault].run({"text": "abc"}, RunningCall(seconds))
        assert why in error.value.message
    assert tools["fine"].run({"text": "one"}, RunningCall(PATIENCE)).text == "one"


def test_tools_are_known_by_their_names(servers: McpServers) -> None:
    servers.wait()
    some = McpServers([fake("fine"), fake("many")], {"fine": {"echo", "nothing"}}, use_kept=False)
    for name, state in some._states.items():
        state.listed = servers._states[name].listed
    assert [tool.name for tool in some.tools() if tool.server == "fine"] == ["echo"]
    assert some.news() == [
        "the MCP server fine has no tool nothing",
        "of the MCP server many: it has more than 128 tools; the others are left out",
    ]
    assert some.news() == []


def test_a_server_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localrun.tools.mcp.servers.START_SECONDS", 0.2)
    with closing(McpServers([fake("silent")], use_kept=False)) as others:
        others.wait()
        assert others.problem("silent") == "it did not answer within 0.2 seconds"
        assert others.tools() == []


def test_a_call_that_is_stopped_ends(servers: McpServers) -> None:
    call = RunningCall(PATIENCE)
    call.cancel()
    with pytest.raises(ToolError, match="stopped by the user"):
        tools_by_server(servers)["hangs"].run({}, call)


def test_a_server_gets_no_secret(servers: McpServers) -> None:
    told = json.loads(tools_by_server(servers)["environment"].run({}, RunningCall(PATIENCE)).text)
    assert "PATH" in told
    assert not {name for name in told if "TOKEN" in name or "LOCALRUN" in name or "PYTHON" in name}


def test_left_out_tools_are_noted(servers: McpServers) -> None:
    servers.wait()
    tools = servers.tools()
    assert len([tool for tool in tools if tool.server == "many"]) == 128
    assert sorted(servers.problems()) == [
        "of the MCP server long: a tool is left out: its name has 200 characters",
        "of the MCP server long: long is left out: the description of its arguments is too long",
        "of the MCP server many: it has more than 128 tools; the others are left out",
        "the MCP server ends cannot be used: it ended with exit code 3; it said: no configuration",
        "the MCP server odd cannot be used: it sent something else than was asked for: "
        "tools.0.inputSchema.properties: Input should be a valid dictionary",
    ]


def test_a_tool_that_was_changed_is_not_called_as_what_it_was(servers: McpServers) -> None:
    tool = tools_by_server(servers)["changes"]
    assert tool.run({"text": "one"}, RunningCall(PATIENCE)).text == "one"
    until(lambda: tools_by_server(servers)["changes"].digest != tool.digest)
    with pytest.raises(ToolError, match="has changed its tool echo: nothing was called"):
        tool.run({"text": "two"}, RunningCall(PATIENCE))
    changed = tools_by_server(servers)["changes"]
    assert changed.run({"text": "three"}, RunningCall(PATIENCE)).text == "three"


def test_tools_are_known_without_a_start(servers: McpServers) -> None:
    listed = tools_by_server(servers)["fine"]
    keep_list(fake("fine"), servers._states["fine"].listed or {})
    with closing(McpServers([fake("fine")])) as others:
        (tool,) = others.tools()
        assert others._process._process is None
        assert tool.digest == listed.digest
        others._process = servers._process  # which is started by now
        assert tool.run({"text": "one"}, RunningCall(PATIENCE)).text == "one"
        others._process = McpProcess()


@pytest.mark.process
def test_servers_end_with_a_localrun_that_is_killed() -> None:
    code = f"""
import sys, time
from localrun.tools.mcp.config import ServerEntry
from localrun.tools.mcp.listed import keep_list
from localrun.tools.mcp.process import McpProcess
from localrun.tools.mcp.servers import McpServers
servers = McpServers([ServerEntry("stays", sys.executable, ({FAKE!r}, "stays"))])
servers.wait()
print(len(servers.tools()), flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as main:
        assert main.stdout
        assert main.stdout.readline() == b"1\n"
        family = psutil.Process(main.pid).children(recursive=True)
        main.kill()
    assert len(family) == 4, "a process, its guard, a server, and one that this started"
    until(lambda: not any(one.is_running() for one in family))


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
def test_servers_that_are_stuck_end_with_the_process_that_is_killed() -> None:
    with closing(McpServers([fake("stays"), fake("fine")], use_kept=False)) as servers:
        servers.wait()
        process = servers._process._process
        assert process
        family = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        assert len(family) == 4, "a guard, two servers, and one that a server started"
        until(lambda: not any(one.is_running() for one in family))


def test_a_guard_knows_who_runs() -> None:
    assert running_groups(io.BytesIO(b"+12\n+3\n+45\n-3\n-7\n")) == {12, 45}


def test_calls_go_on_after_the_process_was_killed(servers: McpServers) -> None:
    tool = tools_by_server(servers)["fine"]
    process = servers._process._process
    assert process
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert tool.run({"text": "one"}, RunningCall(PATIENCE)).text == "one"


def test_a_stopped_process_costs_a_call_its_time(servers: McpServers) -> None:
    tool = tools_by_server(servers)["fine"]
    process = servers._process._process
    assert process
    os.kill(process.pid, signal.SIGSTOP)
    try:
        with pytest.raises(ToolError, match="took longer"):
            tool.run({"text": "x" * (1 << 20)}, RunningCall(0.3))
    finally:
        os.kill(process.pid, signal.SIGCONT)
    assert tool.run({"text": "one"}, RunningCall(PATIENCE)).text == "one"


def test_the_slow_import_is_no_step_of_the_loop() -> None:
    """A loop that is stuck ends the process, and the import takes long where the machine is busy."""
    code = """
import asyncio, os, sys
from localrun.tools.mcp.child import main
asyncio.run = lambda loop: os._exit("mcp" not in sys.modules)
main()
"""
    child = subprocess.run([sys.executable, "-c", code], stdin=subprocess.DEVNULL, check=False)
    assert child.returncode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no clock of what a process computes")
def test_a_step_that_computes_without_an_end_ends_the_process_and_a_long_wait_does_not() -> None:
    code = """
import asyncio, time
from localrun.tools.mcp import child
child.STUCK_SECONDS = 0.3
async def work():
    beating = asyncio.create_task(child._beat())
    await asyncio.sleep(0)
    time.sleep(1)
    print("lives", flush=True)
    while True:
        pass
asyncio.run(work())
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (ran.stdout, ran.returncode) == ("lives\n", -signal.SIGVTALRM)
