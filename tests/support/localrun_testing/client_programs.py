"""Programs of others that ask a server: where `make clients` put them, and how they run, each in a home of its own."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from localrun.formats.gguf import open_gguf
from localrun_testing.cli import COMMAND, Ran, environment
from tools.gguf_write import Encoded, write_gguf

VARIABLE = "LOCALRUN_CLIENTS"
SMOL, GEMMA = "smollm2-135m", "gemma-3-270m"  # the models of `make clients`, as the server lists them
PATIENCE = 1800.0  # seconds for what takes a minute where nobody else computes
NOWHERE = "http://127.0.0.1:9"  # a proxy that is not there, so that nothing leaves this machine


def installed(*parts: str) -> Path:
    """A file of `make clients`. A skip where there are none at all; where they are promised each has to be there."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        pytest.skip(f"no clients: {VARIABLE} names no folder that `make clients` has filled")
    path = Path(folder, *parts)
    assert path.exists(), f"{path} is missing: `make clients` brings it"
    return path


@dataclass(frozen=True, slots=True)
class Client:
    """Someone who uses these programs: an empty home, with a folder to work in, and the address of a server."""

    home: Path
    url: str

    def run(self, *command: str | Path, **variables: str) -> Ran:
        """One of the programs, to its end."""
        return self._run([str(word) for word in command], variables)

    def launch(self, *words: str) -> Ran:
        """`localrun launch`, which finds a server by itself."""
        return self._run([*COMMAND, "launch", *words], {})

    def _run(self, command: list[str], variables: dict[str, str]) -> Ran:
        work = self.home / "work"
        work.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            cwd=work,
            env=environment(**{**self._variables(), **variables}),
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    def _variables(self) -> dict[str, str | None]:
        programs = [
            installed("node_modules", "node", "bin"),
            installed("node_modules", ".bin"),
            installed("venv", "bin"),
        ]
        folders = ("CONFIG", "DATA", "STATE", "CACHE")
        return {
            "PATH": os.pathsep.join([*map(str, programs), os.environ["PATH"]]),
            "HOME": str(self.home),
            **{f"XDG_{name}_HOME": str(self.home / name.lower()) for name in folders},
            **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), NOWHERE),
            **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost"),
        }


def short_and_sure(source: Path, target: Path) -> None:
    """Copy a GGUF so that, as its own settings, it takes the likeliest token, and the end of a line ends an answer: not
    all programs let one say so, and a model that knows no turns would go on to the end of its context."""
    file = open_gguf(source)
    tensors = {name: Encoded(info.qtype, info.shape, bytes(file.read(name))) for name, info in file.tensors.items()}
    tokens = file.metadata["tokenizer.ggml.tokens"]
    ends = {"general.sampling.temp": 0.0, "tokenizer.ggml.eot_token_id": tokens.index("\n" if "\n" in tokens else "Ċ")}
    write_gguf(target, {**file.metadata, **ends}, tensors)
