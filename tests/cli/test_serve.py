"""`localrun serve` as a process: where it listens, how it ends, and what happens when its engine dies."""

import json
import os
import signal
import socket
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest
from localrun_testing.cli import COMMAND, environment, hear_interrupts, localrun
from localrun_testing.schemas import check
from localrun_testing.waiting import PATIENCE

from localrun.base.events import Done, Token
from localrun.base.request import Request, Sampling
from localrun.base.settings import Settings
from localrun.cli.app import run_command_line
from localrun.client.attach.owner import running_server
from localrun.client.choice import builtin
from localrun.client.open_client import open_client
from localrun.hub.disk.stored import StoredModel

pytestmark = pytest.mark.process

QUESTION = {"messages": [{"role": "user", "content": "Why is the second token faster?"}], "seed": 1}


@contextmanager
def served(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """A server of the built-in model, and what it says where it listens."""
    command = [*COMMAND, "serve", "builtin", "--jsonl", "--threads", "1", *arguments]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        preexec_fn=hear_interrupts,
    )
    try:
        assert process.stdout
        line = process.stdout.readline()
        assert line, process.stderr.read() if process.stderr else ""
        said = json.loads(line)
        check(said, "serve")
        yield process, said
    finally:
        process.kill()
        process.communicate()
        running_server()  # removes what a killed one leaves


def test_life_of_a_server(tmp_path: Path) -> None:
    """One process for all of it: starting one takes a second."""
    with served("--port", "0", "--no-swap") as (process, said):
        address = f"{said['url']}/v1/chat/completions"
        first = httpx.post(address, json=QUESTION, timeout=PATIENCE).json()
        assert "KV cache" in first["choices"][0]["message"]["content"]

        port = said["url"].rpartition(":")[2]
        taken = localrun("serve", "builtin", "--port", port)
        assert taken.code == 2
        assert str(process.pid) in taken.err
        assert "--port 0" in taken.err

        assert localrun("top", "--json").json["model"]["name"] == "builtin"

        (worker,) = [
            child for child in psutil.Process(process.pid).children() if "worker.main" in " ".join(child.cmdline())
        ]
        with httpx.stream("POST", address, json={**QUESTION, "stream": True}, timeout=PATIENCE) as stream:
            lines = stream.iter_lines()
            next(lines)
            worker.kill()
            rest = [line for line in lines if line.startswith("data: ")]
        assert '"code":"engine_died"' in rest[-1] or rest[-1] == "data: [DONE]"
        again = httpx.post(address, json=QUESTION, timeout=PATIENCE).json()
        assert again["choices"] == first["choices"]

        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
        assert process.stdout
        assert process.stdout.read() == ""
    assert localrun("top").code == 3


def test_a_model_whose_file_is_damaged_leaves_the_loaded_one_with_its_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = builtin().stored
    assert isinstance(stored, StoredModel)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "short.gguf").write_bytes(stored.path.read_bytes()[:-100_000])
    monkeypatch.setenv("LOCALRUN_HOME", str(tmp_path))
    with served("--port", "0") as (_, said), httpx.Client(base_url=said["url"], timeout=PATIENCE) as client:
        first = client.post("/v1/chat/completions", json=QUESTION).json()
        refused = client.post("/v1/chat/completions", json={**QUESTION, "model": "short"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (500, "bad_model_file")
        again = client.post("/v1/chat/completions", json=QUESTION).json()
        assert again["choices"] == first["choices"]
        assert again["localrun"]["cached"] == first["usage"]["prompt_tokens"] - 1


def test_ctrl_c_lets_an_answer_end(tmp_path: Path) -> None:
    path = tmp_path / "own.sock"
    with served("--socket", str(path)) as (process, said):
        assert (said["url"], said["socket"]) == ("", str(path))
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        client = httpx.Client(transport=httpx.HTTPTransport(uds=str(path)), base_url="http://localhost")
        body = {**QUESTION, "stream": True}
        with client, client.stream("POST", "/v1/chat/completions", json=body, timeout=PATIENCE) as stream:
            lines = stream.iter_lines()
            next(lines)
            process.send_signal(signal.SIGINT)
            assert [line for line in lines if line][-1] == "data: [DONE]"
        assert process.wait(PATIENCE) == 130
    assert not path.exists()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as killed:
        killed.bind(str(path))
    with served("--socket", str(path)):  # what a killed one left behind is no obstacle
        assert httpx.Client(transport=httpx.HTTPTransport(uds=str(path))).get("http://localhost/health").is_success


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--host", "0.0.0.0"), 2, "--api-key"),
        (("--host", "203.0.113.1", "--api-key", "k"), 2, "203.0.113.1"),
        (("--host", "no.such.host.invalid", "--api-key", "k"), 2, "no.such.host.invalid"),
        (("--port", "70000"), 2, "65535"),
        (("--parallel", "0"), 2, "1024"),
        (("--keep-alive", "soon"), 2, "5m"),
        (("--alias", "gpt-4o=no-such-model"), 3, "no-such-model"),
        (("--alias", "=builtin"), 2, "NAME=MODEL"),
        (("--model", "no-such-model"), 3, "no-such-model"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_options_fail_before_loading(
    arguments: tuple[str, ...], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process: that of a command ends as they do."""
    found, err = run_command_line(["serve", *arguments]), capsys.readouterr().err
    assert (found, said in err) == (code, True), err


def test_a_taken_port_of_another_program_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        ran = localrun("serve", "builtin", "--port", str(other.getsockname()[1]))
    assert ran.code == 2
    assert str(os.getpid()) in ran.err


@pytest.mark.skipif(os.name == "nt", reason="windows has no Unix sockets")
@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_a_socket_of_another_program_stays(
    kind: socket.SocketKind, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "other.sock"
    with socket.socket(socket.AF_UNIX, kind) as other:
        other.bind(str(path))
        if kind == socket.SOCK_STREAM:
            other.listen(0)
        for _ in range(3):  # those that came before wait to be accepted, and fill its line
            assert run_command_line(["serve", "builtin", "--socket", str(path)]) == 2
            assert f"another program has {path}" in capsys.readouterr().err
    assert path.is_socket()


@pytest.mark.skipif(os.name == "nt", reason="windows has no Unix sockets")
def test_what_is_no_socket_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("precious")
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    for name, said in (("file", "is there, and no socket"), ("link", "no socket"), ("no/folder", "No such file")):
        assert run_command_line(["serve", "builtin", "--socket", str(tmp_path / name)]) == 2
        assert said in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "precious"


@pytest.mark.skipif(os.name == "nt", reason="windows has no Unix sockets")
def test_a_second_localrun_uses_its_engine_until_it_is_killed() -> None:
    told: list[str] = []
    request = Request(prompt="The cache", sampling=Sampling(temperature=1.0, seed=3), max_tokens=1_000)
    settings = Settings(threads=1)
    with served("--port", "0") as (process, _):
        ask = ("run", "-m", "builtin", "Hello", "--seed", "1", "--threads", "1", "--json", "--no-stdin")
        attached = localrun(*ask).json
        check(attached, "run")
        assert attached["engine"] == "attached"

        owner = running_server()
        assert owner
        socket_folder = Path(owner.engine).parent
        client = open_client(builtin(), settings, disk_cache=False, attach_as="a test", tell=told.append)
        assert client.info.engine == "attached"
        events = iter(client.generate(request))
        said = next(event.text for event in events if isinstance(event, Token))
        process.kill()
        rest = list(events)  # whatever had been sent by then: no token is lost, and none comes twice
        said += "".join(event.text for event in rest if isinstance(event, Token))
        assert isinstance(rest[-1], Done)
        again = next(event for event in client.generate(request) if isinstance(event, Done)).completion
        assert said == again.text
        assert again.engine == "own"
        assert told == ["the localrun whose engine this used is gone: the model is loaded here"]
        client.close()
        process.wait(PATIENCE)
        assert running_server() is None
        assert not socket_folder.exists(), "what it left is removed"
