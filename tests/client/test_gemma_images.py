"""A model of Gemma 4 that sees, from a file to its answer: that of transformers, whether cached or not."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from localrun_testing.seeing_gemma import (
    IMAGE,
    POOL,
    build_seeing_gemma,
    padded,
    save_seeing_gemma,
    save_seeing_gemma_gguf,
)
from PIL import Image
from transformers.models.gemma4.image_processing_pil_gemma4 import Gemma4ImageProcessorPil

from localrun.base.content import ImagePart, TextPart, as_message_content
from localrun.base.events import Completion, Done, Token, TokenLogprob
from localrun.base.request import LoadOptions, Request, Sampling
from localrun.chat.images import seen_image
from localrun.client.local import LocalClient
from localrun.images.patches import patches_by_line


def picture(path: Path, width: int, height: int) -> Path:
    drawn = np.random.default_rng(width).integers(0, 256, (height, width, 3), dtype=np.uint8)
    Image.fromarray(drawn).save(path, "PNG")
    return path


@pytest.fixture(scope="module", params=["causal", "both-ways", "unified"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def folder(name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_seeing_gemma(name, tmp_path_factory.mktemp("seeing"))


def asked(*parts: str | Path) -> Request:
    """A question of texts and images in their order."""
    content: list[TextPart | ImagePart] = []
    images = []
    for part in parts:
        if isinstance(part, Path):
            shown, image = seen_image(part)
            content.append(shown)
            images.append(image)
        else:
            content.append(TextPart(part))
    messages = ({"role": "user", "content": as_message_content(tuple(content))},)
    return Request(messages=messages, images=tuple(images), sampling=Sampling(temperature=0.0), max_tokens=12)


def answered(client: LocalClient, request: Request) -> tuple[Completion, Done]:
    done = list(client.generate(request))[-1]
    assert isinstance(done, Done)
    return done.completion, done


def of_transformers(name: str, prompt_ids: Sequence[int], paths: Sequence[Path]) -> list[int]:
    """The answer to a prompt with all these images in it."""
    processor = Gemma4ImageProcessorPil(patch_size=4, max_soft_tokens=70)
    seen = processor([Image.open(path).convert("RGB") for path in paths], return_tensors="pt")
    prompt = torch.tensor([[IMAGE if one >> 32 else one for one in prompt_ids]])
    assert int((prompt == IMAGE).sum()) == sum(seen["num_soft_tokens_per_image"])
    pixels, places = seen["pixel_values"], seen["image_position_ids"]
    if name == "unified":
        pixels, places = merged(pixels.numpy(), places.numpy())
    answer = build_seeing_gemma(name).generate(
        input_ids=prompt,
        max_new_tokens=12,
        do_sample=False,
        mm_token_type_ids=(prompt == IMAGE).int(),
        pixel_values=pixels,
        image_position_ids=places,
    )
    found: list[int] = answer[0, prompt.shape[1] :].tolist()
    return found


def merged(patches: np.ndarray, places: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
    """Patches of a tower as those of an embedder, POOL times as wide and high. Its processor needs torchvision."""
    found, grids = [], []
    for one, place in zip(patches, places, strict=True):
        columns, lines = place.max(axis=0) + 1
        pixels = one[place[:, 0] >= 0].reshape(lines, columns, 4, 4, 3).transpose(0, 2, 1, 3, 4)
        found.append(patches_by_line(pixels.reshape(4 * lines, 4 * columns, 3), 4 * POOL))
        grids.append((lines // POOL, columns // POOL))
    return padded(found, grids)


def logprobs(client: LocalClient, request: Request) -> list[TokenLogprob]:
    """What the model made of every token of an answer, to the bit."""
    events = list(client.generate(replace(request, logprobs=5)))
    return [event.logprob for event in events if isinstance(event, Token) and event.logprob is not None]


def test_an_answer_about_images_is_that_of_transformers(name: str, folder: Path, tmp_path: Path) -> None:
    """Images between texts, in the order they were written."""
    paths = [picture(tmp_path / "a.png", 70, 41), picture(tmp_path / "b.png", 24, 90)]
    with LocalClient(LoadOptions(folder, ctx=512, kv="f32", backend="reference")) as client:
        found, done = answered(client, asked("now", paths[0], "and then", paths[1], "what?"))
    assert len(found.token_ids) > 4
    assert list(found.token_ids) == of_transformers(name, done.prompt_ids, paths)[: len(found.token_ids)]


def test_a_projector_beside_a_gguf_answers_as_the_checkpoint(name: str, tmp_path: Path) -> None:
    """Files as llama.cpp converts them; the rows of an image, which they leave out, are those of the family."""
    (tmp_path / "checkpoint").mkdir()
    folder = save_seeing_gemma(name, tmp_path / "checkpoint", budget=280)
    request = asked(picture(tmp_path / "a.png", 256, 256), "what?")
    answers = []
    for path in (folder, save_seeing_gemma_gguf(name, folder, tmp_path)):
        with LocalClient(LoadOptions(path, ctx=512, backend="reference")) as client:
            answers.append(answered(client, request)[0])
    assert answers[0].seen.image_tokens == answers[1].seen.image_tokens == 256
    assert answers[0].token_ids == answers[1].token_ids
    assert len(answers[0].token_ids) > 4


def test_what_is_cached_is_answered_as_what_is_not(folder: Path, tmp_path: Path) -> None:
    """A second question about an image takes its keys and values, and is answered as if nothing had been."""
    path = picture(tmp_path / "a.png", 70, 41)
    request = asked("look", path, "what?")
    with LocalClient(LoadOptions(folder, ctx=512)) as client:
        first, done = answered(client, request)
        more = ({"role": "assistant", "content": first.text}, {"role": "user", "content": "sure?"})
        again = replace(request, messages=(*request.messages, *more))
        cached, _ = answered(client, again)
        assert (cached.cached_tokens or 0) >= len(done.prompt_ids) - 1
        warm = logprobs(client, again)
    with LocalClient(LoadOptions(folder, ctx=512)) as client:
        assert logprobs(client, again) == warm
        assert answered(client, again)[0].token_ids == cached.token_ids


def test_an_image_over_the_border_of_a_step_is_seen_whole(name: str, folder: Path, tmp_path: Path) -> None:
    """Steps have 512 rows: those that see each other both ways are computed in one, whatever comes before them."""
    path = picture(tmp_path / "a.png", 70, 41)
    for n_before in (118, 126):  # words of four tokens
        request = asked("now " * n_before, path, "what?")
        with LocalClient(LoadOptions(folder, ctx=1024, kv="f32", backend="reference")) as client:
            found, done = answered(client, request)
            rows = [number for number, one in enumerate(done.prompt_ids) if one >> 32]
            assert rows[0] < 512 <= rows[-1]
            assert list(found.token_ids) == of_transformers(name, done.prompt_ids, [path])[: len(found.token_ids)]
        with LocalClient(LoadOptions(folder, ctx=1024)) as client:
            cold = logprobs(client, request)
            assert logprobs(client, request) == cold, "as from the cache"
