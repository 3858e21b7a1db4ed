"""Downloads by real processes: at a terminal, interrupted, and offline without a single socket."""

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from localrun_testing.cli import Terminal, environment, localrun
from localrun_testing.fake_hub import FakeHub
from localrun_testing.stub_gguf import stub_gguf
from localrun_testing.waiting import until

from localrun.hub.downloads.journal import read_chunks

pytestmark = pytest.mark.process


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    parts = {name: stub_gguf(tmp_path, name) for name in (f"big-Q8_0-{i:05d}-of-00002.gguf" for i in (1, 2))}
    noise = {name: random.Random(name).randbytes((3 << 20) - len(head)) for name, head in parts.items()}
    with FakeHub({"org/big-GGUF": {name: head + noise[name] for name, head in parts.items()}}) as running:
        running.bytes_per_second = 1e6
        monkeypatch.setenv("HF_ENDPOINT", running.url)
        monkeypatch.setenv("HF_HUB_OFFLINE", "0")
        yield running


def test_bars_at_a_terminal_and_ctrl_c(hub: FakeHub, home: Path) -> None:
    with Terminal("pull", "org/big-GGUF") as terminal:
        terminal.expect("all files")
        terminal.expect("/s")
        until(lambda: any(read_chunks(journal, 3) for journal in home.rglob("*-journal")))
        terminal.interrupt()
        ran = terminal.finish()
    assert ran.code == 130
    assert "Traceback" not in ran.out
    listed = localrun("list")
    assert "unfinished: big-Q8_0-0000" in listed.err

    hub.bytes_per_second = None
    ran = localrun("pull", "org/big-GGUF", "--json")
    answer = ran.json
    assert ran.code == 0
    assert "\r" not in ran.err
    assert 0 < answer["fetched"] < answer["bytes"] == 6 << 20
    assert Path(answer["path"]).read_bytes() == hub.repos["org/big-GGUF"].files["big-Q8_0-00001-of-00002.gguf"]


NO_SOCKETS = """
import json, os, socket, sys
def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.__new__"):
        raise SystemExit(f"OPENED {event}")
sys.addaudithook(refuse)
from localrun.cli.app import run_command_line
before = dict(os.environ)
for variable, *command in json.loads(sys.argv[1]):
    os.environ.update({variable: "1"} if variable else {})
    print(run_command_line([*command, "--json"]), flush=True)
    os.environ.clear()
    os.environ.update(before)
"""
OFFLINE = {
    ("", "search", "qwen", "--offline"): 0,
    ("HF_HUB_OFFLINE", "fit", "qwen3-4b"): 0,
    ("LOCALRUN_OFFLINE", "show", "qwen3-4b"): 0,
    ("", "pull", "org/big-GGUF", "--offline"): 7,
}


def test_offline_opens_no_socket(hub: FakeHub) -> None:
    """In a process of its own, for what refuses sockets stays as long as that."""
    command = [sys.executable, "-c", NO_SOCKETS, json.dumps([*OFFLINE])]
    done = subprocess.run(command, env=environment(HF_HUB_OFFLINE="0"), capture_output=True, text=True)
    assert "OPENED" not in done.stderr
    assert done.returncode == 0, done.stderr
    found, out = [], done.stdout
    while out.strip():
        answer, end = json.JSONDecoder().raw_decode(out.lstrip())
        found.append(answer)
        out = out.lstrip()[end:]
    assert found[1::2] == [*OFFLINE.values()]
    assert all(isinstance(answer, dict | list) for answer in found[::2])
    assert hub.seen == []
