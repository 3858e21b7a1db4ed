"""Draws docs/top.svg: `localrun top` beside a real server of the built-in model, with several programs asking."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import httpx

from localrun.server.monitor.client import MonitorClient
from localrun_tui.top_app import TopApp
from tools import ROOT

TARGET = ROOT / "docs" / "top.svg"
SIZE = (120, 14)
PROGRAMS = (
    ("codex_cli_rs/0.171.0", "thread-4f21", "Explain what a KV cache is, and why it makes answers faster. " * 40),
    ("opencode/1.18.33", "ses_82", "Tell me a long story of a town by the sea. " * 50),
    ("ollama-python/0.6.3", "", "What is a quantised model? " * 3),
    ("OpenAI/3.57.0", "", "List what one needs for a garden. " * 60),
)


def main() -> None:
    """Let all of them ask, over and over, until the picture shows answers that are written and one that waits."""
    with tempfile.TemporaryDirectory() as home, server(home) as url:
        done = threading.Event()
        threads = [threading.Thread(target=keep_asking, args=(url, *program, done)) for program in PROGRAMS]
        for thread in threads:
            thread.start()
        try:
            asyncio.run(draw(url))
        finally:
            done.set()
            for thread in threads:
                thread.join()


@contextmanager
def server(home: str) -> Iterator[str]:
    """`localrun serve`, at the address that it gives."""
    command = [sys.executable, "-m", "localrun", "serve", "builtin", "--port", "0", "--parallel", "3", "--jsonl"]
    environment = {**os.environ, "LOCALRUN_HOME": home}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
    assert process.stdout
    try:
        yield json.loads(process.stdout.readline())["url"]
    finally:
        process.terminate()
        process.wait()


def keep_asking(url: str, program: str, session: str, text: str, done: threading.Event) -> None:
    headers = {"user-agent": program, **({"session-id": session} if session else {})}
    body = {"messages": [{"role": "user", "content": text}], "max_tokens": 400, "temperature": 1.5}
    while not done.is_set():
        with suppress(httpx.HTTPError):
            httpx.post(f"{url}/v1/chat/completions", json=body, headers=headers, timeout=60)


async def draw(url: str) -> None:
    app = TopApp(MonitorClient(url))
    async with app.run_test(size=SIZE) as pilot:
        while not is_lively(picture := app.export_screenshot(simplify=True)):
            await pilot.pause(0.1)
        TARGET.write_text(picture, encoding="utf-8")


def is_lively(picture: str) -> bool:
    everybody = all(program.partition("/")[0] in picture for program, *_ in PROGRAMS)
    return everybody and picture.count("writing") >= 2 and "turn" in picture


if __name__ == "__main__":
    main()
