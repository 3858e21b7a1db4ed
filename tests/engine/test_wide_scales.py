"""A load that comes upon bf16 scales which fp16 does not hold begins again, and holds them in f32."""

from pathlib import Path

import pytest
from localrun_testing.mlx_checkpoint import save_packed
from localrun_testing.tiny_models import save
from safetensors.torch import load_file, save_file

from localrun.base.errors import ModelFileError
from localrun.base.request import LoadOptions
from localrun.engine.load import load
from localrun.model.layer_weights import AttentionWeights
from localrun.model.load import allocated_bytes


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
