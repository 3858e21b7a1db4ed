"""The engine of a server, used by other localruns beside those who ask over HTTP."""

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from localrun_testing.fake_client import FakeClient
from localrun_testing.served import Served, serving
from localrun_testing.waiting import until

from localrun.base.events import Done, Event, Token
from localrun.base.request import LoadOptions, Request
from localrun.client.attach.client import AttachedClient, attach
from localrun.client.attach.owner import announced
from localrun.client.attach.same_load import versions_of
from localrun.client.choice import ModelChoice, builtin
from localrun.client.model_slot import ModelSlot
from localrun.hub.disk.stored import StoredModel
from localrun.server.models import ModelHost
from localrun.server.monitor.client import attached_names
from localrun.server.options import ServerOptions

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="windows has no Unix sockets")


def options_for(model: Path) -> LoadOptions:
    return LoadOptions(model, disk_cache=1)


def open_fake(choice: ModelChoice) -> FakeClient:
    assert isinstance(choice.stored, StoredModel)
    options = options_for(choice.stored.path)
    return FakeClient(options, lambda request: str(request.prompt or "over HTTP"), files=versions_of(options))


@pytest.fixture
def served() -> Iterator[Served]:
    with serving(open_fake) as running, announced(running.url, "", running.engine):
        yield running


def own_engine(*_: object) -> FakeClient:
    return FakeClient(LoadOptions(Path()), lambda request: "abc and all that was loaded here")


def loaded_path() -> Path:
    stored = builtin().stored
    assert isinstance(stored, StoredModel)
    return stored.path


@contextmanager
def attached(told: list[str]) -> Iterator[AttachedClient]:
    client = attach(options_for(loaded_path()), "a test", own_engine, lambda done, total: None, told.append)
    assert client is not None, told
    try:
        yield client
    finally:
        client.close()


def ask(served: Served, **more: Any) -> httpx.Response:
    body = {"messages": [{"role": "user", "content": "Hi"}], **more}
    return httpx.post(f"{served.url}/v1/chat/completions", json=body, timeout=60)


def state(served: Served) -> dict[str, Any]:
    return dict(httpx.get(f"{served.url}/v1/localrun/requests", timeout=60).json())


def begun(client: AttachedClient, prompt: str = "abc…") -> Iterator[Event]:
    """An answer that has begun and does not end."""
    events = iter(client.generate(Request(prompt=prompt)))
    next(event for event in events if isinstance(event, Token))
    return events


def finish(events: Iterator[Event]) -> Done:
    *_, last = events
    assert isinstance(last, Done)
    return last


@pytest.fixture
def ready(served: Served) -> Served:
    assert ask(served).status_code == 200
    return served


def test_before_a_model_is_loaded_there_is_nothing_to_share(served: Served) -> None:
    told: list[str] = []
    options = options_for(loaded_path())
    assert attach(options, "a test", own_engine, lambda done, total: None, told.append) is None
    assert told == ["the running localrun has no model loaded: the model is loaded here"]


def test_its_requests_are_shown_counted_and_ended_as_others(ready: Served) -> None:
    with attached([]) as client:
        events = begun(client)
        assert ask(ready).status_code == 200, "others are answered beside it"
        seen = until(lambda: found if len((found := state(ready))["requests"]) == 1 else None)
        assert attached_names(seen) == [f"a test ({os.getpid()})"]
        (row,) = seen["requests"]
        assert (row["protocol"], row["client"], row["phase"]) == ("attached", f"a test ({os.getpid()})", "writing")
        assert httpx.delete(f"{ready.url}/v1/localrun/requests/{row['number']}").status_code == 200
        assert finish(events).completion.stop_reason == "cancelled"
        until(lambda: not state(ready)["requests"])
    metrics = httpx.get(f"{ready.url}/metrics").text
    assert 'localrun_requests_total{outcome="done",path="attached"} 1' in metrics
    until(lambda: not state(ready)["attached"])


def test_another_model_waits_for_the_answer_and_ends_the_sharing(ready: Served) -> None:
    stored = StoredModel("other", "Q8_0", loaded_path(), 1, "gguf", "models")
    find = ready.service.models.find
    choices = {"other": ModelChoice(stored, "Q8_0")}
    ready.service.models.find = lambda name: choices.get(name) or find(name)  # type: ignore[method-assign]
    told: list[str] = []
    with attached(told) as client:
        generation = client.generate(Request(prompt="abc…"))
        events = iter(generation)
        next(event for event in events if isinstance(event, Token))
        other = threading.Thread(target=ask, args=(ready,), kwargs={"model": "other"})
        other.start()
        until(lambda: [row["phase"] for row in state(ready)["requests"]] == ["writing", "waiting for the model"])
        generation.cancel()
        assert finish(events).completion.engine == "attached"
        other.join()
        answer = finish(client.generate(Request(prompt="abc"))).completion
        assert answer.text == "abc and all that was loaded here"
        assert told == ["the running localrun has loaded another model: the model is loaded here"]


def test_a_request_that_waits_for_its_turn_is_cancelled(ready: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def never(name: str) -> AsyncIterator[FakeClient]:
        await asyncio.Event().wait()
        yield own_engine()

    with attached([]) as client:
        monkeypatch.setattr(ready.service.models, "use", never)
        generation = client.generate(Request(prompt="abc"))
        answer: list[Done] = []
        thread = threading.Thread(target=lambda: answer.append(finish(iter(generation))))
        thread.start()
        until(lambda: [row["phase"] for row in state(ready)["requests"]] == ["waiting for the model"])
        generation.cancel()
        thread.join()
        assert answer[0].completion.stop_reason == "cancelled"
        until(lambda: not state(ready)["requests"])
    assert 'outcome="cancelled",path="attached"' in httpx.get(f"{ready.url}/metrics").text


def test_where_the_server_ends_the_answer_goes_on() -> None:
    told: list[str] = []
    with serving(open_fake) as served, announced(served.url, "", served.engine):
        ask(served)
        with attached(told) as client:
            events = begun(client)
            served.end()
            assert finish(events).completion.text == "abc and all that was loaded here"
    assert told == ["the running localrun has ended: the model is loaded here"]


def test_a_model_is_not_unloaded_under_an_attached_program() -> None:
    async def story() -> None:
        slot = ModelSlot(lambda choice, progress: open_fake(choice))
        models = ModelHost(slot, builtin(), ServerOptions(keep_alive=300))
        freed: list[str] = []
        slot.on_freed = freed.append
        n_attached = 1
        models.n_attached = lambda: n_attached
        async with models.use(""):
            pass
        await models._unload_idle(300)
        assert slot.client
        assert models.unload_at
        n_attached = 0
        await models._unload_idle(300)
        assert not slot.client
        async with models.use(""):
            pass
        n_attached = 1
        await models._unload_idle(0)  # somebody wants it gone
        assert not slot.client
        assert freed == ["has unloaded its model"] * 2
        await models.close()

    asyncio.run(story())
