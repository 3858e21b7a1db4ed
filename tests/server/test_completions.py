"""Raw completions and logprobs, as OpenAI's client and lm-eval read them, over the built-in model."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from localrun_testing.served import Served, serving

from localrun.base.events import PromptLogprobs
from localrun.base.request import LoadOptions, Request
from localrun.base.resources import resource
from localrun.client.local import LocalClient
from localrun.client.worker.client import WorkerClient

BUILTIN = Path(resource("builtin/localrun-tiny.gguf"))


@pytest.fixture(scope="module")
def engine() -> Iterator[LocalClient]:
    with LocalClient(LoadOptions(BUILTIN, ctx=512)) as client:
        yield client


@pytest.fixture(scope="module")
def real(engine: LocalClient) -> Iterator[Served]:
    with serving(lambda choice: engine) as running:
        yield running


@pytest.fixture(scope="module")
def client(real: Served) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{real.url}/v1", api_key="any", max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def http(real: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=real.url, timeout=60) as client:
        yield client


@pytest.mark.parametrize("prompt", ["Hello é 漢", [598, 5, 768]], ids=["text", "ids"])
def test_a_stream_is_the_whole_answer(client: openai.OpenAI, prompt: Any) -> None:
    asked: dict[str, Any] = {"model": "", "prompt": prompt, "max_tokens": 6, "seed": 3, "logprobs": 2, "echo": True}
    whole = client.completions.create(**asked).choices[0]
    chunks = [chunk.choices[0] for chunk in client.completions.create(**asked, stream=True)]
    assert "".join(chunk.text for chunk in chunks) == whole.text
    assert whole.logprobs
    for field in ("tokens", "token_logprobs", "top_logprobs", "text_offset"):
        streamed = [value for chunk in chunks if chunk.logprobs for value in getattr(chunk.logprobs, field) or ()]
        assert streamed == getattr(whole.logprobs, field), field
    assert [chunk.finish_reason for chunk in chunks][-1] == whole.finish_reason == "length"
    tokens, offsets = whole.logprobs.tokens or [], whole.logprobs.text_offset or []
    assert whole.logprobs.token_logprobs
    assert whole.logprobs.token_logprobs[0] is None
    spelled = [(token, offset) for token, offset in zip(tokens, offsets, strict=True) if "\\x" not in token]
    assert all(whole.text.startswith(token, offset) for token, offset in spelled)


def test_lm_eval_reads_what_the_engine_tells(http: httpx.Client, engine: LocalClient) -> None:
    """Logprobs of the prompt, where others tell only of the answer (llama.cpp#27174, lm-eval#4158)."""
    texts = [("The sky", " is blue"), ("Hello", "! Nice to meet you"), ("a b", " c")]
    encode = engine.model.text.tokenizer.encode
    batch = [(encode(context), encode(context) + encode(rest)) for context, rest in texts]
    body = {"prompt": [ids for _, ids in batch], "max_tokens": 1, "logprobs": 1, "echo": True, "temperature": 0}
    choices = http.post("/v1/completions", json={**body, "seed": 1234}).json()["choices"]
    assert [choice["index"] for choice in choices] == [0, 1, 2]
    for choice, (context, ids) in zip(choices, batch, strict=True):
        told = choice["logprobs"]
        assert len(told["tokens"]) == len(ids) + 1
        logprobs, tops = told["token_logprobs"][len(context) : -1], told["top_logprobs"][len(context) : -1]
        request = Request(prompt_ids=tuple(ids), prompt_logprobs=1, max_tokens=0)
        events = [event for event in engine.generate(request) if isinstance(event, PromptLogprobs)]
        wanted = [token for event in events for token in event.tokens][len(context) :]
        assert logprobs == [token.logprob for token in wanted]
        greedy = [logprob == max(top.values()) for logprob, top in zip(logprobs, tops, strict=True)]
        assert greedy == [token.top[0].token_id == token.token_id for token in wanted]


def test_several_prompts_and_choices_are_numbered_prompt_by_prompt(client: openai.OpenAI) -> None:
    asked: dict[str, Any] = {"model": "", "prompt": ["Hello", "The sky"], "max_tokens": 8, "n": 2, "temperature": 1.5}
    answer = client.completions.create(**asked, seed=5)
    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
    for index, (prompt, seed) in enumerate([("Hello", 5), ("Hello", 6), ("The sky", 5), ("The sky", 6)]):
        alone = client.completions.create(model="", prompt=prompt, max_tokens=8, temperature=1.5, seed=seed)
        assert alone.choices[0].text == answer.choices[index].text
    assert answer.usage
    assert answer.usage.completion_tokens == 32


@pytest.mark.parametrize("stream", [False, True])
def test_logprobs_of_a_chat(client: openai.OpenAI, stream: bool) -> None:
    asked: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}], "logprobs": True, "top_logprobs": 3}
    asked |= {"model": "", "temperature": 0}
    if stream:
        with client.chat.completions.stream(**asked) as events:
            choice: Any = events.get_final_completion().choices[0]
    else:
        choice = client.chat.completions.create(**asked).choices[0]
    told = choice.logprobs.content
    said = b"".join(bytes(token.bytes) for token in told[:-1]).decode()
    assert said == choice.message.content
    assert told[-1].token == "<|end|>", "the token that ended it is told, too"
    assert all(token.logprob == max(top.logprob for top in token.top_logprobs) for token in told)
    assert {len(token.top_logprobs) for token in told} == {3}


def test_bytes_of_a_character_in_pieces(http: httpx.Client) -> None:
    body = {"prompt": "Hello é", "echo": True, "logprobs": 0, "max_tokens": 0}
    told = http.post("/v1/completions", json=body).json()["choices"][0]
    assert (told["text"], told["logprobs"]["tokens"]) == ("Hello é", ["Hello", " \\xc3", "\\xa9"])
    assert told["logprobs"]["text_offset"] == [0, 5, 6]


@pytest.mark.parametrize(
    ("page", "body", "param"),
    [
        ("completions", {"prompt": "x", "suffix": "y"}, "suffix"),
        ("completions", {}, "prompt"),
        ("completions", {"prompt": []}, "prompt"),
        ("completions", {"prompt": [[1], []]}, "prompt"),
        ("completions", {"prompt": [True]}, "prompt"),
        ("completions", {"prompt": ["x"] * 65}, "prompt"),
        ("completions", {"prompt": [10**9]}, "prompt"),
        ("completions", {"prompt": "x", "logprobs": 21}, "logprobs"),
        ("completions", {"prompt": "x", "logit_bias": {"123456789": 1}}, "logit_bias"),
        ("completions", {"prompt": "x", "max_tokens": 0}, "max_tokens"),
        ("chat/completions", {"messages": [{"role": "user", "content": "x"}], "top_logprobs": 2}, "top_logprobs"),
    ],
)
def test_wrong_fields_are_named(http: httpx.Client, page: str, body: dict[str, Any], param: str | None) -> None:
    answer = http.post(f"/v1/{page}", json=body)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


def test_clients_that_send_what_is_usual_are_answered(http: httpx.Client) -> None:
    chat = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 2, "logprobs": False, "top_logprobs": 0}
    assert http.post("/v1/chat/completions", json=chat).status_code == 200


def test_texts_and_ids_are_turned_into_each_other(http: httpx.Client, engine: LocalClient) -> None:
    text = "Hello <|end|> é " * 200  # longer than the context
    ids = http.post("/tokenize", json={"prompt": text, "add_special_tokens": False}).json()
    assert ids["tokens"] == engine.model.text.tokenizer.encode(text, special=True)
    assert ids["count"] == len(ids["tokens"]) > ids["max_model_len"] == 512
    assert http.post("/tokenize", json={"content": text}).json()["tokens"] == ids["tokens"]
    assert http.post("/detokenize", json={"tokens": ids["tokens"]}).json()["prompt"] == text
    chat = {"messages": [{"role": "user", "content": "hi"}]}
    texts = http.post("/tokenize", json={"content": text, "return_token_strs": True}).json()["token_strs"]
    assert texts == [engine.model.text.tokenizer.piece_text(one) for one in ids["tokens"]]
    rendered = http.post("/tokenize", json=chat).json()["tokens"]
    assert rendered == engine.model.text.prepare(Request(messages=tuple(chat["messages"]))).ids
    for empty, field in (({"prompt": ""}, "tokens"), ({"content": ""}, "tokens")):
        assert http.post("/tokenize", json=empty).json()[field] == []
    assert http.post("/detokenize", json={"tokens": []}).json()["prompt"] == ""
    info = http.get("/tokenizer_info").json()
    assert (info["bos_token"], info["eos_token"]) == ("<|begin|>", "<|end|>")


@pytest.mark.process
def test_a_worker_tells_the_same(engine: LocalClient) -> None:
    request = Request(prompt="Hello é", prompt_logprobs=2, logprobs=2, max_tokens=3, verbatim=True)
    with WorkerClient(LoadOptions(BUILTIN, ctx=512)) as worker:
        told = [event for event in worker.generate(request) if isinstance(event, PromptLogprobs)]
        view = worker.preview(Request(prompt_ids=(598, 5)), pieces=True)
    here = [event for event in engine.generate(request) if isinstance(event, PromptLogprobs)]
    assert [token for event in told for token in event.tokens] == [token for event in here for token in event.tokens]
    assert view
    assert (view.ids, view.text) == ((598, 5), "Hello!")
