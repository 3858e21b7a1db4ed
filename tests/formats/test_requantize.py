"""Quantising at load: the file's own layout of blocks, errors no larger than the plain encoders', row by row."""

from pathlib import Path

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType, quants
from localrun_testing.llama_peer import encoded
from localrun_testing.tiny_models import TINY_MODELS, TinyModel, save

from localrun.base.resources import resource
from localrun.formats.encode_q2_k import encode_q2_k
from localrun.formats.finite import first_not_finite
from localrun.formats.gguf import open_gguf
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
    n_cols = 2 * QUANT_TYPES[qtype].block_size
    weights = torch.randn(3, n_cols, generator=torch.Generator().manual_seed(1))
    weights[1, n_cols - 24] = bad
    raw = ENCODERS[qtype](weights).flatten()
    assert first_not_finite(qtype, raw.numpy()) == 3  # the second block of row 1


def skewed(n: int, seed: int) -> torch.Tensor:
    """Groups around zero, on one side of it, of one number, and with an outlier."""
    weights = torch.randn(n, 16, 16, generator=torch.Generator().manual_seed(seed)) * 0.05
    weights[:, 1] += 0.2
    weights[:, 2] -= 0.2
    weights[:, 3] = weights[:, 3, :1]
    weights[:, 4, 5] *= 20
    return weights.reshape(n, 256)


def test_no_other_pair_of_scales_would_be_much_better() -> None:
    """Of each group of Q2_K every scale and minimum is tried, for the block's own two."""
    weights = skewed(12, seed=3)
    raw = encode_q2_k(weights)
    groups, decoded = weights.reshape(-1, 16, 16), QUANT_TYPES["Q2_K"].decode(raw.flatten(), weights.shape)
    d, dmin = (raw[:, at : at + 2].clone().view(torch.float16).float() for at in (80, 82))
    best = torch.full((12, 16), torch.inf)
    for s in range(16):
        for m in range(16):
            scale, minimum = (d * s)[:, :, None], (dmin * m)[:, :, None]
            errors = [(code * scale - minimum - groups).square() for code in range(4)]
            best = torch.minimum(best, torch.stack(errors).amin(0).sum(2))
    found = (decoded - weights).square().sum()
    assert best.sum() <= found <= best.sum() * 1.02


def test_two_bits_lose_no_more_than_a_group_must() -> None:
    """Beside the best four evenly spaced numbers of each group alone, whose scales would take another two bits."""
    weights = skewed(6, seed=4)
    groups = weights.reshape(-1, 16)
    best = torch.full((len(groups),), torch.inf)
    low, high = groups.amin(1), groups.amax(1)
    for first in torch.linspace(0, 0.5, 26):
        for last in torch.linspace(0.5, 1, 26):
            ends = low + first * (high - low), low + last * (high - low)
            levels = torch.stack([ends[0] + step / 3 * (ends[1] - ends[0]) for step in range(4)], dim=1)
            best = torch.minimum(best, (groups[:, :, None] - levels[:, None]).square().amin(2).sum(1))
    decoded = QUANT_TYPES["Q2_K"].decode(encode_q2_k(weights).flatten(), weights.shape)
    assert (decoded - weights).square().sum() <= best.sum() * 1.6


def test_zeros_stay_zeros() -> None:
    for qtype, encode in ENCODERS.items():
        assert not QUANT_TYPES[qtype].decode(encode(torch.zeros(2, 256)).flatten(), (2, 256)).any()


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


def test_two_bits_where_rows_are_whole_blocks_and_four_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = {**TINY_MODELS["qwen3"].config, "intermediate_size": 256}
    monkeypatch.setitem(TINY_MODELS, "qwen3", TinyModel("qwen3", changed))
    source = open_safetensors(save("qwen3", tmp_path / "m", dtype=torch.bfloat16))
    kinds = {name: info.qtype for name, info in RequantizedSource(source, "Q2_K").tensors.items()}
    assert kinds["model.layers.0.mlp.down_proj.weight"] == "Q2_K"
    assert kinds["model.layers.0.mlp.up_proj.weight"] == "Q4_0"  # rows of 64
    assert kinds["model.embed_tokens.weight"] == "Q8_0"


@pytest.mark.slow
def test_errors_of_two_bits_are_below_those_of_llama_cpp() -> None:
    """On the built-in model's own weights, which are no random numbers."""
    source = open_gguf(resource("builtin/localrun-tiny.gguf"))
    shapes = {name: info for name, info in source.tensors.items() if len(info.shape) == 2 and info.shape[1] % 256 == 0}
    assert shapes
    for name, info in shapes.items():
        raw = torch.frombuffer(source.read(name), dtype=torch.uint8)
        weights = QUANT_TYPES[info.qtype].decode(raw, info.shape)
        theirs = error(encoded(weights, "Q2_K"), "Q2_K", weights)
        assert error(encode_q2_k(weights), "Q2_K", weights) < 0.85 * theirs, name
