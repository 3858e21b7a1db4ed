"""Ollama's protocol, as Ollama's own client reads it."""

import contextlib
import json
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import ollama
import pytest
from localrun_testing.fake_client import FakeClient
from localrun_testing.fake_hub import FakeHub, FakeRepo, Trouble
from localrun_testing.served import Served, serving
from localrun_testing.waiting import PATIENCE, until

from localrun.base.request import LoadOptions
from localrun.base.resources import resource
from localrun.client.local import LocalClient
from localrun.hub.downloads.progress import CancelledError, Control
from localrun.server.ollama import manage as ollama_manage
from localrun.server.options import ServerOptions

HI: Any = [{"role": "user", "content": "hi"}]
BUILTIN = Path(resource("localrun/builtin/localrun-tiny.gguf"))


@pytest.fixture(scope="module")
def client(served: Served) -> ollama.Client:
    return ollama.Client(host=served.url)


@pytest.fixture(scope="module")
def real() -> Iterator[ollama.Client]:
    """A client of the built-in model."""
    with LocalClient(LoadOptions(BUILTIN, name="builtin", ctx=512)) as engine, serving(lambda choice: engine) as served:
        yield ollama.Client(host=served.url)


def seen(fake: FakeClient, http: httpx.Client, path: str = "chat", **body: Any) -> Any:
    """The request that the engine is given for a body."""
    usual = {"messages": HI} if path == "chat" else {"prompt": "hi"}
    answer = http.post(f"/api/{path}", json={"stream": False, **usual, **body})
    assert answer.status_code == 200, answer.text
    return fake.requests[-1]


def test_whole_chat(client: ollama.Client) -> None:
    answer = client.chat("builtin", [{"role": "user", "content": "~~hello"}])
    assert (answer.message.content, answer.message.thinking, answer.done_reason) == ("hello", "~~", "stop")
    assert (answer.prompt_eval_count, answer.eval_count, answer.model, answer.done) == (3, 7, "builtin", True)


def test_streams_say_what_whole_answers_say(client: ollama.Client) -> None:
    pieces = list(client.chat("builtin", [{"role": "user", "content": "~a b"}], stream=True))
    assert "".join(piece.message.content or "" for piece in pieces) == "a b"
    assert "".join(piece.message.thinking or "" for piece in pieces) == "~"
    assert [piece.done for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    written = list(client.generate("builtin", "~a b", stream=True))
    assert "".join(piece.response or "" for piece in written) == "a b"
    assert written[-1].done_reason == client.generate("builtin", "~a b").done_reason == "stop"


def test_a_stream_is_lines_of_json_and_the_usual_form(http: httpx.Client) -> None:
    answer = http.post("/api/chat", json={"messages": HI})
    assert answer.headers["content-type"] == "application/x-ndjson"
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert lines[-1]["done"]
    assert {"total_duration", "load_duration", "prompt_eval_count", "eval_count", "eval_duration"} <= lines[-1].keys()


def test_durations_are_nanoseconds_and_cached_tokens_are_of_the_prompt(real: ollama.Client) -> None:
    first = real.chat("builtin", HI, options={"num_predict": 4, "temperature": 0})
    again = real.chat("builtin", HI, options={"num_predict": 4, "temperature": 0})
    assert first.prompt_eval_count == again.prompt_eval_count
    assert again.message.content == first.message.content
    for answer in (first, again):
        parts = (answer.load_duration or 0) + (answer.prompt_eval_duration or 0) + (answer.eval_duration or 0)
        assert 1_000 < parts <= (answer.total_duration or 0)


def test_logprobs_are_those_of_openais_chats(real: ollama.Client) -> None:
    asked: Any = {"logprobs": True, "top_logprobs": 2, "options": {"num_predict": 6, "seed": 3}}
    whole = real.chat("builtin", HI, **asked)
    pieces = list(real.chat("builtin", HI, stream=True, **asked))
    generated = real.generate("builtin", HI[0]["content"], **asked)
    body = {"messages": HI, "logprobs": True, "top_logprobs": 2, "max_tokens": 6, "seed": 3}
    chat = real._client.post("/v1/chat/completions", json=body).json()["choices"][0]["logprobs"]["content"]
    told = [(one["token"], one["logprob"], [other["token"] for other in one["top_logprobs"]]) for one in chat]
    for said in (whole.logprobs, generated.logprobs, [one for piece in pieces for one in piece.logprobs or ()]):
        assert [(one.token, one.logprob, [other.token for other in one.top_logprobs or ()]) for one in said] == told
    assert real.chat("builtin", HI, options={"num_predict": 2}).logprobs is None


def test_num_ctx_is_a_limit_of_the_request_and_loads_nothing(real: ollama.Client) -> None:
    """Clients send another one with each request, and Ollama loads anew (Aider#3594)."""
    n_prompt = real.chat("builtin", HI, options={"num_predict": 1}).prompt_eval_count or 0
    short = real.chat("builtin", HI, options={"num_ctx": n_prompt + 3, "temperature": 0})
    assert (short.eval_count, short.done_reason) == (3, "length")
    assert real.chat("builtin", HI, options={"num_ctx": 1 << 20, "num_predict": 2}).eval_count == 2
    with pytest.raises(ollama.ResponseError) as caught:
        real.chat("builtin", HI, options={"num_ctx": 2})
    assert caught.value.status_code == 400
    assert real.ps().models[0].context_length == 512


def test_a_context_goes_on_with_its_chat(real: ollama.Client) -> None:
    options = {"num_predict": 6, "temperature": 0}
    first = real.generate("builtin", "My name is Ada.", options=options)
    second = real.generate("builtin", "What is my name?", context=first.context, options=options)
    assert list(second.context or ())[: len(first.context or ())] == list(first.context or ())
    turns: Any = [
        {"role": "user", "content": "My name is Ada."},
        {"role": "assistant", "content": first.response},
        {"role": "user", "content": "What is my name?"},
    ]
    assert real.chat("builtin", turns, options=options).message.content == second.response
    with pytest.raises(ollama.ResponseError, match="context"):
        real.generate("builtin", "hi", context=[1, 2, 3])


def test_fields_reach_the_engine(fake: FakeClient, http: httpx.Client) -> None:
    options = {
        "temperature": 0.5,
        "top_k": 7,
        "top_p": 0.9,
        "min_p": 0.1,
        "repeat_penalty": 1.2,
        "seed": 3,
        "stop": ["a"],
        "num_ctx": 512,
        "num_predict": 5,
        "mirostat": 1,
    }
    request = seen(fake, http, options=options)
    sampling = request.sampling
    assert (sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p) == (0.5, 7, 0.9, 0.1)
    assert (sampling.repeat_penalty, sampling.seed, request.stop) == (1.2, 3, ("a",))
    assert (request.ctx, request.max_tokens) == (512, 5)
    told = http.post("/api/chat", json={"messages": HI, "stream": False, "options": options, "truncate": True}).json()
    assert told["localrun"]["ignored"] == ["truncate", "options.mirostat"]
    for unlimited in (-1, -2, None):
        assert seen(fake, http, options={"num_predict": unlimited}).max_tokens is None


@pytest.mark.parametrize(
    ("wish", "think"), [(True, "on"), (False, "off"), ("low", "on"), ("high", "on"), (None, "auto")]
)
def test_every_form_of_think_is_taken(fake: FakeClient, http: httpx.Client, wish: Any, think: str) -> None:
    assert seen(fake, http, think=wish).think == think
    assert seen(fake, http, "generate", think=wish).think == think


def test_messages_keep_their_calls_and_tools_their_schemas(fake: FakeClient, http: httpx.Client) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"z": {"oneOf": []}, "a": 1}}}
    call = {"id": "c1", "function": {"index": 0, "name": "f", "arguments": {"b": 1}}}
    messages = [
        *HI,
        {"role": "assistant", "content": "", "thinking": "hm", "tool_calls": [call]},
        {"role": "tool", "content": "1", "tool_name": "f", "tool_call_id": "c1"},
    ]
    request = seen(fake, http, messages=messages, tools=[tool], images=[])
    assert request.messages[1:] == (
        {"role": "assistant", "content": "", "reasoning_content": "hm", "tool_calls": [{"type": "function", **call}]},
        {"role": "tool", "content": "1", "name": "f", "tool_call_id": "c1"},
    )
    assert request.tools == (tool,)
    assert list(request.tools[0]["function"]["parameters"]) == ["z", "a"]


def test_an_answer_that_the_client_begins_is_gone_on_with(fake: FakeClient, http: httpx.Client) -> None:
    """As Ollama does. One that begins with nothing before it is a message like any other."""
    begun = {"role": "assistant", "content": "The best answer is ("}
    assert seen(fake, http, messages=[*HI, begun]).continues
    assert not seen(fake, http, messages=[begun]).continues
    assert not seen(fake, http, messages=[*HI, {**begun, "content": ""}]).continues


def test_generate_renders_or_is_raw(fake: FakeClient, http: httpx.Client) -> None:
    request = seen(fake, http, "generate", system="Be brief.")
    assert [message["role"] for message in request.messages] == ["system", "user"]
    context = http.post("/api/generate", json={"prompt": "a", "system": "Be brief.", "stream": False}).json()["context"]
    for system, used in (("Be long.", "Be long."), ("", "Be brief.")):
        request = seen(fake, http, "generate", system=system, context=context)
        assert [message["content"] for message in request.messages] == [used, "a", "a", "hi"]
    assert seen(fake, http, "generate", raw=True, system="Be brief.").prompt == "hi"


@pytest.mark.parametrize(
    ("path", "field", "value"),
    [
        ("chat", "messages[0].role", [{"role": "wizard"}]),
        ("chat", "messages[0].images", [{"role": "user", "content": "", "images": ["eA=="]}]),
        ("chat", "logprobs", "yes"),
        ("chat", "top_logprobs", 2),
        ("chat", "think", "loud"),
        ("chat", "keep_alive", "soon"),
        ("chat", "keep_alive", "1e99h"),
        ("chat", "options.temperature", {"temperature": "hot"}),
        ("chat", "options.num_predict", {"num_predict": 0}),
        ("chat", "options.num_ctx", {"num_ctx": 0}),
        ("generate", "template", "{{ .Prompt }}"),
        ("generate", "suffix", "x"),
        ("generate", "images", ["eA=="]),
        ("generate", "context", [1]),
        ("generate", "context", ["x"]),
        ("generate", "raw", "yes"),
    ],
)
def test_wrong_fields_are_named(http: httpx.Client, path: str, field: str, value: object) -> None:
    outer = field.partition(".")[0].partition("[")[0]
    answer = http.post(f"/api/{path}", json={"messages": HI, "prompt": "hi", outer: value})
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(field)


@pytest.mark.parametrize("name", ["builtin", "builtin:latest", "BuiltIn", "BUILTIN:Latest"])
def test_names_with_and_without_tag_in_any_case(client: ollama.Client, name: str) -> None:
    assert client.chat(name, HI).message.content == "hi"
    assert client.show(name).details
    assert client.pull(name).status == "success"
    assert [step.status for step in client.pull(name, stream=True)] == ["success"]


@pytest.mark.parametrize("name", ["no-such-model", "../x", "/etc/passwd", str(BUILTIN), "https://x/y"])
def test_no_other_name_is_a_model(client: ollama.Client, name: str) -> None:
    for call in (lambda: client.chat(name, HI), lambda: client.show(name), lambda: client.embed(name, "x")):
        with pytest.raises(ollama.ResponseError) as caught:
            call()
        assert caught.value.status_code == 404
    with pytest.raises(ollama.ResponseError, match="localrun pull") as caught:
        client.pull(name)
    assert caught.value.status_code == 403


def test_models_are_listed_shown_and_told_when_loaded(real: ollama.Client) -> None:
    (builtin,) = [model for model in real.list().models if (model.model or "").startswith("builtin")]
    assert builtin.size == BUILTIN.stat().st_size
    assert builtin.details
    assert (builtin.details.format, builtin.details.family) == ("gguf", "llama")
    assert (builtin.details.quantization_level, builtin.details.parameter_size) == ("Q8_0", "6.82M")
    shown = real.show(str(builtin.model))
    assert shown.modelinfo
    assert shown.modelinfo["llama.context_length"] > 0
    assert shown.capabilities == ["completion"]
    assert "messages" in (shown.template or "")
    real.chat("builtin", HI, options={"num_predict": 1})
    (loaded,) = real.ps().models
    assert (loaded.model, loaded.digest, loaded.size_vram) == (builtin.model, builtin.digest, 0)


def test_empty_requests_load_and_unload() -> None:
    with serving(lambda choice: FakeClient(LoadOptions(Path()), lambda request: "yes")) as served:
        client = ollama.Client(host=served.url)
        slot = served.service.models.slot
        assert client.generate("builtin", "", keep_alive=0).done_reason == "unload"
        assert slot.client is None
        assert client.chat("builtin", [], keep_alive=-1).done_reason == "load"
        assert slot.client is not None
        assert served.service.models.unload_at is None
        assert client.ps().models[0].expires_at
        for keep_alive in ("5m", 300, 2.5):
            client.generate("builtin", "hi", keep_alive=keep_alive)
            until(lambda: served.service.models.unload_at is not None)
        assert client.chat("builtin", [], keep_alive=0).done_reason == "unload"
        until(lambda: slot.client is None)
        assert client.ps().models == []


def test_a_list_says_what_each_model_can_do(http: httpx.Client) -> None:
    """Editors look there alone whether a model takes tools (ollama/ollama#16969)."""
    (builtin,) = [row for row in http.get("/api/tags").json()["models"] if row["name"].startswith("builtin")]
    shown = http.post("/api/show", json={"model": builtin["name"]}).json()
    assert builtin["capabilities"] == shown["capabilities"] == ["completion"]
    assert builtin["details"]["context_length"] == shown["model_info"]["llama.context_length"]


def test_what_tells_clients_who_is_there(http: httpx.Client) -> None:
    assert http.get("/").text == "Ollama is running"
    assert http.head("/").status_code == 200
    version = http.get("/api/version").json()
    assert tuple(map(int, version["version"].split("."))) > (0, 14, 0)
    assert version["localrun"]
    assert http.head("/api/tags").status_code == 200
    assert http.get("/api/status").json()["cloud"]["disabled"], "everything is computed here"


@pytest.mark.parametrize("path", ["/api/embed", "/api/embeddings", "/v1/embeddings"])
def test_there_are_no_embeddings(http: httpx.Client, path: str) -> None:
    answer = http.post(path, json={"model": "builtin", "input": "x", "prompt": "x"})
    assert answer.status_code == 400
    assert "builtin answers with text; it makes no embeddings" in answer.text
    assert "model_not_supported" in answer.text


@pytest.mark.parametrize("path", ["create", "push", "copy", "me", "blobs/sha256:0"])
def test_what_is_not_there_says_so(http: httpx.Client, path: str) -> None:
    answer = http.post(f"/api/{path}", json={"model": "x"})
    assert (answer.status_code, "error" in answer.json()) == (501, True)


def test_delete_needs_manage_and_takes_only_what_is_ours(client: ollama.Client) -> None:
    with pytest.raises(ollama.ResponseError, match="localrun rm builtin") as caught:
        client.delete("builtin")
    assert caught.value.status_code == 403


def test_manage_downloads_and_deletes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    for name in ("HF_HUB_OFFLINE", "LOCALRUN_OFFLINE", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    files = {"tiny-Q8_0.gguf": BUILTIN.read_bytes()}
    fake = FakeClient(LoadOptions(Path()), lambda request: "yes")
    with FakeHub({"org/tiny": files}) as hub, serving(lambda c: fake, ServerOptions(port=0, manage=True)) as served:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        client = ollama.Client(host=served.url)
        steps = list(client.pull("org/tiny", stream=True))
        assert (steps[0].status, steps[-1].status) == ("pulling manifest", "success")
        assert any(step.total and step.completed == step.total for step in steps)
        assert any((model.model or "").startswith("org/tiny") for model in client.list().models)
        for name in ("/etc/passwd", "https://x/y", str(BUILTIN), "builtin"):
            with pytest.raises(ollama.ResponseError):
                client.delete(name)
        assert client.delete("org/tiny").status == "success"
        assert not any((model.model or "").startswith("org/tiny") for model in client.list().models)
        with pytest.raises(ollama.ResponseError) as caught:
            client.pull("org/none")
        assert caught.value.status_code == 404
        with pytest.raises(ollama.ResponseError) as caught:
            client.pull("https://x/y")
        assert caught.value.status_code == 400
        with pytest.raises(ollama.ResponseError, match="named"):
            list(client.pull("https://x/y", stream=True))


def no_network(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # where nobody listens


def gated(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.repos["org/tiny"] = FakeRepo(hub.repos["org/tiny"].files, gated=True)


def busy(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.trouble["api"] = [Trouble("rate-limit")]


def other_bytes(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.trouble["tiny-Q8_0.gguf"] = [Trouble("flip", at=7_000_000)]


def no_disk(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage("/")._replace(free=1 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)


@pytest.mark.parametrize(
    ("trouble", "status", "said"),
    [
        (no_network, 503, "check the network"),
        (gated, 403, "accept a licence"),
        (busy, 503, "in 77 s"),
        (other_bytes, 502, "checksum"),
        (no_disk, 507, "free some space"),
    ],
)
def test_why_nothing_was_pulled(
    trouble: Callable[[FakeHub, pytest.MonkeyPatch], None],
    status: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A stream, which has begun by then, ends with the same sentence."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    for name in ("HF_HUB_OFFLINE", "LOCALRUN_OFFLINE", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    fake = FakeClient(LoadOptions(Path()), lambda request: "yes")
    files = {"tiny-Q8_0.gguf": BUILTIN.read_bytes()}
    with FakeHub({"org/tiny": files}) as hub, serving(lambda c: fake, ServerOptions(port=0, manage=True)) as served:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        trouble(hub, monkeypatch)
        client = ollama.Client(host=served.url)
        with pytest.raises(ollama.ResponseError, match=said) as caught:
            client.pull("org/tiny")
        assert caught.value.status_code == status
        with pytest.raises(ollama.ResponseError, match=said):
            list(client.pull("org/tiny", stream=True))


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
def test_a_client_that_leaves_ends_its_download(monkeypatch: pytest.MonkeyPatch, is_stream: bool) -> None:
    begun, ended = threading.Event(), threading.Event()

    def pull(name: str, tell: Callable[[Any], None], control: Control) -> None:
        begun.set()
        with contextlib.suppress(CancelledError):
            while True:
                tell({"status": "pulling a file"})
                control.pause(0.01)
        ended.set()

    monkeypatch.setattr(ollama_manage, "_pull", pull)
    fake = FakeClient(LoadOptions(Path()), lambda request: "yes")
    with serving(lambda choice: fake, ServerOptions(port=0, manage=True)) as served:
        body = {"model": "org/tiny", "stream": is_stream}
        call = httpx.stream("POST", f"{served.url}/api/pull", json=body, timeout=0.5)
        with contextlib.suppress(httpx.ReadTimeout), call as answer:
            next(answer.iter_lines())
        assert begun.wait(PATIENCE)
        assert ended.wait(PATIENCE)
