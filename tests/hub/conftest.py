"""A hub on loopback and a way in: `serve` starts one, `access_to` points at it with a cache of its own."""

from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from localrun_testing.fake_hub import FakeHub, FakeRepo

from localrun.hub.network import connection
from localrun.hub.network.access import Access
from localrun.hub.remote import api

Serve = Callable[..., FakeHub]
AccessTo = Callable[..., Access]


@pytest.fixture
def serve() -> Generator[Serve, None, None]:
    with ExitStack() as running:

        def start(repos: Mapping[str, FakeRepo | dict[str, bytes]], token: str = "") -> FakeHub:
            return running.enter_context(FakeHub(repos, token))

        yield start


@pytest.fixture
def access_to(tmp_path: Path) -> AccessTo:
    def make(hub: FakeHub, token: str = "", offline: bool = False) -> Access:
        return Access(hub.url, token, offline, tmp_path / "cache")

    return make


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits of tests are short."""
    monkeypatch.setattr(api, "RETRY_SECONDS", (0.01, 0.01))
    monkeypatch.setattr(connection, "ANSWER_SECONDS", 20.0)
    monkeypatch.setattr(connection, "IDLE_SECONDS", 20.0)
