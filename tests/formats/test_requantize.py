"""Quantising at load: the file's own layout of blocks, errors no larger than the plain encoders', row by row."""

from pathlib import Path

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType, quants
from localrun_testing.tiny_models import save

from localrun.formats.finite import first_not_finite
from localrun.formats.quant import QUANT_TYPES
from localrun.formats.requantize import ENCODERS, RequantizedSource, encode_q4_0
from localrun.formats.safetensors import open_safetensors


def error(raw: torch.Tensor, qtype: str, weights: torch.Tensor) -> float:
    decoded = QUANT_TYPES[qtype].decode(raw.flatten(), weights.shape)
    return float((decoded - weights).square().sum() / weights.square().sum())


@pytest.mark.parametrize("qtype", ["Q8_0", "Q4_0"])
@pytest.mark.parametrize("spread", ["normal", "outliers", "tiny"])
def test_errors_are_not_above_the_plain_encoder(qtype: str, spread: str) -> None:
    weights = torch.randn(64, 256, generator=torch.Generator().manual_seed(1)) * 0.05
    if spread == "outliers":
        weights[::7, ::31] *= 12
    if spread == "tiny":
        weights *= 1e-3
    plain = quants.quantize(weights.numpy(), GGMLQuantizationType[qtype])
    ours = error(ENCODERS[qtype](weights), qtype, weights)
    theirs = error(torch.from_numpy(np.ascontiguousarray(plain)).view(torch.uint8), qtype, weights)
    assert ours <= theirs * 1.02
    if qtype == "Q4_0":
        assert ours <= theirs * 0.97  # the search for a scale has to pay


def test_no_other_scale_of_the_search_would_be_better() -> None:
    weights = torch.randn(8, 32, generator=torch.Generator().manual_seed(2))
    ours = QUANT_TYPES["Q4_0"].decode(encode_q4_0(weights).flatten(), weights.shape)
    for row, decoded in zip(weights, ours, strict=True):
        best = min(
            float(((row / d).round().clamp(-8, 7) * d - row).square().sum())
            for sign in (1, -1)
            for d in sign * row.abs().max() / 8 * torch.linspace(0.7, 1.1, 400)
        )
        assert float((decoded - row).square().sum()) <= best * 1.1


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
@pytest.mark.parametrize("qtype", ENCODERS)
def test_what_is_no_number_does_not_become_one(qtype: str, bad: float) -> None:
    weights = torch.randn(3, 64, generator=torch.Generator().manual_seed(1))
    weights[1, 40] = bad
    raw = ENCODERS[qtype](weights).flatten()
    assert first_not_finite(qtype, raw.numpy()) == 3  # the second block of row 1


def test_zeros_stay_zeros() -> None:
    for qtype, encode in ENCODERS.items():
        assert not QUANT_TYPES[qtype].decode(encode(torch.zeros(2, 32)).flatten(), (2, 32)).any()


def test_a_source_reads_any_rows_and_leaves_vectors_alone(tmp_path: Path) -> None:
    source = open_safetensors(save("qwen3", tmp_path / "m", dtype=torch.bfloat16))
    small = RequantizedSource(source, "Q4_0")
    kinds = {name: info.qtype for name, info in small.tensors.items()}
    assert kinds["model.norm.weight"] == "BF16"
    assert kinds["model.layers.0.mlp.up_proj.weight"] == "Q4_0"
    assert kinds["model.embed_tokens.weight"] == kinds["lm_head.weight"] == "Q8_0"
    name = "model.layers.0.mlp.up_proj.weight"
    whole = small.read(name)
    assert len(whole) == small.tensors[name].nbytes
    row_bytes = len(whole) // small.tensors[name].shape[0]
    assert small.read(name, 3, 5) == whole[3 * row_bytes : 8 * row_bytes]
    assert small.read("model.norm.weight") == source.read("model.norm.weight")
