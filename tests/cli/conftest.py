"""The fixture of command lines that talk to no engine."""

import sys
from collections.abc import Iterator
from types import ModuleType

import pytest
from localrun_testing.faces import Faces


@pytest.fixture
def faces(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Faces]:
    made = Faces(capsys)
    module = ModuleType("localrun.client.local")
    module.LocalClient = made.open  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "localrun.client.local", module)
    yield made
    assert all(client.closed for client in made.clients)
