"""Probing: what each engine says of itself on its own pages, as recorded from real ones, and what it leaves open."""

import base64
import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from typing import Any

import PIL.Image
import pytest
from localrun_testing.fake_chat_server import FakeChatServer, Reply, failure, fake_chat_server

from localrun.base.constraint import of_schema
from localrun.base.errors import UsageError
from localrun.base.request import Request, RequestImage
from localrun.client.remote.client import RemoteClient
from localrun.client.remote.endpoint import Endpoint
from localrun.client.remote.models import list_models
from localrun.client.remote.probe import MOST_ASKED, probe_all
from localrun.client.remote.profile import EngineProfile

KEY = "sk-canary-123456"
HI = Request(messages=({"role": "user", "content": "Hi"},))
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
IMAGE = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]}

VLLM_MODEL = {"id": "smol", "owned_by": "vllm", "root": "/x", "parent": None, "max_model_len": 1024}
# llama-server, build 1 of 0c1e570, with a chat template that knows no tools
LLAMA_CPP_MODEL = {
    "id": "tiny",
    "owned_by": "llamacpp",
    "meta": {"vocab_type": 2, "n_vocab": 2560, "n_ctx": 1024, "n_ctx_train": 2048},
}
LLAMA_CPP = {
    "/props": {
        "default_generation_settings": {"params": {"temperature": 0.5}, "n_ctx": 1024},
        "total_slots": 2,
        "modalities": {"vision": False, "video": False, "audio": False},
        "chat_template_caps": {"supports_tool_calls": False, "supports_tools": False, "supports_system_role": True},
        "build_info": "b1-0c1e570",
    }
}
# SGLang, from its source: all options, among them its keys
SGLANG: dict[str, dict[str, Any]] = {
    "/server_info": {
        "version": "0.5.23",
        "api_key": KEY,
        "tokenizer_path": "Qwen/Qwen3-4B",
        "tool_call_parser": "qwen25",
        "reasoning_parser": None,
        "grammar_backend": "xgrammar",
        "enable_lora": False,
        "is_embedding": False,
        "context_length": None,
    },
    "/model_info": {"model_path": "Qwen/Qwen3-4B", "has_image_understanding": False},
}


@pytest.fixture
def server() -> Iterator[FakeChatServer]:
    with fake_chat_server() as server:
        yield server


def profile_of(server: FakeChatServer, model: dict[str, Any], pages: dict[str, Any]) -> EngineProfile:
    server.models, server.pages = [model], pages
    endpoint = Endpoint("lab", server.url, KEY)
    return probe_all(endpoint, list_models(endpoint))[0]


def test_vllm_says_its_version_and_little_else(server: FakeChatServer) -> None:
    found = profile_of(server, VLLM_MODEL, {"/version": {"version": "0.32.0"}})
    assert (found.title, found.ctx, found.tokenizer, dict(found.abilities)) == ("vLLM 0.32.0", 1024, "", {})
    shown = {"/version": {"version": "0.32.0"}, "/tokenizer_info": {"tokenizer_class": "GPT2Tokenizer"}}
    adapter = profile_of(server, {**VLLM_MODEL, "parent": "smol"}, shown)
    assert (adapter.tokenizer, dict(adapter.abilities)) == ("GPT2Tokenizer", {"LoRA": True})


@pytest.mark.parametrize(("policy", "heeds"), [("priority", True), ("fcfs", False), (7, None)])
def test_the_order_of_vllms_queue_as_far_as_it_is_said(server: FakeChatServer, policy: Any, heeds: bool | None) -> None:
    options = {"vllm_config": {"scheduler_config": {"policy": policy}}, "vllm_env": {}}
    found = profile_of(server, VLLM_MODEL, {"/server_info?config_format=json": options})
    assert found.abilities.get("priorities") is heeds


@pytest.mark.parametrize(("counted", "sees"), [("image_url", True), ("text", False), ("", None)])
def test_a_model_of_vllm_sees_if_the_tokens_of_an_image_are_counted(
    server: FakeChatServer, counted: str, sees: bool | None
) -> None:
    def tokenize(body: Any) -> Any:
        (part,) = body["messages"][0]["content"]
        return {"count": 9} if part["type"] == counted else failure(400, "At most 0 image(s) may be provided")

    found = profile_of(server, VLLM_MODEL, {"/tokenize": tokenize})
    assert found.abilities.get("images") is sees


def test_llama_cpp(server: FakeChatServer) -> None:
    found = profile_of(server, LLAMA_CPP_MODEL, LLAMA_CPP)
    assert (found.title, found.ctx, found.tokenizer) == ("llama.cpp b1-0c1e570", 1024, "BPE")
    assert found.abilities == {"tools": False, "images": False}
    assert found.named(None) == "schemas, reasoning, logprobs, LoRA, embeddings, priorities"


def test_the_context_of_the_training_is_not_that_of_the_server(server: FakeChatServer) -> None:
    older = {"id": "tiny", "owned_by": "llamacpp", "meta": {"n_ctx_train": 2048}}
    assert profile_of(server, older, LLAMA_CPP).ctx == 1024
    assert profile_of(server, older, {}).ctx == 0


def test_sglang(server: FakeChatServer) -> None:
    model = {"id": "q", "owned_by": "sglang", "max_model_len": 40960}
    found = profile_of(server, model, SGLANG)
    assert (found.title, found.ctx, found.tokenizer) == ("SGLang 0.5.23", 40960, "Qwen/Qwen3-4B")
    assert found.abilities == {"tools": True, "schemas": True, "images": False, "LoRA": False, "embeddings": False}
    assert KEY not in repr(found)
    older = {name.replace("/", "/get_"): page for name, page in SGLANG.items()}
    assert profile_of(server, model, older) == found


def test_ollama_and_localrun_say_it_of_each_model(server: FakeChatServer) -> None:
    can = {"a": ["completion", "tools"], "b": ["completion", "vision", "thinking"]}
    server.models = [{"id": "a", "owned_by": "library"}, {"id": "b", "owned_by": "library"}]
    server.pages = {
        "/api/version": {"version": "0.12.0"},
        "/api/show": lambda body: {"capabilities": can[body["model"]], "model_info": {"tokenizer.ggml.model": "gpt2"}},
    }
    endpoint = Endpoint("lab", server.url)
    found = probe_all(endpoint, list_models(endpoint))
    assert [(one.title, one.named(True)) for one in found] == [
        ("Ollama 0.12.0", "tools"),
        ("Ollama 0.12.0", "images, reasoning"),
    ]
    server.pages["/api/version"] = {"version": "0.12.0", "localrun": "1.0"}
    assert probe_all(endpoint, list_models(endpoint))[1].title == "localrun 1.0"


def test_many_models_are_not_all_asked_for(server: FakeChatServer) -> None:
    server.models = [{"id": str(n), "owned_by": "library"} for n in range(100)]
    server.pages = {"/api/version": {"version": "0.12.0"}, "/api/show": {"capabilities": ["tools"]}}
    endpoint = Endpoint("lab", server.url)
    found = probe_all(endpoint, list_models(endpoint))
    assert [bool(one.abilities) for one in found] == [n < MOST_ASKED for n in range(100)]


@pytest.mark.parametrize("owner", ["", "vllm", "llamacpp", "sglang"])
@pytest.mark.parametrize(
    "page",
    [
        failure(401, "no"),
        failure(500, "no"),
        Reply((b"<html>",)),
        Reply((b"[" * 100_000,)),
        Reply((b'{"version": ',), end="reset"),
        {
            "version": ["\x1b[2J"],
            "modalities": 7,
            "chat_template_caps": [],
            "capabilities": "tools",
            "tokenizer_path": 5,
        },
    ],
)
def test_pages_that_are_guarded_missing_or_odd_say_nothing(server: FakeChatServer, owner: str, page: Any) -> None:
    names = ("/version", "/props", "/server_info", "/get_server_info", "/model_info", "/api/version", "/api/show")
    found = profile_of(server, {"id": "tiny", "owned_by": owner}, dict.fromkeys(names, page))
    assert (found.version, found.tokenizer, found.ctx) == ("", "", 0)
    assert found.named(None).count(",") >= 3


def test_words_of_a_server_are_cleaned(server: FakeChatServer) -> None:
    found = profile_of(server, {"id": "t", "owned_by": "vllm"}, {"/version": {"version": "\x1b[2J" + "9" * 500}})
    assert "\x1b" not in found.title
    assert len(found.title) < 100


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (replace(HI, tools=(TOOL,)), "cannot call tools"),
        (replace(HI, messages=(IMAGE,)), "sees no images"),
        (replace(HI, think="on"), "does not think"),
    ],
)
def test_what_an_engine_cannot_do_is_not_asked_of_it(server: FakeChatServer, request_: Request, words: str) -> None:
    server.models = [{"id": "a"}]
    server.pages = {"/api/version": {"version": "0.12.0"}, "/api/show": {"capabilities": ["completion"]}}
    client = RemoteClient(Endpoint("lab", server.url))
    with pytest.raises(UsageError, match=f"Ollama 0.12.0 says that this model {words}"):
        client.generate(request_)
    assert not [seen for seen in server.seen if seen.method == "POST"]
    assert list(client.generate(HI))


def test_schemas_without_a_grammar_backend(server: FakeChatServer) -> None:
    server.models = [{"id": "q", "owned_by": "sglang"}]
    server.pages = {"/server_info": {**SGLANG["/server_info"], "grammar_backend": "none"}}
    with pytest.raises(UsageError, match="cannot be held to a schema"):
        RemoteClient(Endpoint("lab", server.url)).generate(replace(HI, constraint=of_schema({"type": "object"})))


def test_what_is_not_said_is_asked_for(server: FakeChatServer) -> None:
    list(RemoteClient(Endpoint("lab", server.url)).generate(replace(HI, tools=(TOOL,), think="on")))
    assert json.dumps(server.seen[-1].body).count("enable_thinking") == 1


def test_images_go_as_data_where_the_engine_says_that_the_model_sees(server: FakeChatServer) -> None:
    """Without their metadata in the place of their part; where it says nothing, none is sent."""
    files = []
    for comment in (None, b"at home"):
        file = BytesIO()
        PIL.Image.new("RGB", (4, 5)).save(file, "JPEG", **({} if comment is None else {"comment": comment}))
        files.append(file.getvalue())
    bare, data = files
    image = RequestImage(hashlib.sha256(data).hexdigest(), 4, 5, data=data)
    part = {"type": "image", "name": "cat.png", "sha256": image.sha256, "width": 4, "height": 5, "media_type": ""}
    text = {"type": "text", "text": "what?"}
    asked = replace(HI, messages=({"role": "user", "content": [part, text]},), images=(image,))
    server.models = [{"id": "a"}]
    server.pages = {"/api/version": {"version": "0.12.0"}, "/api/show": {"capabilities": ["completion", "vision"]}}
    client = RemoteClient(Endpoint("lab", server.url))
    assert client.info.why_blind == ""
    list(client.generate(asked))
    seen, words = server.seen[-1].body["messages"][0]["content"]
    head, _, encoded = seen["image_url"]["url"].partition(",")
    assert (head, base64.b64decode(encoded), words) == ("data:image/jpeg;base64", bare, text)
    server.pages = {}
    silent = RemoteClient(Endpoint("lab", server.url))
    assert "does not say whether" in silent.info.why_blind
    with pytest.raises(UsageError, match="does not say whether this model sees images"):
        silent.generate(asked)
