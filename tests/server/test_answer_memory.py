"""A client that sends the whole conversation as text goes on from the ids that the engine had."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from localrun_testing.fake_client import FakeClient
from localrun_testing.served import serving

from localrun.base.events import Completion, Done, ModelInfo
from localrun.base.image_ids import image_ids
from localrun.base.request import LoadOptions, Request, RequestMessage
from localrun.client.local import LocalClient
from localrun.hub.catalogue import BUILTIN
from localrun.hub.resolve import resolve
from localrun.server import answer_memory
from localrun.server.answer_memory import AnswerMemory

INFO = FakeClient(LoadOptions(Path()), lambda request: "").info
ASKED = (RequestMessage(role="user", content="hi"),)
GONE_ON = (*ASKED, RequestMessage(role="assistant", content="hello"), RequestMessage(role="user", content="more"))


def done(text: str = "hello", ids: tuple[int, ...] = (7, 8)) -> Done:
    return Done(Completion("m", "", "", text, "", "stop", 2, 0, len(ids), ids, "", 0, 0), (1, 2))


def recalled(messages: tuple[RequestMessage, ...], info: ModelInfo = INFO, **more: Any) -> tuple[int, ...]:
    """What is known of a conversation after `hi` was answered with `hello`."""
    memory = AnswerMemory()
    memory.keep(INFO, Request(ASKED), done())
    return memory.recall(info, Request(messages, **more)).known_ids


def with_answer(**more: Any) -> tuple[RequestMessage, ...]:
    return (GONE_ON[0], {**GONE_ON[1], **more}, GONE_ON[2])


def test_rows_of_images_are_remembered() -> None:
    """Their ids are far larger than those of tokens."""
    memory, prompt = AnswerMemory(), (1, *image_ids(b"\1" * 16, 3), 2)
    memory.keep(INFO, Request(ASKED), replace(done(), prompt_ids=prompt))
    assert memory.recall(INFO, Request(GONE_ON)).known_ids == (*prompt, 7, 8)


@pytest.mark.parametrize(
    "messages",
    [
        GONE_ON,
        GONE_ON[:2],
        with_answer(content="hello\n", reasoning_content="hm", id="msg_1"),
        (*GONE_ON, RequestMessage(role="assistant", content="of another"), RequestMessage(role="user", content="x")),
    ],
)
def test_our_own_answer_is_known_again(messages: tuple[RequestMessage, ...]) -> None:
    assert recalled(messages) == (1, 2, 7, 8)


@pytest.mark.parametrize(
    "messages",
    [
        ASKED,
        with_answer(content="hello!"),
        with_answer(tool_calls=[{"id": "1", "function": {"name": "f", "arguments": "{}"}}]),
        (RequestMessage(role="system", content="x"), *GONE_ON),
        (),
    ],
)
def test_another_conversation_knows_nothing(messages: tuple[RequestMessage, ...]) -> None:
    assert recalled(messages) == ()


def test_another_model_or_other_tools_know_nothing() -> None:
    assert recalled(GONE_ON, replace(INFO, path="/another")) == ()
    assert recalled(GONE_ON, replace(INFO, fingerprint="another")) == ()
    assert recalled(GONE_ON, tools=({"type": "function"},)) == ()


def test_the_latest_answer_counts_and_lone_surrogates_do_no_harm() -> None:
    memory = AnswerMemory()
    memory.keep(INFO, Request(ASKED), done("\ud800", (3,)))
    memory.keep(INFO, Request(ASKED), done("\ud800", (4,)))
    messages = (*ASKED, RequestMessage(role="assistant", content="\ud800"))
    assert memory.recall(INFO, Request(messages)).known_ids == (1, 2, 4)
    later = (*messages, RequestMessage(role="user", content="x"))
    memory.keep(INFO, Request(later), done("y", (5,)))
    assert memory.recall(INFO, Request((*later, RequestMessage(role="assistant", content="y")))).known_ids == (1, 2, 5)


@pytest.mark.parametrize("limit", ["MAX_ANSWERS", "MAX_IDS"])
def test_the_oldest_are_forgotten(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(answer_memory, limit, {"MAX_ANSWERS": 2, "MAX_IDS": 8}[limit])
    memory = AnswerMemory()
    for text in "abc":
        memory.keep(INFO, Request(ASKED), done(text))
    known = [
        memory.recall(INFO, Request((*ASKED, RequestMessage(role="assistant", content=text)))).known_ids
        for text in "abc"
    ]
    assert known == [(), (1, 2, 7, 8), (1, 2, 7, 8)]


def test_known_ids_reach_the_engine(http: httpx.Client, fake: FakeClient) -> None:
    """Whatever a tokenizer would make of the answer."""
    messages = [{"role": "user", "content": "~~hello"}]
    http.post("/v1/chat/completions", json={"messages": messages})
    more = [*messages, {"role": "assistant", "content": "hello"}, {"role": "user", "content": "x"}]
    http.post("/v1/chat/completions", json={"messages": more})
    assert fake.requests[-1].known_ids == (1000, 1001, 1002, *range(7))


@pytest.fixture(scope="module")
def builtin() -> Iterator[httpx.Client]:
    options = LoadOptions(Path(resolve(BUILTIN).path), name=BUILTIN, ctx=1024, threads=1, parallel=1)
    with (
        LocalClient(options) as client,
        serving(lambda choice: client) as running,
        httpx.Client(base_url=running.url, timeout=60) as http,
    ):
        yield http


def test_reasoning_or_spelling_lost_on_replay_costs_nothing(builtin: httpx.Client) -> None:
    """A second turn has all of the first in the cache: the prompt, and the answer as the model wrote it
    (opencode#19081, llama.cpp#22746)."""

    def ask(*texts: str) -> Any:
        roles = ("user", "assistant", "user")
        messages = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=False)]
        body = {"messages": messages, "max_tokens": 24, "temperature": 2, "top_p": 1, "top_k": 0, "min_p": 0, "seed": 3}
        answer = builtin.post("/v1/chat/completions", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    first = ask("Say something odd.")
    second = ask("Say something odd.", first["choices"][0]["message"]["content"], "Go on.")
    cached = second["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert cached >= first["usage"]["total_tokens"] - 1, "the last token of an answer is computed with the next turn"


def test_a_chain_of_responses_reads_nothing_again(builtin: httpx.Client) -> None:
    """What a response goes on from is in the cache (LM Studio's bug tracker, #2074)."""
    previous, held = None, 0
    for text in ("Say something odd.", "Go on.", "And an end."):
        body = {"input": text, "previous_response_id": previous, "max_output_tokens": 12, "temperature": 2, "top_k": 0}
        answer = builtin.post("/v1/responses", json=body).json()
        assert answer["usage"]["input_tokens_details"]["cached_tokens"] >= held - 1
        previous, held = answer["id"], answer["usage"]["total_tokens"]


def test_conversations_that_take_turns_all_stay_cached(builtin: httpx.Client) -> None:
    """However few answers are computed at once (llama.cpp#22921), and titles that a client asks for between them push
    nothing out (open-webui#28413, opencode#27110)."""
    chats = [[{"role": "user", "content": f"Tell me about the {thing}."}] for thing in ("sea", "moon", "wind")]
    held = [0] * len(chats)
    for _ in range(2):
        for number, chat in enumerate(chats):
            body = {"messages": chat, "max_tokens": 12, "temperature": 2, "top_k": 0, "seed": 5}
            answer = builtin.post("/v1/chat/completions", json=body).json()
            assert answer["usage"]["prompt_tokens_details"]["cached_tokens"] >= held[number] - 1
            held[number] = answer["usage"]["total_tokens"]
            chat += [answer["choices"][0]["message"], {"role": "user", "content": "Go on."}]
            title = {"role": "system", "content": "Write a title of three words."}
            asked = {"messages": [title, *chat], "max_tokens": 4}
            builtin.post("/v1/chat/completions", json=asked, headers={"x-localrun-priority": "low"})


def test_tokens_are_counted_as_they_will_be_read(builtin: httpx.Client) -> None:
    first = builtin.post("/v1/responses", json={"input": "Hello!", "max_output_tokens": 9, "temperature": 2}).json()
    body = {"input": "And then?", "previous_response_id": first["id"], "max_output_tokens": 1}
    counted = builtin.post("/v1/responses/input_tokens", json=body).json()
    read = builtin.post("/v1/responses", json=body).json()["usage"]
    assert counted["input_tokens"] == read["input_tokens"]
    assert counted["localrun"]["cached"] == read["input_tokens_details"]["cached_tokens"]
