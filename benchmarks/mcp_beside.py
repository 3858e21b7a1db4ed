"""What MCP servers cost where none is called: a key in the app, and the first token of an answer.

    python -m benchmarks.mcp_beside [--rounds 9] [--keys 60] [--servers 3] [--model FILE]

`key to screen`: from a key event to the frame that shows it, in an app without servers and in one whose servers start
meanwhile, in turn. `first token`: `localrun run --max-tokens 1` with as many built-in tools as servers, and with a tool
of each server, whose lists are known from an earlier start; the whole command, so that waiting for servers counts. Both
prompts are printed in tokens: they describe other tools. Ratios are medians of pairs, each first in every other round.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from localrun_testing.scripted_client import ScriptedClient, opener

from benchmarks import ROOT
from benchmarks.app_speed import press
from benchmarks.app_terminal import environ
from benchmarks.http_answers import p95
from benchmarks.kv_quality import machine
from localrun.chat.journal import ChatStore
from localrun.client.choice import ModelChoice
from localrun.hub.disk.stored import StoredModel
from localrun.tools.mcp.config import ServerEntry
from localrun.tools.mcp.servers import McpServers
from localrun_tui.app import LocalrunApp
from localrun_tui.screens.chat.editor import Editor

SERVER = ROOT / "tests" / "support" / "localrun_testing" / "fake_mcp_server.py"
BUILT_IN = ("calculator", "time", "list", "glob", "grep", "read_file")
PROMPT = "What is the weather like?"
T = TypeVar("T")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--keys", type=int, default=60, help="pressed in an app")
    parser.add_argument("--servers", type=int, default=3, choices=range(1, len(BUILT_IN) + 1))
    parser.add_argument("--model", default="", help="a GGUF file; the built-in model if left out")
    options = parser.parse_args()
    print(machine())
    entries = [ServerEntry(f"server{n}", sys.executable, (str(SERVER),)) for n in range(options.servers)]
    keys_of_the_app(entries, options.rounds, options.keys)
    first_token(entries, options.rounds, options.model)


def keys_of_the_app(entries: list[ServerEntry], rounds: int, n_keys: int) -> None:
    """Print how long keys take without servers and while servers start."""

    def pressed(chosen: list[ServerEntry]) -> list[float]:
        return asyncio.run(key_times(chosen, n_keys))

    plain, busy = in_turn(lambda: pressed([]), lambda: pressed(entries), rounds)
    for name, of in (("median", statistics.median), ("95 %", p95)):
        ratio = statistics.median(of(b) / of(p) for p, b in zip(plain, busy, strict=True))
        without, beside = (statistics.median(map(of, times)) * 1000 for times in (plain, busy))
        print(
            f"key to screen, {name:6}  {without:6.1f} ms without, {beside:6.1f} ms with {len(entries)}: {ratio:.2f} x"
        )


async def key_times(entries: list[ServerEntry], n_keys: int) -> list[float]:
    """Seconds of each key in an app of its own, whose servers begin to start with the first."""
    with tempfile.TemporaryDirectory() as home:
        choice = ModelChoice(StoredModel("m", "", Path(), 1, "gguf", "hub"))
        app = LocalrunApp(opener(ScriptedClient([])), lambda: ChatStore(Path(home)), lambda: choice)
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.pause(0.5)
            await app.session.new_chat()
            editor = app.screen.query_one(Editor)
            servers = McpServers(entries, use_kept=False)
            app.session.tools.tools.servers = servers
            servers.start()
            times = []
            for _ in range(n_keys):
                times.append(await press(app, editor, "x"))
                await asyncio.sleep(0.05)
            if servers.waiting_for() or servers.problems():
                print(f"not every server had started: {servers.waiting_for()} {servers.problems()}", file=sys.stderr)
            return times


def first_token(entries: list[ServerEntry], rounds: int, model: str) -> None:
    """Print how long the first token takes with built-in tools and with tools of servers."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        config = {"mcpServers": {entry.name: entry.as_json() for entry in entries}}
        (home / "mcp.json").write_text(json.dumps(config))
        built_in, of_servers = ",".join(BUILT_IN[: len(entries)]), "mcp"
        n_tokens = {tools: run(home, model, tools)[1] for tools in (built_in, of_servers)}  # servers are listed here
        plain, beside = in_turn(lambda: run(home, model, built_in)[0], lambda: run(home, model, of_servers)[0], rounds)
    later = statistics.median(b - p for p, b in zip(plain, beside, strict=True)) * 1000
    print(
        f"first token             {statistics.median(plain) * 1000:6.0f} ms with {n_tokens[built_in]} tokens and tools "
        f"built in, {statistics.median(beside) * 1000:.0f} ms with {n_tokens[of_servers]} and servers: {later:+.0f} ms"
    )


def run(home: Path, model: str, tools: str) -> tuple[float, int]:
    """Seconds of a command that answers with one token, and the tokens of its prompt."""
    which = ["-m", model] if model else ["-m", "builtin"]
    command = [sys.executable, "-m", "localrun", "run", "--no-stdin", "--json", "--no-attach", "--max-tokens", "1"]
    began = time.monotonic()
    said = subprocess.run(
        [*command, *which, "--tools", tools, PROMPT], env=environ(home), capture_output=True, text=True, check=True
    ).stdout
    return time.monotonic() - began, int(json.loads(said)["prompt_tokens"])


def in_turn(one: Callable[[], T], other: Callable[[], T], rounds: int) -> tuple[list[T], list[T]]:
    """Results of both, each first in every other round."""
    ones, others = [], []
    for number in range(rounds):
        if number % 2:
            others.append(other())
        ones.append(one())
        if not number % 2:
            others.append(other())
    return ones, others


if __name__ == "__main__":
    main()
