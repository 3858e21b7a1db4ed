"""What a model says of an image that comes over HTTP: in every protocol, and of every kind, what transformers finds."""

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import torch
import transformers
from localrun_testing.seeing_models import IMAGE, build_seeing, save_seeing
from localrun_testing.served import serving
from PIL import Image, ImageOps

from localrun.base.content import TextPart, as_message_content
from localrun.base.events import Done
from localrun.base.request import LoadOptions, Request, Sampling
from localrun.chat.images import seen_image
from localrun.client.local import LocalClient

NAME, QUESTION, N_TOKENS = "qwen3.5", "what?", 12
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "PNG": ("image/png", {}),
    "JPEG": ("image/jpeg", {"quality": 80}),
    "JPEG that lies on its side": ("image/jpeg", {"exif": {0x0112: 6}}),
    "WEBP": ("image/webp", {"quality": 70}),
}


@dataclass
class Seeing:
    """A model that sees, and a server that has it."""

    folder: Path
    client: LocalClient
    http: httpx.Client


@pytest.fixture(scope="module")
def seeing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seeing]:
    folder = save_seeing(NAME, tmp_path_factory.mktemp("seeing"))
    client = LocalClient(LoadOptions(folder, ctx=512, backend="reference"))
    with serving(lambda choice: client) as running, httpx.Client(base_url=running.url, timeout=None) as http:
        yield Seeing(folder, client, http)


@pytest.mark.parametrize("kind", KINDS)
def test_every_protocol_shows_an_image_as_it_is(seeing: Seeing, kind: str, tmp_path: Path) -> None:
    media_type, how = KINDS[kind]
    data = picture(kind.partition(" ")[0], **how)
    done = answered(seeing.client, data, tmp_path)
    assert len(done.completion.token_ids) > 4
    assert list(done.completion.token_ids) == of_transformers(seeing.folder, data, done)
    for path, body in bodies(data, media_type).items():
        answer = seeing.http.post(path, json={"temperature": 0, "stream": False, **body})
        assert said(answer.json()) == done.completion.text, path


def picture(format: str, exif: dict[int, int] | None = None, **how: Any) -> bytes:
    file, tags = BytesIO(), Image.Exif()
    tags.update(exif or {})
    pixels = np.random.default_rng(3).integers(0, 256, (41, 70, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(file, format, exif=tags, **how)
    return file.getvalue()


def answered(client: LocalClient, data: bytes, folder: Path) -> Done:
    """The end of an answer without a server."""
    path = folder / "image"
    path.write_bytes(data)
    part, image = seen_image(path)
    messages = ({"role": "user", "content": as_message_content((part, TextPart(QUESTION)))},)
    request = Request(messages, images=(image,), sampling=Sampling(temperature=0.0), max_tokens=N_TOKENS)
    *_, done = client.generate(request)
    assert isinstance(done, Done)
    return done


def of_transformers(folder: Path, data: bytes, done: Done) -> list[int]:
    """The ids that transformers finds after the same prompt, as many as there are."""
    shown = ImageOps.exif_transpose(Image.open(BytesIO(data))).convert("RGB")
    processor = transformers.AutoImageProcessor.from_pretrained(folder, use_fast=False)
    prompt = torch.tensor([[IMAGE if one >> 32 else one for one in done.prompt_ids]])
    more = {"mm_token_type_ids": (prompt == IMAGE).int(), **processor([shown], return_tensors="pt")}
    answer = build_seeing(NAME).generate(input_ids=prompt, max_new_tokens=N_TOKENS, do_sample=False, **more)
    found: list[int] = answer[0, prompt.shape[1] :].tolist()
    return found[: len(done.completion.token_ids)]


def bodies(data: bytes, media_type: str) -> dict[str, dict[str, Any]]:
    """The same question in every protocol."""
    encoded = base64.b64encode(data).decode()
    url = f"data:{media_type};base64,{encoded}"
    source = {"type": "base64", "media_type": media_type, "data": encoded}
    text, options = {"type": "text", "text": QUESTION}, {"temperature": 0, "num_predict": N_TOKENS}

    def user(*parts: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"role": "user", "content": parts}]

    return {
        "/v1/chat/completions": {
            "messages": user({"type": "image_url", "image_url": {"url": url}}, text),
            "max_tokens": N_TOKENS,
        },
        "/v1/responses": {
            "input": user({"type": "input_image", "image_url": url}, {"type": "input_text", "text": QUESTION}),
            "max_output_tokens": N_TOKENS,
        },
        "/v1/messages": {"messages": user({"type": "image", "source": source}, text), "max_tokens": N_TOKENS},
        "/api/chat": {
            "messages": [{"role": "user", "content": QUESTION, "images": [encoded]}],
            "options": options,
        },
        "/api/generate": {"prompt": QUESTION, "images": [encoded], "options": options},
    }


def said(answer: dict[str, Any]) -> str:
    """The text of an answer in any protocol."""
    match answer:
        case {"choices": [{"message": {"content": str(text)}}]}:
            return text
        case {"output": [*_, {"content": [{"text": str(text)}]}]} | {"content": [{"text": str(text)}]}:
            return text
        case {"message": {"content": str(text)}} | {"response": str(text)}:
            return text
    raise AssertionError(answer)
