"""Images in requests of every protocol: as bytes within them, in their place among the texts."""

import base64
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import pytest
from localrun_testing.fake_client import FakeClient
from localrun_testing.seeing_gemma import save_seeing_gemma
from localrun_testing.seeing_models import save_seeing
from localrun_testing.served import serving
from PIL import Image

from localrun.base.events import Done
from localrun.base.request import LoadOptions, Request, RequestImage, Sampling
from localrun.client.choice import ModelChoice
from localrun.client.local import LocalClient
from localrun.hub.catalogue import BUILTIN
from localrun.hub.disk.stored import StoredModel
from localrun.hub.resolve import resolve
from localrun.server.ollama.models import show


def png(color: str = "red", width: int = 8, height: int = 4, mode: str = "RGB") -> bytes:
    file = BytesIO()
    Image.new(mode, (width, height), color).save(file, "PNG")
    return file.getvalue()


RED, BLUE = png("red"), png("blue")


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def url(data: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{encoded(data)}"


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def chat(data: bytes) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url(data), "detail": "high"}}


def block(data: bytes) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": encoded(data)}}


def item(data: bytes) -> dict[str, Any]:
    return {"type": "input_image", "image_url": url(data)}


def words(said: str) -> dict[str, Any]:
    return {"type": "input_text", "text": said}


BODIES: dict[str, tuple[str, dict[str, Any]]] = {
    "chat completions": (
        "/v1/chat/completions",
        {"messages": [{"role": "user", "content": [text("a"), chat(RED), chat(BLUE), text("b")]}]},
    ),
    "Responses": (
        "/v1/responses",
        {"input": [{"role": "user", "content": [words("a"), item(RED), item(BLUE), words("b")]}]},
    ),
    "Messages": (
        "/v1/messages",
        {"max_tokens": 9, "messages": [{"role": "user", "content": [text("a"), block(RED), block(BLUE), text("b")]}]},
    ),
}


def named(data: bytes) -> dict[str, Any]:
    """The part of a message for an image."""
    name = {"name": "image", "sha256": sha256(data).hexdigest(), "width": 8, "height": 4, "media_type": ""}
    return {"type": "image", **name}


def sent(data: bytes) -> RequestImage:
    return RequestImage(sha256(data).hexdigest(), 8, 4, data=data)


def seen(fake: FakeClient, http: httpx.Client, path: str, body: dict[str, Any]) -> Request:
    """The request that reached the engine."""
    answer = http.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return fake.requests[-1]


@pytest.mark.parametrize("name", BODIES)
def test_images_stay_among_the_texts(fake: FakeClient, http: httpx.Client, name: str) -> None:
    request = seen(fake, http, *BODIES[name])
    assert request.messages[-1]["content"] == [text("a"), named(RED), named(BLUE), text("b")]
    assert request.images == (sent(RED), sent(BLUE))


@pytest.mark.parametrize("path", ["chat", "generate"])
def test_images_of_ollamas_api_come_before_the_text(fake: FakeClient, http: httpx.Client, path: str) -> None:
    images = [encoded(RED), encoded(BLUE)]
    messages = [{"role": "user", "content": "b", "images": images}]
    body = {"messages": messages} if path == "chat" else {"prompt": "b", "images": images}
    request = seen(fake, http, f"/api/{path}", {**body, "stream": False})
    assert request.messages[-1]["content"] == [named(RED), named(BLUE), text("b")]
    assert request.images == (sent(RED), sent(BLUE))
    assert "context" not in http.post(f"/api/{path}", json={**body, "stream": False}).json()


def test_images_of_results_are_shown_by_the_user(fake: FakeClient, http: httpx.Client) -> None:
    """Templates have no place for an image in the result of a tool."""
    call = {"type": "tool_use", "id": "c1", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": [text("a screen"), block(RED)]}
    turns = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result, text("and now?")]},
    ]
    request = seen(fake, http, "/v1/messages", {"max_tokens": 9, "messages": turns})
    assert request.messages[-2] == {"role": "tool", "tool_call_id": "c1", "name": "look", "content": "a screen"}
    assert request.messages[-1] == {"role": "user", "content": [named(RED), text("and now?")]}


def test_an_image_that_comes_again_is_sent_once(fake: FakeClient, http: httpx.Client) -> None:
    turns = [{"role": "user", "content": [chat(RED), text("a")]}] * 2
    request = seen(fake, http, "/v1/chat/completions", {"messages": turns})
    assert request.images == (sent(RED),)


def test_a_stored_response_brings_its_images_back(fake: FakeClient, http: httpx.Client) -> None:
    body = {"input": [{"role": "user", "content": [item(RED), words("a")]}]}
    first = http.post("/v1/responses", json=body).json()["id"]
    request = seen(fake, http, "/v1/responses", {"input": "and?", "previous_response_id": first})
    assert request.images == (sent(RED),)
    assert request.messages[0]["content"] == [named(RED), text("a")]


BOMB = png("white", 9000, 6000, mode="1")  # one bit a pixel: each worker makes it, whichever tests it runs
WRONG = {
    "an address": ("https://example.com/a.png", "addresses are not fetched"),
    "a path": ("/etc/passwd", "addresses are not fetched"),
    "a file": ("file:///etc/passwd", "addresses are not fetched"),
    "no base64": ("data:image/png;base64,*", "base64 of an image file is needed"),
    "nothing": ("data:image/png;base64,", "the image file is empty"),
    "no image": (url(b"x" * 99), "no image of a known kind"),
    "another kind": (url(b"<svg xmlns='http://www.w3.org/2000/svg'/>"), "SVG images cannot be read"),
    "a bomb": (url(BOMB), "million are the most"),
    "a broken one": (url(RED[:20]), "the image"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_images_are_refused_by_their_field(http: httpx.Client, name: str) -> None:
    address, why = WRONG[name]
    content = [text("a"), {"type": "image_url", "image_url": {"url": address}}]
    answer = http.post("/v1/chat/completions", json={"messages": [{"role": "user", "content": content}]})
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["param"] == "messages[0].content[1].image_url.url"
    assert why in error["message"]


def test_too_many_images_are_refused(http: httpx.Client) -> None:
    many = [chat(png("red", n, 4)) for n in range(1, 66)]
    answer = http.post("/v1/chat/completions", json={"messages": [{"role": "user", "content": many}]})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "messages")


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        (
            "/v1/responses",
            {"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]},
            "file_id",
        ),
        (
            "/v1/messages",
            {"messages": [{"role": "user", "content": [block(RED) | {"source": {"type": "url"}}]}]},
            "type",
        ),
        ("/api/chat", {"messages": [{"role": "user", "content": "", "images": ["eA=="]}]}, "images"),
    ],
)
def test_other_ways_to_name_an_image_are_refused(
    http: httpx.Client, path: str, body: dict[str, Any], param: str
) -> None:
    answer = http.post(path, json=body)
    assert answer.status_code == 400
    assert param in answer.text


def test_a_model_that_sees_answers_as_without_a_server(tmp_path: Path) -> None:
    """The image is encoded once; a model that sees none refuses it."""
    folder = save_seeing("qwen3.5", tmp_path / "m")
    assert "vision" in show(ModelChoice(StoredModel("m", "", folder, 1, "safetensors", "path")))["capabilities"]
    client = LocalClient(LoadOptions(folder, ctx=512))
    content = [named(RED), text("hi " * 60)]
    expected = done(client, content)
    body = {
        "messages": [{"role": "user", "content": [chat(RED), text("hi " * 60)]}],
        "temperature": 0.0,
        "max_tokens": 6,
    }
    with serving(lambda choice: client) as running, httpx.Client(base_url=running.url, timeout=60) as http:
        for is_again in (False, True):
            answer = http.post("/v1/chat/completions", json=body).json()
            assert answer["choices"][0]["message"]["content"] == expected.completion.text
            assert answer["usage"]["prompt_tokens"] == expected.completion.prompt_tokens
            assert not is_again or answer["usage"]["prompt_tokens_details"]["cached_tokens"] >= 64


def test_gemma_sees_an_image_between_texts_in_every_protocol(tmp_path: Path) -> None:
    """Its rows see each other both ways: the answer is that without a server, and is cached from the second on."""
    client = LocalClient(LoadOptions(save_seeing_gemma("both-ways", tmp_path), ctx=512))
    content = [text("a " * 60), named(RED), text("b " * 9)]
    expected = done(client, content)
    assert expected.completion.text
    before, after = (part["text"] for part in content if "text" in part)
    bodies = {
        "/v1/chat/completions": {"messages": user_of(text(before), chat(RED), text(after)), "max_tokens": 6},
        "/v1/responses": {"input": user_of(words(before), item(RED), words(after)), "max_output_tokens": 6},
        "/v1/messages": {"messages": user_of(text(before), block(RED), text(after)), "max_tokens": 6},
    }
    with serving(lambda choice: client) as running, httpx.Client(base_url=running.url, timeout=60) as http:
        for path, body in bodies.items():
            answer = http.post(path, json={**body, "temperature": 0.0}).json()
            assert said(answer) == expected.completion.text, path
            assert cached(answer["usage"]) >= 64, path
        ollama = {"role": "user", "content": after, "images": [encoded(RED)]}
        first = None
        for _ in range(2):  # which has images before the text
            body = {"messages": [ollama], "stream": False, "options": {"temperature": 0, "num_predict": 6}}
            answer = http.post("/api/chat", json=body).json()
            assert answer["message"]["content"]
            assert first in (None, answer["message"]["content"])
            first = answer["message"]["content"]


def done(client: LocalClient, content: list[dict[str, Any]]) -> Done:
    """The end of a greedy answer of six tokens, without a server."""
    request = Request(
        messages=({"role": "user", "content": content},),
        images=(sent(RED),),
        sampling=Sampling(temperature=0.0),
        max_tokens=6,
    )
    event = list(client.generate(request))[-1]
    assert isinstance(event, Done)
    return event


def user_of(*content: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": list(content)}]


def said(answer: dict[str, Any]) -> str:
    """The text of an answer of chat completions, Responses or Messages."""
    if "choices" in answer:
        return str(answer["choices"][0]["message"]["content"])
    parts = answer["content"] if "content" in answer else answer["output"][-1]["content"]
    return "".join(part["text"] for part in parts)


def cached(usage: dict[str, Any]) -> int:
    """Tokens of a prompt that were in the cache."""
    if "cache_read_input_tokens" in usage:
        return int(usage["cache_read_input_tokens"])
    details = usage["prompt_tokens_details" if "prompt_tokens_details" in usage else "input_tokens_details"]
    return int(details["cached_tokens"])


def test_a_model_that_sees_nothing_says_so() -> None:
    client = LocalClient(LoadOptions(resolve(BUILTIN).path, ctx=512))
    body = {"messages": [{"role": "user", "content": [chat(RED), text("hi")]}]}
    with serving(lambda choice: client) as running, httpx.Client(base_url=running.url, timeout=60) as http:
        answer = http.post("/v1/chat/completions", json=body)
    assert answer.status_code == 400
    assert "sees no images" in answer.json()["error"]["message"]
