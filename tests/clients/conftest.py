"""Servers for the programs of others: one with two models, and one that says what it is told to."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from localrun_testing.cli import COMMAND, environment
from localrun_testing.client_programs import GEMMA, SMOL, Client, installed, short_and_sure
from localrun_testing.fake_client import FakeClient, last_words
from localrun_testing.served import serving

from localrun.base.request import LoadOptions
from localrun.client.attach.owner import announced
from localrun.server.options import ServerOptions


@pytest.fixture(scope="session")
def served_models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """LOCALRUN_HOME and address of a server with two small models, whose answers are short and always the same."""
    home = tmp_path_factory.mktemp("server")
    (home / "models").mkdir()
    (smol,) = installed("models").rglob("SmolLM2-135M-Instruct.*.gguf")
    for path, name in ((smol, SMOL), (installed("models", "gemma-3-270m.gguf"), GEMMA)):
        short_and_sure(path, home / "models" / f"{name}.gguf")
    command = [*COMMAND, "serve", SMOL, "--port", "0", "--jsonl"]
    with (
        (home / "server.log").open("w") as log,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, env=environment(LOCALRUN_HOME=str(home)), text=True
        ) as process,
    ):
        try:
            assert process.stdout
            line = process.stdout.readline()
            assert line, (home / "server.log").read_text()
            yield home, json.loads(line)["url"]
        finally:
            process.terminate()


@pytest.fixture
def client(served_models: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    """A user of that server."""
    home, url = served_models
    monkeypatch.setenv("LOCALRUN_HOME", str(home))
    return Client(tmp_path, url)


@pytest.fixture
def fake() -> FakeClient:
    """An engine that says the last message again."""
    return FakeClient(LoadOptions(Path()), last_words)


@pytest.fixture
def pupil(fake: FakeClient, tmp_path: Path) -> Iterator[Client]:
    """A user of a server without a model, over that engine."""
    with serving(lambda choice: fake, ServerOptions(port=0, any_model=True)) as served, announced(served.url, ""):
        yield Client(tmp_path, served.url)
