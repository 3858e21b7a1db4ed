"""What holds in every protocol alike."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest
from localrun_testing.fake_client import FakeClient
from localrun_testing.protocols import PROTOCOLS, cached_tokens, deltas, frames, question
from localrun_testing.served import Served, serving
from localrun_testing.waiting import until

from localrun.base.errors import EngineDiedError, PromptTooLongError
from localrun.base.events import Done, Event
from localrun.base.request import LoadOptions, Request
from localrun.client.choice import ModelChoice, builtin
from localrun.client.local import LocalClient
from localrun.hub.disk.stored import StoredModel
from localrun.server.openai.fields import MAX_TOKENS


@pytest.mark.parametrize("path", PROTOCOLS)
def test_keep_alive_is_heeded(http: httpx.Client, served: Served, path: str) -> None:
    """Ollama's own server ignores it below /v1 (ollama#11458)."""
    models = served.service.models
    for keep_alive, is_timed in ((None, True), (-1, False), ("1h", True)):
        assert http.post(path, json={**question(path, "hi"), "keep_alive": keep_alive}).status_code == 200
        until(lambda: models._n_users == 0)
        assert (models.unload_at is not None) is is_timed


@pytest.mark.parametrize("path", PROTOCOLS)
def test_numbers_mean_what_they_mean_elsewhere(http: httpx.Client, fake: FakeClient, path: str) -> None:
    """-1 is any seed and all tokens, the largest integer no limit, and 3.0 is 3: JSON has no integers."""

    def heard(max_tokens: float, **sampling: Any) -> tuple[object, ...]:
        body = question(path, "hi", **sampling)
        place = body.get("options", body)
        name = next(name for name in ("max_tokens", "max_output_tokens", "num_predict") if name in place)
        place[name] = max_tokens
        answer = http.post(path, json=body)
        assert answer.status_code == 200, answer.text
        asked = fake.requests[-1]
        return asked.max_tokens, asked.sampling.seed, asked.sampling.top_k

    assert heard(2**31 - 1, seed=-1, top_k=-1) == (MAX_TOKENS, None, 0)
    assert heard(12.0, seed=7.0, top_k=40.0) == (12, 7, 40)
    assert heard(12, seed=-2) == (12, 2**64 - 2, None)


@pytest.mark.parametrize("path", PROTOCOLS)
def test_the_localrun_object_names_what_had_no_effect(http: httpx.Client, path: str) -> None:
    wrong = "truncate" if path.startswith("/api") else "best_of" if path == "/v1/completions" else ""
    unheeded = {"/v1/chat/completions": "metadata", "/v1/responses": "user", "/v1/messages": "speed"}.get(path, wrong)
    body = {**question(path, "hi"), unheeded: None}
    assert "ignored" not in http.post(path, json=body).json()["localrun"], "null is as good as nothing"
    assert http.post(path, json={**body, unheeded: "x"}).json()["localrun"]["ignored"] == [unheeded]
    assert "localrun" not in http.post(path, json={**body, "localrun": False}).json()


@pytest.fixture(scope="module")
def real() -> Iterator[httpx.Client]:
    """The built-in model."""
    stored = builtin().stored
    assert isinstance(stored, StoredModel)
    options = LoadOptions(stored.path, ctx=512, disk_cache=1 << 20)  # with a fingerprint
    with LocalClient(options) as engine, serving(lambda choice: engine) as on:
        yield httpx.Client(base_url=on.url, timeout=60)


TIMES = {"load_ms", "render_ms", "tokenize_ms", "queue_ms", "restore_ms", "prefill_ms", "decode_ms"}


def facts(http: httpx.Client, path: str, text: str, is_stream: bool) -> dict[str, Any]:
    """The `localrun` object of an answer, whose counts are those of the protocol's own fields."""
    body = question(path, text, "A cache keeps what was computed. " * 4, seed=7)
    answer = http.post(path, json={**body, "stream": is_stream, "stream_options": {"include_usage": True}})
    objects = frames(answer.text) if is_stream else [answer.json()]
    objects = [one.get("response", one) if path == "/v1/responses" else one for one in objects]
    (found,) = (one["localrun"] for one in objects if "localrun" in one)
    counted = [cached_tokens(path, one) for one in objects if one.get("usage") or "prompt_eval_cached_count" in one]
    assert counted[-1] == found["cached"]
    if not is_stream:
        assert answer.headers["x-localrun-cached"] == str(found["cached"])
        assert int(answer.headers["x-localrun-prompt"]) == found["cached"] + found["computed"]
        assert "x-localrun-queue-ms" in answer.headers
    if path.startswith("/v1/c"):
        assert {one["system_fingerprint"] for one in objects} == {found["system_fingerprint"]}
    return dict(found)


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("path", PROTOCOLS)
def test_an_answer_says_where_its_prompt_came_from_and_where_the_time_went(
    real: httpx.Client, path: str, is_stream: bool
) -> None:
    first, second = (facts(real, path, f"Why? {path} {is_stream}", is_stream) for _ in range(2))
    for found in (first, second):
        assert all(found[name] >= 0 for name in TIMES)
        assert (found["seed"], found["horizon"], found["restored_from_disk"], found["replayed"]) == (7, None, 0, 0)
        assert len(found["system_fingerprint"]) == 16
    assert first["system_fingerprint"] == second["system_fingerprint"]
    assert (second["computed"], second["cache_break"]) == (1, None)
    assert second["cached"] > 0
    other = facts(real, path, f"Where? {path} {is_stream}", is_stream)
    assert other["cached"] < second["cached"]
    if path != "/v1/completions":  # a raw prompt has no messages
        assert (other["cache_break"]["kind"], other["cache_break"]["at_token"]) == ("message", other["cached"])
        assert (other["cache_break"]["before"][:3], other["cache_break"]["after"][:3]) == ("Why", "Whe")


@pytest.mark.parametrize("path", PROTOCOLS)
def test_half_a_character_fails_nothing(http: httpx.Client, path: str) -> None:
    """As the end of a text that a client has cut within an emoji, or in a name."""
    answer = http.post(path, content=json.dumps({**question(path, "ab \ud83d"), "model": "builtin"}))
    assert answer.status_code == 200
    assert "ab ?" in answer.text
    answer = http.post(path, content=json.dumps({**question(path, "hi"), "model": "no \ud83d"}))
    assert answer.status_code == 404
    assert "no ?" in answer.text


PINGS = {
    "/v1/chat/completions": ": ping",
    "/v1/completions": ": ping",
    "/v1/responses": "event: response.in_progress",  # comments keep no codex waiting
    "/v1/messages": "event: ping",
    "/api/chat": '"message":{"role":"assistant","content":""},"done":false',
    "/api/generate": '"response":"","done":false',
}
ENDS = {
    "/v1/chat/completions": '"finish_reason":"stop"',
    "/v1/completions": '"finish_reason":"stop"',
    "/v1/responses": '"type":"response.incomplete"',
    "/v1/messages": '"type":"message_stop"',
    "/api/chat": '"done":true',
    "/api/generate": '"done":true',
}


@pytest.mark.parametrize("path", PROTOCOLS)
def test_a_stream_has_words_as_they_come_pings_and_an_end(
    http: httpx.Client, served: Served, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """Silence makes clients leave (ds4#222, llama.cpp#25241), and a cancelled answer has ended as any other
    (openclaw#98575)."""
    monkeypatch.setattr("localrun.server.wire.PING_SECONDS", 0.05)
    lines: list[str] = []
    with http.stream("POST", path, json={**question(path, "ab😀c…"), "stream": True}) as answer:
        for line in answer.iter_lines():
            lines.append(line)
            text = "".join(deltas(path, frames("\n".join(lines))))
            if text == "ab😀c" and PINGS[path] in line:
                for live in list(served.service.registry.requests):
                    httpx.delete(f"{served.url}/v1/localrun/requests/{live}")
    objects = frames("\n".join(lines))
    assert deltas(path, objects) == ["a", "b", "😀", "c"]
    ended = [ENDS[path] in json.dumps(one, separators=(",", ":")) for one in objects]
    assert ended == [False] * (len(objects) - 1) + [True]


class Dying(FakeClient):
    """An engine that dies at the end of what it says, and takes no long prompts."""

    def events(self, request: Request, cancelled: threading.Event) -> Iterator[Event]:
        for event in super().events(request, cancelled):
            if isinstance(event, Done):
                raise EngineDiedError("the engine is gone")
            yield event


def said(request: Request) -> str:
    text = str(request.messages[-1]["content"] if request.messages else request.prompt)
    if text == "long":
        raise PromptTooLongError("too long", n_tokens=400, ctx=128)
    return text


@pytest.fixture(scope="module")
def dying() -> Iterator[httpx.Client]:
    fake = Dying(LoadOptions(Path()), said)
    with serving(lambda choice: fake) as running, httpx.Client(base_url=running.url, timeout=60) as client:
        yield client


@pytest.mark.parametrize("path", PROTOCOLS)
def test_an_engine_that_dies_ends_a_stream_with_an_error(dying: httpx.Client, path: str) -> None:
    stream = dying.post(path, json={**question(path, "ab"), "stream": True}).text
    objects = frames(stream)
    assert deltas(path, objects) == ["a", "b"]
    assert stream.endswith("data: [DONE]\n\n") == ("completions" in path), "where streams have such an end"
    end = json.dumps(objects[-1])
    assert "engine_died" in end or ("response.failed" in end and "server_error" in end)
    assert not any(ENDS[path] in json.dumps(one, separators=(",", ":")) for one in objects)
    assert dying.post(path, json=question(path, "ab")).status_code == 503


@pytest.mark.parametrize("path", PROTOCOLS)
@pytest.mark.parametrize("is_stream", [False, True])
def test_a_prompt_that_is_too_long_is_refused_before_a_byte(dying: httpx.Client, path: str, is_stream: bool) -> None:
    """Nothing is cut in silence (ollama#14259), and the numbers are there."""
    answer = dying.post(path, json={**question(path, "long"), "stream": is_stream})
    assert answer.status_code == 400
    assert "context_length_exceeded" in answer.text
    assert '"n_prompt_tokens":400,"n_ctx":128' in answer.text


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


@pytest.mark.parametrize(("path", "is_stream"), [*product(PROTOCOLS, [False, True])])
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
