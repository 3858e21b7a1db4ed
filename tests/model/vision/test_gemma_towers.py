"""Towers of Gemma 4 against transformers: bounds that bite, standardised rows, any size; from files that are well
formed."""

import json
from collections.abc import Iterator
from io import BytesIO
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from localrun_testing.instruction_sets import all_here, using
from localrun_testing.tiny_gemma_towers import (
    BUDGET,
    OUT_SIZE,
    SHAPE,
    TINY_GEMMA_TOWERS,
    build_part,
    save_part,
    write_gemma_projector,
)
from PIL import Image
from safetensors.torch import load_file, save_file

from localrun.backends.cpu.abi import SCRATCH_BYTES
from localrun.backends.cpu.backend import CpuBackend
from localrun.backends.interface import Backend
from localrun.backends.reference.backend import ReferenceBackend
from localrun.base.errors import ModelFileError
from localrun.formats.gguf import open_gguf
from localrun.formats.safetensors import open_safetensors
from localrun.formats.source import TensorSource
from localrun.model.vision.families import required_family
from localrun.model.vision.gemma_projector import GemmaProjector, patches_of
from localrun.model.vision.gemma_tower import paired_dims
from localrun.model.weight_sizes import allocated_bytes
from localrun.ops.interface import CancelFlag, StepCancelled

SIZES = ((32, 32), (100, 30), (17, 131), (1, 1), (64, 80), (1, 400))


@pytest.fixture(params=("reference", *all_here()))
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    if request.param == "reference":
        yield ReferenceBackend()
        return
    with using(request.param):
        yield CpuBackend()


def projector_of(source: TensorSource, backend: Backend) -> GemmaProjector:
    family = required_family(source)
    layout = backend.layout(0, 1 << 30, 2)
    config = family.config(source)
    return GemmaProjector(
        config,
        lambda: family.load(source, config, layout, backend.device),
        lambda recording, rows: backend.encoder(layout, recording, rows),
        lambda: "tiny",
        0,
    )


def image_of(width: int, height: int) -> bytes:
    drawn = np.random.default_rng(width).integers(0, 256, (height, width, 3), dtype=np.uint8)
    file = BytesIO()
    Image.fromarray(drawn).save(file, "PNG")
    return file.getvalue()


@pytest.mark.parametrize("name", TINY_GEMMA_TOWERS)
def test_rows_are_those_of_transformers(name: str, backend: Backend, tmp_path: Path) -> None:
    part = build_part(name)
    projector = projector_of(open_safetensors(save_part(name, tmp_path)), backend)
    most = 1e-4 if isinstance(backend, ReferenceBackend) else 8e-2
    for size in SIZES:
        plan = projector.plan(*size, 1024)
        patches = patches_of(image_of(*size), plan, projector.config)
        found = projector.rows_of(patches, plan, lambda share: None, CancelFlag()).rows
        pixels = torch.from_numpy(patches) / 2 + 0.5  # as their processor has them
        expected = part.rows(pixels, plan.height // 4, plan.width // 4)
        assert found.shape == (plan.n_rows, OUT_SIZE)
        assert plan.n_rows <= BUDGET
        assert np.abs(found - expected.numpy()).max() < most, size


@pytest.mark.parametrize("name", TINY_GEMMA_TOWERS)
def test_a_projector_makes_the_rows_of_its_checkpoint(name: str, tmp_path: Path) -> None:
    path = write_gemma_projector(tmp_path / "mmproj-F32.gguf", build_part(name).state_dict(), SHAPE, OUT_SIZE)
    parts = [
        projector_of(source, ReferenceBackend())
        for source in (open_safetensors(save_part(name, tmp_path)), open_gguf(path))
    ]
    plan = parts[0].plan(70, 50, BUDGET)
    assert parts[1].plan(70, 50, BUDGET) == plan, "where the budgets are the same"
    rows = [one.encode(image_of(70, 50), plan, lambda share: None, CancelFlag()).rows for one in parts]
    assert np.abs(rows[0] - rows[1]).max() < 1e-5


@pytest.mark.parametrize(("name", "form"), [*product(TINY_GEMMA_TOWERS, ["checkpoint", "F16", "Q8_0"])])
def test_memory_is_counted_before_anything_is_loaded(name: str, form: str, backend: Backend, tmp_path: Path) -> None:
    """Weights to the byte; of working memory what the library reserves, and little more."""
    source: TensorSource = open_safetensors(save_part(name, tmp_path))
    if form != "checkpoint":
        state = build_part(name).state_dict()
        source = open_gguf(write_gemma_projector(tmp_path / "mmproj.gguf", state, SHAPE, OUT_SIZE, qtype=form))
    family, layout = required_family(source), backend.layout(1 << 40, 1 << 20, 2)
    config = family.config(source)
    refs = family.refs(config, source)
    tower = family.load(source, config, layout, backend.device)
    counted = family.weight_bytes(config, refs, lambda ref: source.tensors[ref.name].qtype, layout.nbytes)
    assert allocated_bytes(tower.weights) == counted
    needed = family.working_bytes(config, refs, 40, lambda recording, n: backend.encoder_bytes(recording, n, 2))
    if isinstance(backend, CpuBackend):
        encoder = backend.encoder(layout, tower.blocks(), 360)
        reserved = sum(n_bytes for _, n_bytes in encoder.reserved)
        encoder.close()
        assert reserved <= needed <= 2 * reserved + 2 * SCRATCH_BYTES


def test_bounds_may_be_infinite_and_not_anything_else(tmp_path: Path) -> None:
    part = build_part("clamped")
    layer = part.vision_tower.encoder.layers[1].self_attn.k_proj
    layer.input_min.fill_(-torch.inf)
    layer.input_max.fill_(torch.inf)
    projector = projector_of(open_safetensors(save_part("clamped", tmp_path, part)), ReferenceBackend())
    plan = projector.plan(32, 32, 1024)
    patches = patches_of(image_of(32, 32), plan, projector.config)
    found = projector.rows_of(patches, plan, lambda share: None, CancelFlag()).rows
    expected = part.rows(torch.from_numpy(patches) / 2 + 0.5, plan.height // 4, plan.width // 4)
    assert np.abs(found - expected.numpy()).max() < 1e-4
    for low, high in ((torch.nan, 1.0), (2.0, 1.0)):
        layer.input_min.fill_(low)
        layer.input_max.fill_(high)
        with pytest.raises(ModelFileError) as error:
            assert projector_of(open_safetensors(save_part("clamped", tmp_path, part)), ReferenceBackend()).tower
        assert error.value.code == "BAD_CONFIG"


def test_encoding_tells_how_far_it_is_and_stops_when_it_is_cancelled(tmp_path: Path) -> None:
    projector = projector_of(open_safetensors(save_part("plain", tmp_path)), ReferenceBackend())
    told: list[float] = []
    plan = projector.plan(32, 32, 100)
    projector.encode(image_of(32, 32), plan, told.append, CancelFlag())
    assert told == sorted(told)
    assert told[-1] == 1.0
    cancel = CancelFlag()
    cancel.set()
    with pytest.raises(StepCancelled):
        projector.encode(image_of(32, 32), plan, told.append, cancel)


def test_pairs_of_a_head_turn_by_the_column_then_by_the_line() -> None:
    assert paired_dims(8).tolist() == [0, 1, 4, 5, 2, 3, 6, 7]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"num_hidden_layers": 0}, "BAD_CONFIG"),
        ({"num_hidden_layers": 10**9}, "BAD_CONFIG"),
        ({"num_hidden_layers": "three"}, "BAD_TYPE"),
        ({"num_hidden_layers": 4}, "MISSING_TENSOR"),
        ({"num_hidden_layers": 2}, "UNSUPPORTED"),
        ({"head_dim": 20}, "BAD_CONFIG"),
        ({"hidden_activation": "silu"}, "UNSUPPORTED"),
        ({"num_key_value_heads": 1}, "UNSUPPORTED"),
        ({"position_embedding_size": 100}, "BAD_CONFIG"),
        ({"use_clipped_linears": True}, "MISSING_TENSOR"),
        ({"standardize": True}, "MISSING_TENSOR"),
        ({"patch_size": 8}, "BAD_TENSOR"),
    ],
)
def test_a_wrong_file_is_one_clear_error(changes: dict[str, object], code: str, tmp_path: Path) -> None:
    save_part("plain", tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["vision_config"] |= changes
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelFileError) as error:
        assert projector_of(open_safetensors(tmp_path), ReferenceBackend()).tower
    assert error.value.code == code


def test_a_budget_that_no_model_knows_is_refused(tmp_path: Path) -> None:
    save_part("plain", tmp_path)
    (tmp_path / "preprocessor_config.json").write_text('{"max_soft_tokens": 100}')
    with pytest.raises(ModelFileError) as error:
        assert projector_of(open_safetensors(tmp_path), ReferenceBackend()).tower
    assert error.value.code == "BAD_CONFIG"


def test_weights_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    save_part("plain", tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["model.vision_tower.patch_embedder.position_embedding_table"][1, 3, 3] = torch.nan
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(ModelFileError) as error:
        assert projector_of(open_safetensors(tmp_path), ReferenceBackend()).tower
    assert error.value.code == "NOT_FINITE"
