"""Gemma 4's embedder of images (12B) against transformers, from a checkpoint and from a projector."""

import json
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from localrun_testing.instruction_sets import all_here, using
from localrun_testing.tiny_gemma_towers import write_gemma_embedder
from localrun_testing.tiny_models import randomise
from PIL import Image
from safetensors.torch import save_file
from transformers.models.gemma4_unified.configuration_gemma4_unified import (
    Gemma4UnifiedTextConfig,
    Gemma4UnifiedVisionConfig,
)
from transformers.models.gemma4_unified.modeling_gemma4_unified import Gemma4UnifiedVisionEmbedder

from localrun.backends.cpu.backend import CpuBackend
from localrun.backends.interface import Backend
from localrun.backends.reference.backend import ReferenceBackend
from localrun.base.errors import ModelFileError
from localrun.formats.gguf import open_gguf
from localrun.formats.safetensors import open_safetensors
from localrun.formats.source import TensorSource
from localrun.images.patches import patches_by_line, pixels_of
from localrun.images.sizes import ScaledSize
from localrun.model.vision.embedder_projector import EmbedderProjector
from localrun.model.vision.families import required_family
from localrun.model.weight_sizes import allocated_bytes
from localrun.ops.interface import CancelFlag

HIDDEN, OUT_SIZE, SIDE = 48, 40, 12
SHAPE: dict[str, Any] = {
    "patch_size": 4,
    "pooling_kernel_size": 3,
    "mm_embed_dim": HIDDEN,
    "mm_posemb_size": 300,
    "output_proj_dims": HIDDEN,
}


@pytest.fixture(params=("reference", *all_here()))
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    if request.param == "reference":
        yield ReferenceBackend()
        return
    with using(request.param):
        yield CpuBackend()


def build() -> Any:
    config = Gemma4UnifiedVisionConfig(**SHAPE)
    part: Any = Gemma4UnifiedVisionEmbedder(config, Gemma4UnifiedTextConfig(hidden_size=OUT_SIZE))
    randomise(part, seed=4)
    return part.float().eval()


def in_file(name: str) -> str:
    part = name.removeprefix("multimodal_embedder.")
    return f"model.{'vision_embedder' if part == name else 'embed_vision'}.{part}"


def save(folder: Path, **changes: object) -> Path:
    state = {in_file(name): one.contiguous() for name, one in build().state_dict().items()}
    save_file(state, folder / "model.safetensors")
    vision = {**SHAPE, "model_type": "gemma4_unified_vision", **changes}
    config = {"model_type": "gemma4_unified", "vision_config": vision, "text_config": {"hidden_size": OUT_SIZE}}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def projector_of(source: TensorSource, backend: Backend) -> EmbedderProjector:
    family, layout = required_family(source), backend.layout(1 << 40, 1 << 20, 2)
    config = family.config(source)
    part = EmbedderProjector(
        config,
        lambda: family.load(source, config, layout, backend.device),
        lambda recording, rows: backend.encoder(layout, recording, rows),
        lambda: "tiny",
        0,
    )
    refs = family.refs(config, source)
    counted = family.weight_bytes(config, refs, lambda ref: source.tensors[ref.name].qtype, layout.nbytes)
    assert allocated_bytes(part.tower.weights) == counted  # type: ignore[arg-type]
    return part


@pytest.mark.parametrize("form", ["checkpoint", "projector"])
def test_rows_are_those_of_transformers(form: str, backend: Backend, tmp_path: Path) -> None:
    source: TensorSource = open_safetensors(save(tmp_path))
    if form == "projector":
        source = open_gguf(write_gemma_embedder(tmp_path / "mmproj.gguf", build(), Gemma4UnifiedVisionConfig(**SHAPE)))
    projector = projector_of(source, backend)
    for width, height in ((70, 41), (1, 1), (9, 300)):
        drawn = np.random.default_rng(width).integers(0, 256, (height, width, 3), dtype=np.uint8)
        file = BytesIO()
        Image.fromarray(drawn).save(file, "PNG")
        plan = projector.plan(width, height, 1024)
        found = projector.encode(file.getvalue(), plan, lambda share: None, CancelFlag()).rows
        size = ScaledSize(plan.width, plan.height, plan.width // SIDE, plan.height // SIDE)
        patches = patches_by_line(pixels_of(Image.fromarray(drawn), size, (0, 0, 0), (1, 1, 1)), SIDE)
        line, column = np.divmod(np.arange(size.n_rows), size.columns)
        places = torch.from_numpy(np.stack([column, line], axis=1))[None]
        with torch.no_grad():
            expected = build()(torch.from_numpy(patches)[None], places).pooler_output[0].numpy()
        most = 1e-4 if isinstance(backend, ReferenceBackend) else 6e-2
        assert found.shape == expected.shape == (plan.n_rows, OUT_SIZE)
        assert np.abs(found - expected).max() < most


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"mm_embed_dim": 56, "output_proj_dims": 56}, "BAD_TENSOR"),
        ({"mm_embed_dim": 0, "output_proj_dims": 0}, "BAD_CONFIG"),
        ({"output_proj_dims": 56}, "BAD_CONFIG"),
        ({"mm_posemb_size": 100}, "BAD_CONFIG"),
        ({"patch_size": 8}, "BAD_TENSOR"),
        ({"patch_size": "4"}, "BAD_TYPE"),
    ],
)
def test_a_wrong_file_is_one_clear_error(changes: dict[str, object], code: str, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError) as error:
        projector_of(open_safetensors(save(tmp_path, **changes)), ReferenceBackend())
    assert error.value.code == code
