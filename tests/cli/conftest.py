"""Command lines that talk to no engine, and a server that they may talk to."""

import signal
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest
from localrun_testing.faces import Faces
from localrun_testing.fake_chat_server import FakeChatServer, fake_chat_server


@pytest.fixture
def faces(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Faces]:
    made = Faces(capsys)
    module = ModuleType("localrun.client.local")
    module.LocalClient = made.open  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "localrun.client.local", module)
    yield made
    assert all(client.closed for client in made.clients)


@pytest.fixture
def server() -> Iterator[FakeChatServer]:
    with fake_chat_server() as server:
        yield server


@pytest.fixture
def hears_interrupts() -> Iterator[None]:
    """Ctrl-C is heard, also where the tests run in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
