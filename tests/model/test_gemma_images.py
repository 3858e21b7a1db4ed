"""Logits of Gemma 4's texts with images are those of transformers, where rows of an image see each other both ways and
where they do not, however the text is cut between images."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from localrun_testing.oracle import difference, token_ids
from localrun_testing.seeing_gemma import IMAGE, SEEING_GEMMA, GemmaImages, build_seeing_gemma, save_seeing_gemma
from localrun_testing.stepper import Stepper, random_chunks

from localrun.backends.reference.rows import RowReferenceOps
from localrun.base.image_ids import image_ids
from localrun.engine.images import PromptImages
from localrun.ops.layouts import F32

MAX_ABS, NMSE = 1e-4, 1e-9
GRIDS = ((3, 5), (1, 1), (14, 5))  # the last is longer than the window, and crosses the borders of two blocks


def text_with(images: GemmaImages) -> list[int]:
    """A text with images at its beginning and, a token apart, in its middle, and more text after them."""
    first, *others = [image_ids(source.span.digest, source.span.n_rows) for source in images.sources()]
    text = token_ids(90, IMAGE, seed=1)
    return [*text[:2], *first, *text[2:40], *(row for image in others for row in [*image, 7]), *text[40:]]


@pytest.fixture(scope="module", params=SEEING_GEMMA)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def images(name: str) -> GemmaImages:
    return GemmaImages(build_seeing_gemma(name), GRIDS)


@pytest.fixture(scope="module")
def folder(name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_seeing_gemma(name, tmp_path_factory.mktemp("seeing"))


class SeeingStepper(Stepper):
    images: PromptImages


def stepper_of(folder: Path, images: GemmaImages, threads: int = 0, codec: str = "f32") -> SeeingStepper:
    stepper = SeeingStepper(folder, native_threads=threads, codec=codec)
    assert stepper.config.image_spans == images.sees_itself
    stepper.images = images.placed(text_with(images))
    return stepper


def whole_chunks(images: PromptImages, seed: int) -> list[int]:
    """Random chunks, as the scheduler lengthens or cuts them for the sake of images."""
    chunks: list[int] = []
    for wish in random_chunks(len(images.token_ids), seed):
        start = sum(chunks)
        if n := images.whole(start, min(wish, len(images.token_ids) - start), 512):
            chunks.append(n)
    return [*chunks, rest] if (rest := len(images.token_ids) - sum(chunks)) else chunks


@pytest.mark.parametrize("seed", [None, 3, 4])
def test_logits_with_images(images: GemmaImages, folder: Path, seed: int | None) -> None:
    stepper = stepper_of(folder, images)
    ids = stepper.images.token_ids
    chunks = [len(ids)] if seed is None else whole_chunks(stepper.images, seed)
    assert seed is None or len(chunks) > 4
    found = difference(stepper.logits(ids, chunks), images.logits(ids))
    assert found.within(MAX_ABS, NMSE), found


@pytest.mark.parametrize("codec", ["f32", "f16", "q8", "k8v4", "q4"])
def test_the_library_computes_them_near_and_alike_in_any_steps(images: GemmaImages, folder: Path, codec: str) -> None:
    stepper, reference = stepper_of(folder, images, 2, codec), stepper_of(folder, images, 0, codec)
    ids = stepper.images.token_ids
    whole = stepper.logits(ids)
    assert torch.equal(stepper.logits(ids, whole_chunks(stepper.images, 3)), whole)
    wanted = reference.logits(ids)
    off = (whole - wanted).square().mean(1) / wanted.square().mean(1)
    assert off.quantile(0.9) < (2e-3 if codec in ("f32", "f16") else 1e-2)  # a mixture may send a row elsewhere


@pytest.mark.parametrize(("name", "codec"), [*product([*SEEING_GEMMA], ("f32", "q8"))], indirect=["name"])
def test_rows_of_the_reference_are_alike_in_any_steps(images: GemmaImages, folder: Path, codec: str) -> None:
    stepper = SeeingStepper(folder, layout=F32, ops=RowReferenceOps, codec=codec)  # decoded once, not in each step
    stepper.images = images.placed(text_with(images))
    ids = stepper.images.token_ids
    whole = stepper.logits(ids)
    assert torch.equal(stepper.logits(ids, whole_chunks(stepper.images, 5)), whole)
    assert difference(whole, stepper_of(folder, images, codec=codec).logits(ids)).nmse < 1e-8


def test_a_row_sees_those_after_it_in_its_image_only(images: GemmaImages, folder: Path) -> None:
    """A change of an image's last row is seen by the rows before it where they see both ways, and by no text before."""
    stepper = stepper_of(folder, images)
    ids = stepper.images.token_ids
    whole, last = stepper.logits(ids), stepper.images.places[-1]
    assert last.rows is not None
    rows = last.rows.rows.copy()
    rows[-1] += 1.0
    last.rows = replace(last.rows, rows=rows)
    changed = stepper.logits(ids)
    assert torch.equal(changed[: last.start], whole[: last.start])
    differs = (changed != whole).any(1).numpy()
    inside = differs[last.start : last.stop - 1]
    assert inside.all() if images.sees_itself else not inside.any()
    assert differs[last.stop - 1 :].all()


def test_images_that_see_themselves_are_never_cut() -> None:
    images = GemmaImages(build_seeing_gemma("both-ways"), [(2, 5), (4, 5)])
    one, other = [image_ids(source.span.digest, source.span.n_rows) for source in images.sources()]
    prompt = images.placed([7, 7, *one, 7, *other, 7])  # rows 2 … 11 and 13 … 32
    assert [prompt.whole(0, n, 64) for n in (0, 1, 2, 3, 11, 12, 13, 14)] == [0, 1, 2, 12, 12, 12, 13, 33]
    assert [prompt.whole(0, n, 20) for n in (12, 13, 14)] == [12, 13, 13]
    assert prompt.whole(2, 5, 9) == 0, "no room for its first image"
    assert prompt.whole(20, 3, 13) == 13, "from its middle on"
    assert prompt.reach(0, 13) == [0, 1, *[11] * 10, 12]
    assert prompt.reach(20, 14) == [*[32] * 13, 33]
    assert np.unique(prompt.reach(0, 34)).tolist() == [0, 1, 11, 12, 32, 33]
