"""Towers against transformers: any size, several images side by side, deepstack; from files that are well formed."""

import json
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from localrun_testing.instruction_sets import all_here, using
from localrun_testing.projector_gguf import write_projector
from localrun_testing.tiny_towers import SHAPE, TINY_TOWERS, rows_of_transformers, save_tower
from PIL import Image
from safetensors.torch import load_file, save_file

from localrun.backends.cpu.abi import SCRATCH_BYTES
from localrun.backends.cpu.backend import CpuBackend
from localrun.backends.interface import Backend
from localrun.backends.reference.backend import ReferenceBackend
from localrun.base.errors import ImageError, ModelFileError
from localrun.formats.gguf import open_gguf
from localrun.formats.metadata import Metadata
from localrun.formats.safetensors import open_safetensors
from localrun.formats.source import TensorSource
from localrun.model.vision.families import required_family
from localrun.model.vision.positions import learned_positions, places_by_square
from localrun.model.vision.projector import TowerProjector, patches_of
from localrun.model.vision.read_config import tower_config
from localrun.model.vision.shapes import tower_bytes, working_bytes
from localrun.model.vision.weights import load_tower, tower_refs
from localrun.model.weight_sizes import allocated_bytes
from localrun.ops.image_rows import ImagePlan
from localrun.ops.interface import CancelFlag, StepCancelled

SIZES = ((32, 32), (100, 30), (17, 131), (1, 1), (64, 80))


@pytest.fixture(params=("reference", *all_here()))
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    if request.param == "reference":
        yield ReferenceBackend()
        return
    with using(request.param):
        yield CpuBackend()


def projector_of(source: TensorSource, backend: Backend) -> TowerProjector:
    family = required_family(source)
    config, layout = family.config(source), backend.layout(0, 1 << 30, 2)
    projector = TowerProjector(
        config,
        lambda: family.load(source, config, layout, backend.device),
        lambda recording, rows: backend.encoder(layout, recording, rows),
        lambda: "tiny",
        77,
    )
    assert projector.n_bytes == 0
    assert projector.tower.config == config
    assert projector.n_bytes == 77
    return projector


def image_of(width: int, height: int) -> bytes:
    drawn = np.random.default_rng(width).integers(0, 256, (height, width, 3), dtype=np.uint8)
    file = BytesIO()
    Image.fromarray(drawn).save(file, "PNG")
    return file.getvalue()


@pytest.mark.parametrize("name", TINY_TOWERS)
def test_rows_are_those_of_transformers(name: str, backend: Backend, tmp_path: Path) -> None:
    projector = projector_of(open_safetensors(save_tower(name, tmp_path)), backend)
    config = projector.tower.config
    images = [image_of(*size) for size in SIZES]
    plans = [projector.plan(*size, 40) for size in SIZES]
    patches = [patches_of(image, plan, config) for image, plan in zip(images, plans, strict=True)]
    found = projector.rows_of(patches, plans, lambda share: None, CancelFlag())
    grids = [(plan.height // 8, plan.width // 8) for plan in plans]
    expected, added = rows_of_transformers(TINY_TOWERS[name].build(), torch.from_numpy(np.concatenate(patches)), grids)
    most = 1e-4 if isinstance(backend, ReferenceBackend) else 6e-2
    assert np.abs(np.concatenate([one.rows for one in found]) - expected.numpy()).max() < most
    assert len(added) == projector.n_added
    for place, rows in enumerate(added):
        assert np.abs(np.concatenate([one.added[place] for one in found]) - rows.numpy()).max() < most
    assert [plan.n_rows for plan in plans] == [len(one.rows) for one in found]


@pytest.mark.parametrize("name", TINY_TOWERS)
def test_a_projector_makes_the_rows_of_its_checkpoint(name: str, tmp_path: Path) -> None:
    recipe = TINY_TOWERS[name]
    tapped = recipe.more.get("deepstack_visual_indexes", ())
    path = write_projector(tmp_path / "mmproj-F32.gguf", recipe.build().state_dict(), SHAPE, tapped)
    data, plan = image_of(70, 50), ImagePlan(80, 48, 15, (3, 5), 0.0)
    found, expected = (
        projector_of(source, ReferenceBackend()).encode(data, plan, lambda share: None, CancelFlag())
        for source in (open_gguf(path), open_safetensors(save_tower(name, tmp_path)))
    )
    assert np.abs(found.rows - expected.rows).max() < 1e-5
    assert [np.abs(a - b).max() < 1e-5 for a, b in zip(found.added, expected.added, strict=True)] == [True] * len(
        tapped
    )


@pytest.mark.parametrize(("name", "form"), [*product(TINY_TOWERS, ["checkpoint", "F16", "Q8_0"])])
def test_memory_is_counted_before_anything_is_loaded(name: str, form: str, backend: Backend, tmp_path: Path) -> None:
    """Weights to the byte; of working memory what the library reserves, and little more."""
    recipe = TINY_TOWERS[name]
    tapped = recipe.more.get("deepstack_visual_indexes", ())
    source: TensorSource = open_safetensors(save_tower(name, tmp_path))
    if form != "checkpoint":
        source = open_gguf(
            write_projector(tmp_path / "mmproj.gguf", recipe.build().state_dict(), SHAPE, tapped, qtype=form)
        )
    config, layout = tower_config(source), backend.layout(1 << 40, 1 << 20, 2)
    refs = tower_refs(config, source)
    tower = load_tower(source, config, layout, backend.device)
    counted = tower_bytes(config, refs, lambda ref: source.tensors[ref.name].qtype, layout.nbytes)
    assert allocated_bytes(tower.weights) == counted  # type: ignore[arg-type]
    needed = working_bytes(config, refs, 40, lambda recording, n: backend.encoder_bytes(recording, n, 2))
    if isinstance(backend, CpuBackend):
        reserved = []
        for stage in tower.stages():
            encoder = backend.encoder(layout, stage, 160)
            reserved.append(sum(n_bytes for _, n_bytes in encoder.reserved))
            assert reserved[-1] <= backend.encoder_bytes(stage, 160, 2)
            encoder.close()
        assert max(reserved) <= needed <= 2 * max(reserved) + 2 * SCRATCH_BYTES


@pytest.mark.parametrize("share", [1.0, 1.001])
def test_halves_are_bf16_where_that_holds_them(share: float, backend: Backend, tmp_path: Path) -> None:
    """Weights that were bf16 give the rows of bf16, to the bit; others keep the three bits that halves have more."""
    recipe = TINY_TOWERS["qwen3.5"]
    usual = {name: one.where(one.abs() > 1e-3, 0.0) for name, one in recipe.build().state_dict().items()}
    state = {name: one.bfloat16().float() * share for name, one in usual.items()}
    data, plan = image_of(70, 50), ImagePlan(80, 48, 15, (3, 5), 0.0)
    halves, bf16 = (
        projector_of(
            open_gguf(write_projector(tmp_path / f"mmproj-{qtype}.gguf", state, SHAPE, qtype=qtype)), backend
        ).encode(data, plan, lambda share: None, CancelFlag())
        for qtype in ("F16", "BF16")
    )
    assert np.array_equal(halves.rows, bf16.rows) == (share == 1.0)


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("clip.projector_type", "gemma3", "UNSUPPORTED"),
        ("clip.vision.block_count", 5, "MISSING_TENSOR"),
        ("clip.vision.block_count", 3, "UNSUPPORTED"),
        ("clip.vision.patch_size", 0, "BAD_CONFIG"),
        ("clip.vision.attention.head_count", 7, "BAD_CONFIG"),
        ("clip.vision.image_mean", [0.5], "BAD_CONFIG"),
        ("clip.vision.image_std", [0.5, 0.0, 0.5], "BAD_CONFIG"),
        ("clip.vision.projection_dim", None, "MISSING_KEY"),
    ],
)
def test_a_wrong_projector_is_one_clear_error(key: str, value: object, code: str, tmp_path: Path) -> None:
    path = write_projector(tmp_path / "mmproj.gguf", TINY_TOWERS["qwen3.5"].build().state_dict(), SHAPE)
    opened = open_gguf(path)
    with pytest.raises(ModelFileError) as error:
        projector_of(replace(opened, metadata=Metadata({**opened.metadata, key: value}, path)), ReferenceBackend())
    assert error.value.code == code


def test_ears_of_a_projector_are_left_out(tmp_path: Path) -> None:
    state = {**TINY_TOWERS["qwen3.5"].build().state_dict()}
    path = write_projector(tmp_path / "mmproj.gguf", state, SHAPE, more={"a.blk.0.ln1.weight": torch.ones(8)})
    assert projector_of(open_gguf(path), ReferenceBackend()).n_added == 0
    path = write_projector(tmp_path / "mmproj.gguf", state, SHAPE, more={"v.blk.0.odd.weight": torch.ones(8)})
    with pytest.raises(ModelFileError):
        projector_of(open_gguf(path), ReferenceBackend())


def test_an_image_is_encoded_from_its_file(tmp_path: Path) -> None:
    projector = projector_of(open_safetensors(save_tower("qwen3-vl", tmp_path)), ReferenceBackend())
    data, plan = image_of(70, 50), projector.plan(70, 50, 1024)
    told: list[float] = []
    one = projector.encode(data, plan, told.append, CancelFlag())
    again = projector.rows_of([patches_of(data, plan, projector.tower.config)], [plan], told.append, CancelFlag())[0]
    assert np.array_equal(one.rows, again.rows)
    assert one.rows.shape == (plan.n_rows, 40)
    assert plan.grid is not None
    assert plan.n_rows == plan.grid[0] * plan.grid[1]
    assert told[: len(told) // 2] == sorted(told[: len(told) // 2])
    assert told[-1] == 1.0


def test_encoding_stops_when_it_is_cancelled(tmp_path: Path) -> None:
    projector = projector_of(open_safetensors(save_tower("qwen3.5", tmp_path)), ReferenceBackend())
    cancel = CancelFlag()
    cancel.set()
    with pytest.raises(StepCancelled):
        projector.encode(image_of(32, 32), projector.plan(32, 32, 100), lambda share: None, cancel)
    with pytest.raises(ImageError):
        projector.encode(b"no image", projector.plan(32, 32, 100), lambda share: None, CancelFlag())


def test_corners_of_an_image_have_the_corners_of_the_table() -> None:
    table = np.arange(25, dtype=np.float32)[:, None]
    lines, columns = places = places_by_square(6, 4, 2)
    rows = learned_positions(table, 6, 4, places)[:, 0].tolist()
    found = dict(zip(zip(lines.tolist(), columns.tolist(), strict=True), rows, strict=True))
    assert [found[at] for at in ((0, 0), (0, 3), (5, 0), (5, 3))] == [0.0, 4.0, 20.0, 24.0]


def changed_config(folder: Path, **changes: object) -> None:
    config = json.loads((folder / "config.json").read_text())
    config["vision_config"] |= changes
    (folder / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"depth": 0}, "BAD_CONFIG"),
        ({"depth": 10**9}, "BAD_CONFIG"),
        ({"num_heads": 5}, "BAD_CONFIG"),
        ({"depth": "four"}, "BAD_TYPE"),
        ({"num_position_embeddings": 50}, "BAD_CONFIG"),
        ({"hidden_act": "swish"}, "UNSUPPORTED"),
        ({"temporal_patch_size": 3}, "UNSUPPORTED"),
        ({"deepstack_visual_indexes": [9]}, "BAD_CONFIG"),
        ({"deepstack_visual_indexes": [2, 1]}, "BAD_CONFIG"),
        ({"depth": 5}, "MISSING_TENSOR"),
        ({"depth": 3}, "UNSUPPORTED"),
        ({"intermediate_size": 88}, "BAD_TENSOR"),
        ({"patch_size": 4}, "BAD_TENSOR"),
    ],
)
def test_a_wrong_file_is_one_clear_error(changes: dict[str, object], code: str, tmp_path: Path) -> None:
    changed_config(save_tower("qwen3.5", tmp_path), **changes)
    with pytest.raises(ModelFileError) as error:
        projector_of(open_safetensors(tmp_path), ReferenceBackend())
    assert error.value.code == code
    assert error.value.exit_code == 6


def test_weights_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    save_tower("qwen3.5", tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["model.visual.pos_embed.weight"][3, 3] = torch.nan
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(ModelFileError) as error:
        projector_of(open_safetensors(tmp_path), ReferenceBackend())
    assert error.value.code == "NOT_FINITE"
