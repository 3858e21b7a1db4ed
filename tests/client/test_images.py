"""A model that sees, from a file to its answer: what transformers answers, and no image is encoded twice."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from localrun_testing.seeing_models import (
    IMAGE,
    build_seeing,
    save_seeing,
    save_seeing_gguf,
    transformers,
    with_usual_sizes,
)
from PIL import Image

from localrun import LLM
from localrun.base.content import TextPart, as_message_content
from localrun.base.errors import ImageError, UsageError
from localrun.base.events import Completion, Done, ImageProgress
from localrun.base.request import BackendName, LoadOptions, Request, Sampling
from localrun.chat.images import seen_image
from localrun.chat.journal import ChatStore
from localrun.chat.turn import TurnOptions, begin_turn, preview_request
from localrun.client.local import LocalClient
from localrun.client.rpc.codec import codec
from localrun.engine import image_encoder as module_of_sizes
from localrun.engine.image_cost import ImageCost
from localrun.engine.tower import OpenedTower
from localrun.model.vision.config import TowerConfig
from localrun.model.vision.tower import TowerWeights
from localrun.model.vision.weights import TowerLoader
from localrun.storage.inventory import inventory, stored_blocks


def picture(path: Path, width: int, height: int) -> Path:
    drawn = np.random.default_rng(width).integers(0, 256, (height, width, 3), dtype=np.uint8)
    Image.fromarray(drawn).save(path, "PNG")
    return path


@pytest.fixture(scope="module", params=["qwen3.5", "qwen3-vl"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def folder(name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_seeing(name, tmp_path_factory.mktemp("seeing"))


def client_of(folder: Path, backend: BackendName = "auto") -> LocalClient:
    return LocalClient(LoadOptions(folder, ctx=512, backend=backend))


def asked(text: str, *paths: Path) -> Request:
    seen = [seen_image(path) for path in paths]
    content = as_message_content((*(part for part, _ in seen), TextPart(text)))
    messages = ({"role": "user", "content": content},)
    images = tuple(image for _, image in seen)
    return Request(messages=messages, images=images, sampling=Sampling(temperature=0.0), max_tokens=12)


def answered(client: LocalClient, request: Request) -> tuple[Completion, Done, int]:
    """The figures, the last event, and how many images were encoded or taken again."""
    events = list(client.generate(request))
    done = events[-1]
    assert isinstance(done, Done)
    return done.completion, done, len({event.number for event in events if isinstance(event, ImageProgress)})


def test_an_answer_about_images_is_that_of_transformers(name: str, folder: Path, tmp_path: Path) -> None:
    paths = [picture(tmp_path / "a.png", 70, 41), picture(tmp_path / "b.png", 24, 90)]
    with client_of(folder, backend="reference") as client:
        found, done, n_encoded = answered(client, asked("what?", *paths))
    assert n_encoded == found.seen.images == 2
    assert found.seen.image_tokens == sum(one >> 32 > 0 for one in done.prompt_ids)
    processor = transformers.AutoImageProcessor.from_pretrained(folder, use_fast=False)
    pixels = processor([Image.open(path) for path in paths], return_tensors="pt")
    prompt = torch.tensor([[IMAGE if one >> 32 else one for one in done.prompt_ids]])
    more = {"mm_token_type_ids": (prompt == IMAGE).int(), **pixels}
    answer = build_seeing(name).generate(input_ids=prompt, max_new_tokens=12, do_sample=False, **more)
    assert len(found.token_ids) > 4
    assert list(found.token_ids) == answer[0, prompt.shape[1] :].tolist()[: len(found.token_ids)]


def test_a_projector_beside_a_gguf_answers_as_the_checkpoint(name: str, folder: Path, tmp_path: Path) -> None:
    """Files as llama.cpp converts them; the size rule, which they leave out, is that of the family."""
    same = with_usual_sizes(folder, tmp_path / "checkpoint")
    model = save_seeing_gguf(name, same, tmp_path)
    request = asked("what?", picture(tmp_path / "a.png", 256, 256))
    answers = []
    for path in (same, model):
        with LocalClient(LoadOptions(path, ctx=2048, backend="reference")) as client:
            answers.append(answered(client, request)[0])
    assert answers[0].seen.image_tokens == answers[1].seen.image_tokens == 1024
    assert answers[0].token_ids == answers[1].token_ids
    assert len(answers[0].token_ids) > 4


def test_a_second_question_needs_no_pixel(folder: Path, tmp_path: Path) -> None:
    path = picture(tmp_path / "a.png", 70, 41)
    with client_of(folder) as client:
        request = asked("what?", path)
        first, done, n_encoded = answered(client, request)
        assert n_encoded == 1
        assert first.seen.encode_ms > 0
        path.unlink()
        more = ({"role": "assistant", "content": first.text}, {"role": "user", "content": "sure?"})
        known = (*done.prompt_ids, *first.token_ids)
        again = replace(request, messages=(*request.messages, *more), known_ids=known, max_tokens=4)
        second, _, n_encoded = answered(client, again)
        assert (n_encoded, second.seen.encode_ms) == (0, 0)
        assert (second.cached_tokens or 0) >= len(done.prompt_ids)


def test_text_alone_reads_nothing_of_the_tower(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither for its identity nor its weights; room for it is planned, and taken with the first image."""
    loaded: list[str] = []
    identity, load = OpenedTower.identity, TowerLoader.tower

    def watched_identity(tower: OpenedTower) -> str:
        loaded.append("identity")
        return identity(tower)

    def watched_load(loader: TowerLoader, config: TowerConfig) -> TowerWeights:
        loaded.extend(["weights"] * (type(loader) is TowerLoader))  # not shapes alone
        return load(loader, config)

    monkeypatch.setattr(OpenedTower, "identity", watched_identity)
    monkeypatch.setattr(TowerLoader, "tower", watched_load)
    with client_of(folder) as client:
        answered(client, asked("what?"))
        (part,) = (part for part in client.view().memory if part.name == "images")
        assert (loaded, part.measured) == ([], 0)
        answered(client, asked("what?", picture(tmp_path / "a.png", 70, 41)))
        (seen,) = (part for part in client.view().memory if part.name == "images")
        assert loaded == ["identity", "weights"]
        assert 0 < seen.measured <= seen.predicted == part.predicted
        answered(client, asked("and?", picture(tmp_path / "b.png", 71, 41)))
        assert loaded == ["identity", "weights"]


def test_images_for_which_there_is_no_room_are_refused_before_they_are_sent(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OpenedTower, "cost", lambda *_: ImageCost(1 << 50, 1 << 50, ()))
    with client_of(folder) as client:
        assert "images would take another" in client.info.why_blind
        with pytest.raises(UsageError, match="sees no images"):
            client.generate(asked("what?", picture(tmp_path / "a.png", 70, 41)))
        assert answered(client, asked("what?"))[0].text


def test_an_edit_before_the_image_takes_its_kept_rows(folder: Path, tmp_path: Path) -> None:
    path = picture(tmp_path / "a.png", 70, 41)
    with client_of(folder) as client:
        request = asked("what?", path)
        answered(client, request)
        path.unlink()
        messages = ({"role": "system", "content": "be brief"}, *request.messages)
        edited, _, n_encoded = answered(client, replace(request, messages=messages, max_tokens=4))
        assert n_encoded == 0
        assert (edited.cached_tokens or 0) < 10


def test_a_changed_or_broken_file_is_named(folder: Path, tmp_path: Path) -> None:
    path = picture(tmp_path / "a.png", 70, 41)
    request = asked("what?", path)
    picture(path, 71, 41)
    with client_of(folder) as client:
        with pytest.raises(ImageError, match="not the one that was attached"):
            list(client.generate(request))
        assert answered(client, asked("what?", path))[2] == 1
    (tmp_path / "b.png").write_bytes(b"no image")
    with pytest.raises(ImageError):
        seen_image(tmp_path / "b.png")
    with pytest.raises(ImageError, match="cannot be read"):
        seen_image(tmp_path / "none.png")


def test_the_python_surface_takes_paths_and_bytes(folder: Path, tmp_path: Path) -> None:
    path = picture(tmp_path / "a.png", 70, 41)
    with LLM(folder, ctx=512) as llm:
        by_path = llm.generate("what?", images=[path], temperature=0, max_tokens=6)
        by_bytes = llm.generate("what?", images=[path.read_bytes()], temperature=0, max_tokens=6)
        assert by_path.token_ids == by_bytes.token_ids
        assert by_bytes.seen.encode_ms == 0
        assert "".join(llm.stream("what?", images=[str(path)], temperature=0, max_tokens=6)) == by_path.text
        for wrong in (path, [7], "a.png"):
            with pytest.raises(UsageError, match="images"):
                llm.generate("what?", images=wrong)  # type: ignore[arg-type]


def test_a_model_that_does_not_see_says_what_would_help(tmp_path: Path) -> None:
    path = picture(tmp_path / "a.png", 70, 41)
    with LLM("builtin", ctx=256) as blind, pytest.raises(UsageError, match="sees no images") as raised:
        blind.generate("what?", images=[path])
    assert "mmproj" in raised.value.hint


def test_requests_with_images_cross_processes(tmp_path: Path) -> None:
    request = asked("what?", picture(tmp_path / "a.png", 70, 41))
    wire = codec(Request)
    assert wire.decode(wire.encode(request)) == request
    with_bytes = replace(request, images=(replace(request.images[0], path=None, data=bytes(range(256))),))
    assert wire.decode(wire.encode(with_bytes)) == with_bytes


def test_no_image_of_a_stored_chat_is_encoded_twice_whatever_changes_before_it(
    name: str, folder: Path, tmp_path: Path
) -> None:
    """Not after a restart and an edit, from which no key can be taken; damaged, it is, and that is said."""
    chat = f"chat-{name}".replace(".", "-")
    for file in folder.iterdir():
        os.utime(file, (1, 1))  # settled, so that what was computed of it is kept
    options = LoadOptions(folder, ctx=512, disk_cache=1 << 30)
    request = replace(asked("what?", picture(tmp_path / "a.png", 70, 41)), chat_id=chat)
    edited = replace(request, messages=({"role": "system", "content": "be brief"}, *request.messages))
    with LocalClient(options) as client:
        assert answered(client, edited)[2] == 1
        warm, _, _ = answered(client, edited)
    answers = []
    for damage in (False, True):
        with LocalClient(options) as client:
            assert client.model.engine.disk is not None
            root = client.model.engine.disk.files.root
            images = [one for one in inventory(root) if one.label.codec == "images"]
            assert [kept.chat for one in images for kept in one.chats] == [chat]
            for block in stored_blocks(root) if damage else ():
                if block.fingerprint == images[0].fingerprint:
                    os.truncate(block.path, 99)
            changed = replace(edited, messages=({"role": "system", "content": f"be {damage}"}, *request.messages))
            found, _, n_encoded = answered(client, changed)
            assert n_encoded == damage
            assert ("damaged" in found.cache.cache_note) == damage
            answers.append(answered(client, edited)[0].token_ids)
    assert answers == [warm.token_ids] * 2


def test_a_chat_goes_on_with_its_image_after_a_restart(folder: Path, tmp_path: Path) -> None:
    store = ChatStore(tmp_path / "chats")
    chat, part = store.create(), store.images.attach(picture(tmp_path / "a.png", 70, 41))
    options = TurnOptions(Sampling(temperature=0.0), max_tokens=6)
    with client_of(folder) as client:
        assert client.info.why_blind == ""
        content = (part, TextPart("what?"))
        draft = client.preview(preview_request(chat, content, options))
        question = chat.add_user(content).id
        request, _ = begin_turn(chat, question, options, client.info.ctx)
        first, done, n_encoded = answered(client, request)
        assert (first.prompt_tokens, n_encoded) == (draft.n_tokens, 1)
        chat.add_answer(question, first.text, ids=(*done.prompt_ids, *first.token_ids))
    again = ChatStore(tmp_path / "chats").open(chat.id)
    request, _ = begin_turn(again, again.add_user("sure?").id, options, 512)
    assert request.known_ids == (*done.prompt_ids, *first.token_ids)
    with client_of(folder) as client:
        second, _, n_encoded = answered(client, request)
        assert (second.seen.images, n_encoded) == (1, 1)
        assert answered(client, request)[2] == 0, "and is not encoded again"


def test_sizes_cost_what_they_take_and_nothing_where_they_are_encoded(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module_of_sizes, "SIZES", {"small": 8, "full": 1024})
    request = asked("what?", picture(tmp_path / "a.png", 256, 128))
    small = replace(request.images[0], most_rows=8)
    messages = ({"role": "user", "content": [{"type": "image", "sha256": small.sha256, "most_rows": 8}]},)
    with client_of(folder) as client:
        n_full = client.preview(request).images[0].sizes["full"].n_tokens
        assert n_full > 8
        answered(client, replace(request, messages=messages, images=(small,)))
        (view,) = client.preview(request).images
        n_small = view.sizes["small"].n_tokens
        assert n_small <= 8
        assert view.sizes["small"].seconds == 0
        assert (view.sizes["full"].seconds or 0) > 0, "by the rate of the small one"
        whole, _, n_encoded = answered(client, request)
        assert (whole.seen.image_tokens, n_encoded) == (n_full, 1), "another size is another image"
        assert client.preview(request).images[0].sizes["full"].seconds == 0


def test_an_image_without_a_size_has_no_costs(folder: Path, tmp_path: Path) -> None:
    request = asked("what?", picture(tmp_path / "a.png", 300, 1))
    with client_of(folder) as client:
        encoder = client.model.images
        assert encoder is not None
        assert encoder.view(request.images[0]).sizes == {}
