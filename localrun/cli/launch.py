"""`localrun launch`: start another program that uses a model of this machine."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import Annotated

import typer

from localrun.base.errors import EngineError, NotFoundError, UsageError
from localrun.base.nearest import did_you_mean
from localrun.cli.completion import complete_word
from localrun.cli.console import write
from localrun.cli.groups import ModelOptions, switch
from localrun.client.attach.owner import running_server
from localrun.server.client_programs import PROGRAMS, ServerAddress, Setup
from localrun.server.monitor.client import MonitorClient
from localrun.server.options import KEY_VARIABLE

_PLACEHOLDER = ServerAddress("http://127.0.0.1:11434", "", "MODEL", 32_768)


def launch(
    program: Annotated[
        str, typer.Argument(metavar="PROGRAM", help=", ".join(PROGRAMS), autocompletion=complete_word(*PROGRAMS))
    ],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[-- ARGUMENTS]", help="for the program", show_default=False)
    ] = None,
    *,
    only_print: Annotated[bool, switch("--print", "show the command with its variables, and start nothing")] = False,
    model: ModelOptions,
) -> int:
    """Start a program on the running server, or on a server of its own that ends with it.

    The program's own settings are not changed.
    """
    if program not in PROGRAMS:
        raise UsageError(f"there is no program {program} to launch", did_you_mean(program, PROGRAMS) or _names())
    known = PROGRAMS[program]
    if only_print:
        server = _address(MonitorClient(), model) if running_server() else _PLACEHOLDER
        write(_as_shell(known.setup(server), arguments or []) + "\n")
        return 0
    if shutil.which(known.setup(_PLACEHOLDER).command[0]) is None:
        raise NotFoundError(f"{program} is not installed", f"`{known.install}` installs it")
    with _server(model) as (server, tell):
        setup = known.setup(server)
        command, environment = [*setup.command, *(arguments or [])], {**os.environ, **setup.environment}
        with _interrupts(_leave_to_the_program):
            return subprocess.run(command, env=environment, preexec_fn=tell, check=False).returncode


@contextmanager
def _interrupts(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> Iterator[None]:
    """Handle Ctrl-C so for a block; where it is ignored it stays so."""
    before = signal.getsignal(signal.SIGINT)
    if before != signal.SIG_IGN:
        signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _leave_to_the_program(number: int, frame: FrameType | None) -> None:
    """Do nothing, unlike SIG_IGN, which the program would inherit: to many Ctrl-C ends an answer, not themselves."""


@contextmanager
def _server(model: ModelOptions) -> Iterator[tuple[ServerAddress, Callable[[], None] | None]]:
    """Address of the running server, or of a new one that runs until the block ends; with the named model loaded.

    Where we are killed, the new one runs on for the process that called the function, and ends with it.
    """
    if running_server() is not None:
        yield _address(MonitorClient(), model), None
        return
    named = [] if model.model is None else ["--model", model.model, "--precision", model.precision]
    command = [sys.executable, "-m", "localrun", "serve", "--port", "0", "--jsonl", "--quiet", "--until-stdin-ends"]
    with _interrupts(signal.SIG_IGN):  # which the server inherits: it lives as long as the program
        process = subprocess.Popen([*command, *named], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process:
        try:
            assert process.stdin
            assert process.stdout
            line = process.stdout.readline()
            if not line:
                raise EngineError("the server did not start", "its output is above")
            tell = partial(_tell, process.stdin.fileno()) if os.name == "posix" else None
            yield _address(MonitorClient(json.loads(line)["url"]), ModelOptions()), tell
        finally:
            process.terminate()


def _tell(stdin: int) -> None:
    """Send the id of this process to a server, which may have ended."""
    with suppress(OSError):
        os.write(stdin, b"%d\n" % os.getpid())


def _address(monitor: MonitorClient, model: ModelOptions) -> ServerAddress:
    """Address of a running server and its model; a model that was unloaded while idle is loaded again."""
    precision = "" if model.precision == "auto" else f":{model.precision}"
    loaded = monitor.load(f"{model.model}{precision}" if model.model else "")
    return ServerAddress(monitor.url, os.environ.get(KEY_VARIABLE, ""), str(loaded["id"]), int(loaded["ctx"]))


def _as_shell(setup: Setup, arguments: list[str]) -> str:
    variables = [f"{name}={shlex.quote(value)}" for name, value in setup.environment.items()]
    return " \\\n  ".join([*variables, shlex.join([*setup.command, *arguments])])


def _names() -> str:
    return f"there are {', '.join(PROGRAMS)}"
