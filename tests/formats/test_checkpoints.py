"""Quantised checkpoints: the numbers that each format's own library unpacks, and parts that lie."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from localrun.base.errors import ModelFileError
from localrun.formats.checkpoints.small_floats import f8_e4m3, f8_e5m2, powers_of_two
from localrun.formats.quant import QUANT_TYPES
from localrun.formats.safetensors import SafetensorsFolder, open_safetensors

SAMPLES = Path(__file__).parent / "checkpoint_samples"
DIGESTS = json.loads((SAMPLES / "digests.json").read_text())
NAME = "w.weight"

Tensors = dict[str, torch.Tensor]


def sample(name: str) -> tuple[dict[str, Any], Tensors]:
    """The config.json and the tensors of a sample."""
    with safe_open(SAMPLES / f"{name}.safetensors", framework="pt") as file:
        return json.loads(file.metadata()["config"]), {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118


def written(folder: Path, config: dict[str, Any], tensors: Tensors) -> SafetensorsFolder:
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config))
    return open_safetensors(folder)


def unpacked(model: SafetensorsFolder, first: int = 0, n: int | None = None) -> torch.Tensor:
    """The numbers of some rows, times the scale beside them."""
    info = model.tensors[NAME]
    raw = torch.frombuffer(model.read(NAME, first, n), dtype=torch.uint8)
    values = QUANT_TYPES[info.qtype].decode(raw, info.shape if n is None else (n, info.shape[-1]))
    if (scale := NAME.removesuffix("weight") + "scale") not in model.tensors:
        return values
    (factor,) = set(np.frombuffer(model.read(scale), np.float32).tolist())
    scaled: torch.Tensor = values * factor
    return scaled


def test_samples_are_those_that_the_libraries_wrote() -> None:
    found = {path.stem: hashlib.sha256(path.read_bytes()).hexdigest() for path in SAMPLES.glob("*.safetensors")}
    assert found == DIGESTS


@pytest.mark.parametrize(("name", "decode"), {"F8_E4M3": f8_e4m3, "F8_E5M2": f8_e5m2, "F8_E8M0": powers_of_two}.items())
def test_small_floats_are_those_of_torch(name: str, decode: Callable[[np.ndarray], np.ndarray]) -> None:
    codes = np.arange(256, dtype=np.uint8)
    expected = QUANT_TYPES[name].decode(torch.from_numpy(codes), (256,)).numpy()
    np.testing.assert_array_equal(decode(codes), expected)


@pytest.mark.parametrize("name", DIGESTS)
def test_numbers_are_those_of_the_library(name: str, tmp_path: Path) -> None:
    config, tensors = sample(name)
    expected = tensors.pop("expected")
    model = written(tmp_path, config, tensors)
    assert set(model.tensors) <= {NAME, NAME.removesuffix("weight") + "scale"}
    assert model.tensors[NAME].shape == expected.shape
    found, n_rows = unpacked(model), expected.numel() // expected.shape[-1]
    if name.startswith("nvfp4"):  # the scale of the whole is a factor of products, and not of each number
        torch.testing.assert_close(found, expected, rtol=2**-22, atol=0)
    else:
        assert torch.equal(found, expected)
    assert torch.equal(unpacked(model, n_rows - 2, 2), found.reshape(n_rows, -1)[-2:])


Change = Callable[[dict[str, Any], Tensors], None]


def config_says(**values: Any) -> Change:
    return lambda config, tensors: next(iter(config.values())).update(values)


def put(kind: str, change: Callable[[torch.Tensor], torch.Tensor | None]) -> Change:
    """Another tensor in the place of one; None: without it."""

    def apply(config: dict[str, Any], tensors: Tensors) -> None:
        changed = change(tensors.pop(f"w.{kind}"))
        if changed is not None:
            tensors[f"w.{kind}"] = changed

    return apply


def nowhere(bits: int) -> Callable[[torch.Tensor], torch.Tensor]:
    """The first number of a tensor made into other bits."""

    def apply(tensor: torch.Tensor) -> torch.Tensor:
        raw = tensor.contiguous().view(torch.uint8).clone()
        size = tensor.element_size()
        raw.view(-1)[:size] = torch.tensor(list(bits.to_bytes(size, "little")), dtype=torch.uint8)
        return raw.view(tensor.dtype)

    return apply


BLOCKS, WHOLE = "fp8-0-blocks", "fp8-tensor"
PACKED = "nvfp4-compressed-tensors"
INT4, NVFP4 = "mlx-02-affine-4-g64", "mlx-11-nvfp4-4-g16"
LIES: dict[str, tuple[str, str, Change]] = {
    "bits": (INT4, "BAD_TENSOR", config_says(bits=7)),
    "bits as text": (INT4, "BAD_TENSOR", config_says(bits="4")),
    "a group of none": (INT4, "BAD_TENSOR", config_says(group_size=0)),
    "another group": (INT4, "BAD_TENSOR", config_says(group_size=32)),
    "a group that does not divide": (INT4, "BAD_TENSOR", config_says(group_size=96)),
    "other bits": (INT4, "BAD_TENSOR", config_says(bits=8)),
    "an unknown mode": (INT4, "UNSUPPORTED", config_says(mode="ternary")),
    "a mode that is a list": (INT4, "UNSUPPORTED", config_says(mode=["affine"])),
    "a mode of others": (INT4, "BAD_TENSOR", config_says(mode="mxfp4")),
    "no biases": (INT4, "BAD_TENSOR", put("biases", lambda tensor: None)),
    "biases of another shape": (INT4, "BAD_TENSOR", put("biases", lambda tensor: tensor[:, :1].contiguous())),
    "scales as codes": (INT4, "BAD_TENSOR", put("scales", lambda tensor: tensor.to(torch.uint8))),
    "codes of one dimension": (INT4, "BAD_TENSOR", put("weight", lambda tensor: tensor.flatten())),
    "a scale that is no number": (INT4, "NOT_FINITE", put("scales", nowhere(0x7FC0))),
    "an infinite bias": (INT4, "NOT_FINITE", put("biases", nowhere(0x7F80))),
    "scales too far apart": (INT4, "UNSUPPORTED", put("scales", nowhere(0x7F00))),
    "an e4m3 scale that is no number": (NVFP4, "NOT_FINITE", put("scales", nowhere(0x7F))),
    "a negative e4m3 scale": (NVFP4, "UNSUPPORTED", put("scales", nowhere(0x99))),
    "a group of another mode": (NVFP4, "BAD_TENSOR", config_says(group_size=32)),
    "a size of blocks": (BLOCKS, "BAD_TENSOR", config_says(weight_block_size=[2, 32])),
    "blocks of none": (BLOCKS, "BAD_TENSOR", config_says(weight_block_size=[0, 32])),
    "one size of blocks": (BLOCKS, "BAD_TENSOR", config_says(weight_block_size=128)),
    "scales of integers": (BLOCKS, "BAD_TENSOR", put("weight_scale_inv", lambda tensor: tensor.to(torch.int32))),
    "a code that is no number": (BLOCKS, "NOT_FINITE", put("weight", nowhere(0x7F))),
    "a block's scale that is no number": (BLOCKS, "NOT_FINITE", put("weight_scale_inv", nowhere(0x7FC00000))),
    "a matrix's scale that is no number": (WHOLE, "NOT_FINITE", put("weight_scale", nowhere(0x7FC00000))),
    "two scales": (WHOLE, "BAD_TENSOR", put("weight_scale", lambda tensor: tensor.repeat(2))),
    "codes of a vector": (WHOLE, "BAD_TENSOR", put("weight", lambda tensor: tensor.flatten())),
    "no E4M3 scales": (PACKED, "BAD_TENSOR", put("weight_scale", lambda tensor: None)),
    "E4M3 scales of other groups": (
        PACKED,
        "BAD_TENSOR",
        put("weight_scale", lambda tensor: tensor[:, 1:].contiguous()),
    ),
    "a packed scale that is no number": (PACKED, "NOT_FINITE", put("weight_scale", nowhere(0x7F))),
    "a whole scale of zero": (PACKED, "NOT_FINITE", put("weight_global_scale", nowhere(0))),
    "two whole scales": (PACKED, "BAD_TENSOR", put("weight_global_scale", lambda tensor: tensor.repeat(2))),
    "packed codes of a vector": (PACKED, "BAD_TENSOR", put("weight_packed", lambda tensor: tensor.flatten())),
    "biases of floats": (NVFP4, "BAD_TENSOR", lambda _, tensors: tensors.update({"w.biases": torch.ones(3, 8)})),
}


@pytest.mark.parametrize("lie", LIES)
def test_parts_that_lie_are_refused(lie: str, tmp_path: Path) -> None:
    name, code, change = LIES[lie]
    config, tensors = sample(name)
    del tensors["expected"]
    change(config, tensors)
    with pytest.raises(ModelFileError, match="w") as caught:
        unpacked(written(tmp_path, config, tensors))
    assert (caught.value.code, bool(caught.value.hint)) == (code, True)
