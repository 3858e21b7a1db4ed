"""A load that comes upon bf16 scales which fp16 does not hold begins again, and holds them in f32."""

import json
import shutil
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
from localrun_testing.mlx_checkpoint import GROUP, affine, save_packed
from localrun_testing.seeing_models import save_seeing
from localrun_testing.tiny_models import save
from PIL import Image
from safetensors.torch import load_file, save_file

from localrun.backends.reference.backend import ReferenceBackend
from localrun.base.errors import ModelFileError
from localrun.base.request import LoadOptions
from localrun.engine.load import load
from localrun.engine.opened_model import open_model
from localrun.model.layer_weights import AttentionWeights
from localrun.model.weight_sizes import allocated_bytes
from localrun.ops.interface import CancelFlag


def tiny_packed(folder: Path, first_scale: float) -> Path:
    """Four bits by MLX, one of whose scales is far from the others."""
    packed, _ = save_packed(save("qwen3-moe", folder / "plain32"), folder, "affine", 4)
    tensors = load_file(packed / "model.safetensors")
    name = next(name for name in tensors if name.endswith("q_proj.scales"))
    tensors[name][0, 0] = first_scale
    save_file(tensors, packed / "model.safetensors")
    return packed


@pytest.mark.parametrize(("scale", "held"), [(1e-30, True), (1e-3, False)], ids=["far", "near"])
def test_a_load_holds_what_fp16_does_not_in_f32(scale: float, held: bool, tmp_path: Path) -> None:
    loaded = load(LoadOptions(tiny_packed(tmp_path, scale), ctx=128, threads=1))
    loaded.engine.close()
    first = loaded.model.weights.layers[0].mixing
    assert isinstance(first, AttentionWeights)
    assert first.q.packed.qtype == ("INT4_F32_G32" if held else "Q4_1")
    assert loaded.plan.weights_bytes == allocated_bytes(loaded.model.weights)


def test_numbers_that_are_none_are_refused_all_the_same(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="not finite") as caught:
        load(LoadOptions(tiny_packed(tmp_path, float("nan")), ctx=128, threads=1))
    assert caught.value.code == "NOT_FINITE"


def packed_tower(folder: Path, first_row: float) -> tuple[Path, Path]:
    """A model that sees whose tower is packed by MLX, a row of its last matrix `first_row` times as large as the
    others; and one of the same numbers in f32."""
    plain = save_seeing("qwen3.5", folder / "plain")
    numbers = load_file(plain / "model.safetensors")
    packed = dict(numbers)
    numbers["model.visual.merger.linear_fc2.weight"][0] *= first_row
    numbers["model.visual.blocks.0.attn.proj.weight"] *= 2.0**-20  # bf16 that is fp16 times a power of two
    for name, values in list(numbers.items()):
        if name.startswith("model.visual.") and values.ndim == 2 and values.shape[1] % GROUP == 0 and "pos" not in name:
            parts = affine(values, 4, torch.bfloat16)
            numbers[name] = parts.pop("numbers")
            packed |= {name.removesuffix("weight") + kind: part.contiguous() for kind, part in parts.items()}
    shutil.copytree(plain, folder / "packed")
    save_file(numbers, plain / "model.safetensors")
    save_file(packed, folder / "packed" / "model.safetensors")
    config = json.loads((plain / "config.json").read_text())
    config["quantization"] = {"group_size": GROUP, "bits": 4}
    (folder / "packed" / "config.json").write_text(json.dumps(config))
    return folder / "packed", plain


@pytest.mark.parametrize(("first_row", "held"), [(2.0**-40, "INT4_F32_G32"), (1.0, "Q4_1")], ids=["far", "near"])
def test_a_packed_tower_makes_the_rows_of_its_numbers(first_row: float, held: str, tmp_path: Path) -> None:
    file = BytesIO()
    Image.fromarray(np.random.default_rng(1).integers(0, 256, (24, 40, 3), dtype=np.uint8)).save(file, "PNG")
    backend, rows = ReferenceBackend(), []
    for path in packed_tower(tmp_path, first_row):
        tower = open_model(LoadOptions(path)).sight.tower
        assert tower is not None
        layout = backend.layout(1 << 30, 1 << 20, 1)
        projector = tower.projector(backend, layout)
        plan = projector.plan(40, 24, 100)
        rows.append(projector.encode(file.getvalue(), plan, lambda share: None, CancelFlag()).rows)
        assert tower.weight_bytes(layout) == projector.n_bytes
        assert tower.type_of(tower.refs["merger.down"]) in (held, "F32")
    assert np.abs(rows[1]).max() > 0.1
    np.testing.assert_allclose(rows[0], rows[1], rtol=1e-4, atol=1e-4)
