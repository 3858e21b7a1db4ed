"""`localrun` as users meet it: a process with pipes, or one at a terminal."""

import contextlib
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localrun_testing import REPOSITORY

COMMAND = (sys.executable, "-m", "localrun")
TIMEOUT = 180.0  # for what takes a second or two where nobody else computes


def environment(**changes: str | None) -> dict[str, str]:
    """This process's environment, able to import the checkout; None takes a variable out."""
    values = {**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONIOENCODING": "", "TERM": "xterm", **changes}
    return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Ran:
    """A finished process."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """stdout as exactly one JSON value on one line."""
        assert self.out.endswith("\n"), self
        assert self.out.count("\n") == 1, self
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """stdout as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]


def hear_interrupts() -> None:
    """For a child before it begins: Ctrl-C is not ignored, though the tests may run in the background of a shell."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def localrun(
    *arguments: str | Path, stdin: str | bytes | None = b"", cwd: Path | None = None, **env: str | None
) -> Ran:
    """Run to the end. `stdin` is piped; None is /dev/null."""
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        input=stdin.encode() if isinstance(stdin, str) else stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        timeout=TIMEOUT,
        cwd=cwd,
        env=environment(**env),
        preexec_fn=hear_interrupts,
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


def localrun_in_shell(line: str, *arguments: str | Path, **env: str | None) -> Ran:
    """Run a shell line in which "$@" is `localrun` with these arguments: for redirections and pipelines."""
    done = subprocess.run(
        ["bash", "-c", line, "bash", *COMMAND, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=TIMEOUT,
        env=environment(**env),
        preexec_fn=hear_interrupts,
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


class Terminal:
    """`localrun` with a terminal at the ends named in `ends`; a stdout or stderr that is not there is a pipe."""

    def __init__(
        self,
        *arguments: str | Path,
        ends: str = "stdin stdout stderr",
        stdin: int = subprocess.DEVNULL,
        **env: str | None,
    ) -> None:
        self._master, slave = pty.openpty()
        self.seen = ""
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [*COMMAND, *map(str, arguments)],
            stdin=slave if "stdin" in ends else stdin,
            stdout=slave if "stdout" in ends else pipe,
            stderr=slave if "stderr" in ends else pipe,
            env=environment(**env),
            start_new_session=True,
            preexec_fn=lambda: _take_terminal(slave),
        )
        os.close(slave)

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        os.close(self._master)

    def expect(self, text: str) -> str:
        """Read until `text` is on the screen; gives all that was read since the last call."""
        deadline = time.monotonic() + TIMEOUT
        while text not in self.seen:
            assert self._read(deadline), f"no {text!r} in {self.seen!r}"
        before, _, self.seen = self.seen.partition(text)
        return before + text

    def send(self, text: str) -> None:
        os.write(self._master, text.encode())

    def interrupt(self) -> None:
        """Ctrl-C."""
        self.send("\x03")

    def interrupt_at_prompt(self, answer: str) -> None:
        """Ctrl-C until `answer` comes, as a person would: one pressed in the instant a prompt appears can be lost,
        when the signal lands between Python's check for it and readline's wait for a key."""
        for _ in range(10):
            self.interrupt()
            until = time.monotonic() + 2
            while answer not in self.seen and time.monotonic() < until:
                if select.select([self._master], [], [], 0.1)[0]:
                    self._read(until + 1)
            if answer in self.seen:
                return
        raise AssertionError(f"no {answer!r} in {self.seen!r}")

    def finish(self) -> Ran:
        """Wait for the end; `out` is the screen where stdout is a terminal."""
        deadline = time.monotonic() + TIMEOUT
        while self._read(deadline):
            pass
        out, err = self.process.communicate(timeout=TIMEOUT)
        code = self.process.wait(TIMEOUT)
        return Ran(code, out.decode() if out is not None else self.seen, err.decode() if err is not None else self.seen)

    def _read(self, deadline: float) -> bool:
        """More of the screen; False at its end."""
        while True:
            has_ended = self.process.poll() is not None  # before the look at what it wrote
            ready, _, _ = select.select([self._master], [], [], 0.1)
            if ready:
                with contextlib.suppress(OSError):  # Linux: the other end is closed
                    data = os.read(self._master, 65536)
                    self.seen += data.decode(errors="replace")
                    return bool(data)
                return False
            if has_ended:
                return False
            assert time.monotonic() < deadline, f"nothing more after {self.seen!r}"


def _take_terminal(slave: int) -> None:
    import fcntl
    import termios

    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    hear_interrupts()
