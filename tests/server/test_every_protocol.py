"""What holds in every protocol alike."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from localrun_testing.fake_client import FakeClient
from localrun_testing.protocols import PROTOCOLS, question
from localrun_testing.served import Served, serving
from localrun_testing.waiting import until

from localrun.base.request import LoadOptions
from localrun.client.choice import ModelChoice


@pytest.mark.parametrize("path", PROTOCOLS)
def test_keep_alive_is_heeded(http: httpx.Client, served: Served, path: str) -> None:
    """Ollama's own server ignores it below /v1 (ollama#11458)."""
    models = served.service.models
    for keep_alive, is_timed in ((None, True), (-1, False), ("1h", True)):
        assert http.post(path, json={**question(path, "hi"), "keep_alive": keep_alive}).status_code == 200
        until(lambda: models._n_users == 0)
        assert (models.unload_at is not None) is is_timed


@pytest.mark.parametrize("path", PROTOCOLS)
def test_the_localrun_object_names_what_had_no_effect(http: httpx.Client, path: str) -> None:
    wrong = "truncate" if path.startswith("/api") else "best_of" if path == "/v1/completions" else ""
    unheeded = {"/v1/chat/completions": "metadata", "/v1/responses": "user", "/v1/messages": "speed"}.get(path, wrong)
    body = {**question(path, "hi"), unheeded: None}
    assert "ignored" not in http.post(path, json=body).json()["localrun"], "null is as good as nothing"
    assert http.post(path, json={**body, unheeded: "x"}).json()["localrun"]["ignored"] == [unheeded]
    assert "localrun" not in http.post(path, json={**body, "localrun": False}).json()


@pytest.fixture(scope="module")
def loading() -> Iterator[Served]:
    """A server whose model never comes."""
    end = threading.Event()

    def open_client(choice: ModelChoice) -> FakeClient:
        end.wait()
        return FakeClient(LoadOptions(Path()), lambda request: "")

    with serving(open_client) as served:
        try:
            yield served
        finally:
            end.set()


@pytest.mark.parametrize("path", PROTOCOLS)
@pytest.mark.parametrize("is_stream", [False, True])
def test_what_waits_for_its_model_is_cancelled_at_once(loading: Served, path: str, is_stream: bool) -> None:
    with ThreadPoolExecutor(1) as thread:
        body = {**question(path, "hi"), "stream": is_stream}
        asked = thread.submit(httpx.post, f"{loading.url}{path}", json=body, timeout=60)
        (row,) = until(lambda: httpx.get(f"{loading.url}/v1/localrun/requests").json()["requests"])
        assert row["phase"] == "waiting for the model"
        httpx.delete(f"{loading.url}/v1/localrun/requests/{row['number']}")
        answer = asked.result()
    if path == "/v1/responses":  # where cancelling is a part of the protocol
        assert answer.status_code == 200
        assert '"status":"cancelled"' in answer.text.replace(": ", ":")
    else:
        assert answer.status_code == 499, answer.text
        assert "cancelled" in answer.text
