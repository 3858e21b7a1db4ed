"""A server over a client without a model, which repeats what it is asked."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from localrun_testing.fake_client import FakeClient
from localrun_testing.served import Served, serving

from localrun.base.request import LoadOptions, Request


def echo(request: Request) -> str:
    """The last message, or the prompt."""
    return str(request.messages[-1]["content"] if request.messages else request.prompt)


@pytest.fixture(scope="module")
def fake() -> FakeClient:
    return FakeClient(LoadOptions(Path()), echo)


@pytest.fixture(scope="module")
def served(fake: FakeClient) -> Iterator[Served]:
    with serving(lambda choice: fake) as running:
        yield running


@pytest.fixture(scope="module")
def http(served: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=served.url, timeout=60) as client:
        yield client
