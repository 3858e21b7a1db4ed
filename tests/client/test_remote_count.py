"""Prompts counted by their server before they are sent, names of chats for its cache, a history that only grows."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.fake_chat_server import FakeChatServer, failure, fake_chat_server, said

from localrun.base.request import Request, Sampling
from localrun.base.views import PromptView
from localrun.chat.journal import ChatStore
from localrun.chat.turn import Answer, TurnOptions, begin_turn
from localrun.client.chat_salt import FILE_NAME
from localrun.client.remote.client import RemoteClient
from localrun.client.remote.endpoint import Endpoint

HI = Request(messages=({"role": "user", "content": "Hi"},))
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}


@pytest.fixture
def server() -> Iterator[FakeChatServer]:
    with fake_chat_server() as server:
        yield server


def client_of(server: FakeChatServer, owner: str, **pages: Any) -> RemoteClient:
    server.models = [{"id": "tiny", "owned_by": owner, "max_model_len": 1024}]
    server.pages = {f"/{name.replace('_', '-')}": page for name, page in pages.items()}
    return RemoteClient(Endpoint("lab", server.url))


def last_body(server: FakeChatServer) -> dict[str, Any]:
    return server.seen[-1].body


def test_vllm_counts_a_chat(server: FakeChatServer) -> None:
    answer = {"count": 3, "max_model_len": 1024, "tokens": [1, 2, 3], "token_strs": ["<s>", "Ġé", "Ċ"]}
    client = client_of(server, "vllm", tokenize=answer, detokenize={"prompt": "<s> é\n"})
    server.probed.clear()
    request = replace(HI, tools=(TOOL,), think="off", max_tokens=5, sampling=Sampling(temperature=0.0))
    assert client.preview(request) == PromptView(3, None)
    assert client.preview(request, pieces=True) == PromptView(3, None, (1, 2, 3), ("<s>", "Ġé", "Ċ"), "<s> é\n")
    asked = [seen.body for seen in server.probed if seen.path == "/tokenize"]
    assert asked[0] == {
        "model": "tiny",
        "messages": list(HI.messages),
        "tools": [TOOL],
        "chat_template_kwargs": {"enable_thinking": False, "reasoning_effort": "low"},
    }
    assert asked[1] == {**asked[0], "return_token_strs": True}
    assert not [seen for seen in server.seen if seen.method == "POST"], "nothing was generated"


def test_llama_cpp_renders_a_chat_and_counts_the_text(server: FakeChatServer) -> None:
    tokens = [{"id": 7, "piece": "Hi"}, {"id": 8, "piece": [226, 130]}, {"id": 9, "piece": [172]}]
    client = client_of(server, "llamacpp", apply_template={"prompt": "<u>Hi"}, tokenize={"tokens": tokens})
    assert client.preview(HI, pieces=True) == PromptView(3, None, (7, 8, 9), ("Hi", "�", "�"), "Hi€")
    assert server.probed[-1].body["content"] == "<u>Hi"
    client.preview(Request(prompt="plain"))
    assert server.probed[-1].body["content"] == "plain"


@pytest.mark.parametrize("owner", ["vllm", "llamacpp", "sglang", ""])
@pytest.mark.parametrize(
    "page", [failure(404), failure(400, "too long"), {"tokens": "x"}, {"tokens": []}, {"prompt": 7}]
)
def test_a_server_that_does_not_count_is_no_error(server: FakeChatServer, owner: str, page: Any) -> None:
    client = client_of(server, owner, tokenize=page, apply_template=page)
    assert client.preview(HI) is None
    assert client.preview(HI, pieces=True) is None


def test_ids_count_themselves(server: FakeChatServer) -> None:
    assert client_of(server, "").preview(Request(prompt_ids=(1, 2, 3))) == PromptView(3, None)


# ---- whose chat it is


@pytest.mark.parametrize(("owner", "field"), [("vllm", "cache_salt"), ("sglang", "cache_salt"), ("", None)])
def test_each_chat_has_a_name_of_its_own(server: FakeChatServer, owner: str, field: str | None, home: Path) -> None:
    def name_of(client: RemoteClient, chat_id: str) -> str | None:
        list(client.generate(replace(HI, chat_id=chat_id)))
        return last_body(server).get(field or "cache_salt")

    client = client_of(server, owner)
    names = [name_of(client, chat_id) for chat_id in ("a", "b", "", "a")]
    if field is None:
        assert names == [None] * 4
        assert not (home / FILE_NAME).exists()
        return
    assert len(set(names)) == 3
    assert name_of(client_of(server, owner), "a") == names[0] == names[3], "after a restart, too"
    assert (home / FILE_NAME).stat().st_mode & 0o077 == 0
    (home / FILE_NAME).unlink()  # another user
    assert name_of(client_of(server, owner), "a") != names[0]


def test_localruns_server_gets_it_as_the_key_of_a_conversation(server: FakeChatServer, home: Path) -> None:
    client_of(server, "hub", **{"api/version": {"version": "0.12", "localrun": "0.1"}}).generate(HI)
    list(client_of(server, "hub", **{"api/version": {"version": "0.12", "localrun": "0.1"}}).generate(HI))
    assert len(last_body(server)["prompt_cache_key"]) == 64


def test_a_server_that_refuses_the_name_is_asked_without_it_and_nothing_is_noted(
    server: FakeChatServer, home: Path
) -> None:
    client = client_of(server, "vllm")
    server.replies = [failure(400, "cache_salt is not supported"), said("Yes")]
    *_, done = client.generate(HI)
    assert "cache_salt" not in last_body(server)
    assert not [note for note in done.completion.notes if "cache_salt" in note]  # type: ignore[union-attr]


# ---- the history


def test_each_request_begins_with_all_bytes_of_the_one_before(server: FakeChatServer, home: Path) -> None:
    client = client_of(server, "vllm")
    chat = ChatStore(home).create(system="Be brief.")
    options = TurnOptions(Sampling(temperature=0.0))
    sent: list[str] = []
    for turn in range(10):
        server.replies = [said(f"<think>hm {turn}</think>Answer {turn} – “é”\n\n| a |")]
        question = chat.add_user(f"Question {turn}")
        request, _ = begin_turn(chat, question.id, options, client.info.ctx)
        answer = Answer(chat, question.id, request, client.info)
        for event in client.generate(request):
            answer.take(event)
        answer.keep()
        sent.append(json.dumps(last_body(server)["messages"]))
    for earlier, later in pairwise(sent):
        assert later.startswith(earlier.removesuffix("]"))
