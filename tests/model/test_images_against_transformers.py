"""Logits of texts with images are those of transformers, however they are cut into steps; its tower gives the rows."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from localrun_testing.oracle import difference, token_ids
from localrun_testing.seeing_models import IMAGE, SEEING, TinyImages, build_seeing, save_seeing
from localrun_testing.stepper import Stepper, random_chunks

from localrun.base.image_ids import image_ids
from localrun.engine.images import PromptImages

MAX_ABS, NMSE = 1e-4, 1e-9
GRIDS = ((3, 5), (1, 1), (9, 2))


def text_with(images: TinyImages) -> list[int]:
    """A text with images at its beginning and, a token apart, in its middle, and more text after them."""
    first, *others = [image_ids(source.span.digest, source.span.n_rows) for source in images.sources()]
    text = token_ids(90, IMAGE, seed=1)
    return [*text[:2], *first, *text[2:60], *(row for image in others for row in [*image, 7]), *text[60:]]


@pytest.fixture(scope="module", params=SEEING)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def images(name: str) -> TinyImages:
    return TinyImages(build_seeing(name), GRIDS)


@pytest.fixture(scope="module")
def folder(name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_seeing(name, tmp_path_factory.mktemp("seeing"))


@pytest.mark.parametrize("chunking", ["at-once", "one-by-one", "random"])
def test_logits_with_images(images: TinyImages, folder: Path, chunking: str) -> None:
    stepper = seeing_stepper(folder, images)
    n = len(stepper.images.token_ids)
    chunks = {"at-once": [n], "one-by-one": [1] * n, "random": random_chunks(n, seed=3)}[chunking]
    found = difference(stepper.logits(stepper.images.token_ids, chunks), images.logits(stepper.images.token_ids))
    assert found.within(MAX_ABS, NMSE), found


def test_the_library_computes_them_near_and_alike_in_any_steps(images: TinyImages, folder: Path) -> None:
    stepper = seeing_stepper(folder, images, threads=2)
    ids = stepper.images.token_ids
    whole = stepper.logits(ids)
    assert torch.equal(stepper.logits(ids, random_chunks(len(ids), seed=3)), whole)
    assert difference(whole, images.logits(ids)).nmse < 1e-3  # some instruction sets multiply floats as bf16


def test_rows_of_an_image_count_where_they_lie(images: TinyImages, folder: Path) -> None:
    """The same rows in another order give other logits from there on, and none before."""
    stepper = seeing_stepper(folder, images)
    ids = stepper.images.token_ids
    whole, first = stepper.logits(ids), stepper.images.places[0]
    assert first.rows is not None
    first.rows = replace(first.rows, rows=first.rows.rows[::-1].copy())
    changed = stepper.logits(ids)
    assert torch.equal(changed[: first.start], whole[: first.start])
    assert not torch.allclose(changed[first.stop :], whole[first.stop :], atol=1e-3)


def seeing_stepper(folder: Path, images: TinyImages, threads: int = 0) -> "SeeingStepper":
    stepper = SeeingStepper(
        folder, native_threads=threads, change=lambda config: replace(config, n_added=images.n_added)
    )
    stepper.images = images.placed(text_with(images))
    return stepper


class SeeingStepper(Stepper):
    images: PromptImages
