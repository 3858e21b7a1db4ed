"""Programs that are started on the model of this machine."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from localrun_testing.cli import COMMAND, environment, hear_interrupts, localrun
from localrun_testing.waiting import PATIENCE, until

from localrun.cli.app import run_command_line
from localrun.server.client_programs import PROGRAMS, ServerAddress

SERVER = ServerAddress("http://127.0.0.1:5", "secret", "a model", 4096)


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_gets_the_address_and_model(name: str) -> None:
    setup = PROGRAMS[name].setup(SERVER)
    told = " ".join([*setup.command, *setup.environment.values()])
    assert SERVER.url in told
    assert SERVER.model in told
    assert SERVER.key in told


@pytest.mark.parametrize("name", ["codex", "claude", "opencode"])
def test_agents_know_how_much_context_there_is(name: str) -> None:
    setup = PROGRAMS[name].setup(SERVER)
    assert "4096" in " ".join([*setup.command, *setup.environment.values()])


def test_print_starts_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["launch", "claude", "--print", "--", "-p", "two words"]) == 0
    shown = capsys.readouterr().out
    assert "ANTHROPIC_BASE_URL=http://127.0.0.1:11434" in shown
    assert shown.endswith("claude --model MODEL -p 'two words'\n")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [(("clawed", "--print"), 2, "claude"), (("codex",), 3, "npm install"), ((), 2, "PROGRAM")],
)
def test_launch_errors(
    arguments: tuple[str, ...],
    code: int,
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert run_command_line(["launch", *arguments]) == code
    assert said in capsys.readouterr().err


@pytest.mark.process
def test_a_program_runs_on_a_server_of_its_own_that_ends_with_it(tmp_path: Path) -> None:
    program = tmp_path / "llm"
    program.write_text(
        '#!/bin/sh\n[ "$1 $2" = "openai endpoint" ] && curl --silent --fail "${3}/models" && echo "$@" && exit 5\n'
    )
    program.chmod(0o700)
    ran = localrun(
        "launch", "llm", "--model", "builtin", "--", "hello", PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    )
    assert ran.code == 5, ran.err
    assert '"id":"builtin"' in ran.out
    assert ran.out.rstrip().endswith("-m builtin hello")
    assert "/v1/" not in ran.err, "the screen is the program's"
    assert localrun("top").code == 3


def launch(folder: Path, script: str, **how: Any) -> subprocess.Popen[str]:
    """`localrun launch llm`, where llm is this script of a shell; `how`: keywords of Popen."""
    program = folder / "llm"
    program.write_text(f"#!/bin/sh\n{script}")
    program.chmod(0o700)
    return subprocess.Popen(
        [*COMMAND, "launch", "llm", "--model", "builtin"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(PATH=f"{folder}{os.pathsep}{os.environ['PATH']}"),
        **how,
    )


@pytest.mark.process
def test_ctrl_c_is_for_the_program(tmp_path: Path) -> None:
    """To many it ends an answer, not the program: neither that nor its server ends, while it wants to go on."""
    script = (
        "trap 'echo heard' INT\necho ready\nread line\nread line\n"
        'curl --silent --fail --output /dev/null "${3}/models" && echo answered && exit 5\n'
    )
    launched = launch(tmp_path, script, preexec_fn=hear_interrupts, start_new_session=True)
    assert launched.stdin
    assert launched.stdout
    assert launched.stdout.readline() == "ready\n"
    os.killpg(launched.pid, signal.SIGINT)
    out, _ = launched.communicate("go on\ngo on\n", timeout=PATIENCE)
    assert (out, launched.returncode) == ("heard\nanswered\n", 5)


CLOSE_ALL_BUT_STANDARD = f"""[ "$CLOSED" ] || CLOSED=yes exec {sys.executable} -c '
import os, sys
os.closerange(3, 256)
os.execv(sys.argv[1], sys.argv[1:])
' "$0" "$@"
"""


@pytest.mark.process
@pytest.mark.parametrize("start", ["", CLOSE_ALL_BUT_STANDARD], ids=["plain", "closes what it inherits"])
def test_a_server_goes_on_with_the_program_of_a_killed_launch_and_no_longer(tmp_path: Path, start: str) -> None:
    script = (
        start
        + 'echo "$3"\nread line\ncurl --silent --fail --output /dev/null "${3}/models" && echo answered\nread line\n'
    )
    launched = launch(tmp_path, script)
    assert launched.stdin
    assert launched.stdout
    address = httpx.URL(launched.stdout.readline().strip())
    launched.kill()
    launched.wait()
    launched.stdin.write("go on\n")
    launched.stdin.flush()
    assert launched.stdout.readline() == "answered\n"
    launched.stdin.close()
    until(lambda: not _listens(address))


def _listens(address: httpx.URL) -> bool:
    with socket.socket() as caller:
        return caller.connect_ex((address.host, address.port)) == 0
