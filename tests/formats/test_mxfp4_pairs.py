"""MXFP4 in two tensors of a checkpoint: the numbers that transformers decodes, and the blocks of a GGUF."""

import json
from pathlib import Path

import pytest
import torch
from localrun_testing.mxfp4_checkpoint import decoded, packed
from safetensors.torch import save_file

from localrun.formats.quant import QUANT_TYPES
from localrun.formats.safetensors import SafetensorsFolder, open_safetensors

N, ROWS, COLUMNS = 3, 10, 96


def written(folder: Path, **tensors: torch.Tensor) -> SafetensorsFolder:
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({"quantization_config": {"quant_method": "mxfp4"}}))
    return open_safetensors(folder)


def test_two_tensors_are_one_of_the_numbers_that_transformers_decodes(tmp_path: Path) -> None:
    pair = packed(N, ROWS, COLUMNS, seed=1)
    model = written(tmp_path, plain=torch.zeros(2, 2), **{f"w{kind}": part for kind, part in pair.items()})
    info = model.tensors["w"]
    assert set(model.tensors) == {"plain", "w"}
    assert (info.qtype, info.shape, info.nbytes) == ("MXFP4", (N, ROWS, COLUMNS), N * ROWS * COLUMNS // 32 * 17)
    raw = torch.frombuffer(model.read("w"), dtype=torch.uint8)
    found = QUANT_TYPES["MXFP4"].decode(raw, info.shape)
    assert torch.equal(found, decoded(pair).swapaxes(1, 2))


def test_any_rows_are_those_of_the_whole(tmp_path: Path) -> None:
    model = written(tmp_path, **{f"w{kind}": part for kind, part in packed(N, ROWS, COLUMNS, seed=2).items()})
    whole, row_bytes = model.read("w"), COLUMNS // 32 * 17
    for first, n in ((0, 1), (7, 5), (29, 1), (4, 0)):
        assert model.read("w", first, n) == whole[first * row_bytes : (first + n) * row_bytes]
    with pytest.raises(ValueError, match="of a tensor of"):
        model.read("w", 25, 6)


@pytest.mark.parametrize(
    "odd",
    [
        {"w_blocks": torch.zeros(2, 4, 16, dtype=torch.uint8)},
        {"w_blocks": torch.zeros(2, 4, 16, dtype=torch.uint8), "w_scales": torch.zeros(2, 3, dtype=torch.uint8)},
        {"w_blocks": torch.zeros(2, 4, 8, dtype=torch.uint8), "w_scales": torch.zeros(2, 4, dtype=torch.uint8)},
        {"w_blocks": torch.zeros(2, 4, 16), "w_scales": torch.zeros(2, 4)},
        {"w_blocks": torch.zeros(16, dtype=torch.uint8), "w_scales": torch.zeros((), dtype=torch.uint8)},
    ],
    ids=["alone", "other rows", "other blocks", "floats", "no rows"],
)
def test_what_is_no_pair_stays_as_it_is(odd: dict[str, torch.Tensor], tmp_path: Path) -> None:
    assert set(written(tmp_path, **odd).tensors) == set(odd)
