"""Checkpoints in types that no GGUF has: scales stay beside codes of FP8 and of affine groups."""

from pathlib import Path

import numpy as np
import pytest
import torch
from localrun_testing.checkpoint_samples import NAME, unpacked, written

from localrun.base.errors import ModelFileError
from localrun.formats.checkpoints.wide_scales import with_wide_scales

E8M0 = torch.float8_e8m0fnu
HELD_FP8 = {  # rows and columns of a block, type of the scales, the type that holds them
    "blocks": ((128, 128), torch.float32, "F8_G128"),
    "wide blocks": ((3, 256), torch.bfloat16, "F8_G128"),
    "powers of two for blocks": ((128, 128), E8M0, "F8_G128"),
    "powers of two for 32": ((1, 32), E8M0, "MXFP8"),
    "powers of two for 64": ((64, 64), E8M0, "MXFP8"),
    "narrow blocks": ((128, 64), torch.float32, "F32"),
}


@pytest.mark.parametrize("case", HELD_FP8)
def test_scales_of_blocks_stay_beside_codes_of_fp8(case: str, tmp_path: Path) -> None:
    """Matrices of experts, of which the last blocks of rows are not whole."""
    (down, across), dtype, held = HELD_FP8[case]
    n_experts, n_rows, n_cols = 2, 130, 384
    draw = torch.Generator().manual_seed(1)
    codes = torch.randn(n_experts, n_rows, n_cols, generator=draw).to(torch.float8_e4m3fn)
    blocks = (n_experts, -(-n_rows // down), -(-n_cols // across))
    scales = (torch.rand(blocks, generator=draw) * 0.01 + 1e-4).to(dtype)
    config = {"quantization_config": {"quant_method": "fp8", "weight_block_size": [down, across]}}
    model = written(tmp_path, config, {NAME: codes, "w.weight_scale_inv": scales})
    factors = scales.float().repeat_interleave(down, 1).repeat_interleave(across, 2)[:, :n_rows, :n_cols]
    assert model.tensors[NAME].qtype == held
    assert torch.equal(unpacked(model), codes.float() * factors)
    assert torch.equal(unpacked(model, 125, 9), (codes.float() * factors).view(-1, n_cols)[125:134])


def test_modelopt_keeps_an_axis_for_the_rows_and_columns_of_a_block(tmp_path: Path) -> None:
    codes = torch.randn(200, 256, generator=torch.Generator().manual_seed(2)).to(torch.float8_e4m3fn)
    scales = torch.tensor([[1.0, 2.0], [3.0, 4.0]]) * 1e-3
    config = {"quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8_PB_WO"}}
    model = written(tmp_path, config, {NAME: codes, "w.weight_scale": scales[:, None, :, None].contiguous()})
    factors = scales.repeat_interleave(128, 0).repeat_interleave(128, 1)[:200]
    assert model.tensors[NAME].qtype == "F8_G128"
    assert torch.equal(unpacked(model), codes.float() * factors)


@pytest.mark.parametrize(
    ("bits", "group", "held", "wide"),
    [(4, 128, "INT4_ZP_G128", "INT4_ZP_F32_G32"), (4, 384, "INT4_ZP_G128", "INT4_ZP_F32_G32"),
     (4, 64, "INT4_ZP_G32", "INT4_ZP_F32_G32"), (3, 128, "INT4_ZP_G128", "INT4_SYM_F32_G128"),
     (2, 32, "Q4_0", "INT4_SYM_F32_G32"), (5, 128, "Q8_0", "INT8_SYM_F32_G128"),
     (8, 128, "INT8_ZP_G32", "INT8_ZP_F32_G32")],
)  # fmt: skip
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_zero_points_stay_beside_codes(
    bits: int, group: int, held: str, wide: str, dtype: torch.dtype, tmp_path: Path
) -> None:
    """AutoRound, as GPTQ 2: scales in bf16 are fp16 after one power of two, which is a factor of products."""
    n_rows, n_cols = 32, 384
    draw = np.random.default_rng(bits + group)
    codes, zeros = (draw.integers(0, 2**bits, (n, n_rows)) for n in (n_cols, n_cols // group))
    scales = torch.from_numpy(draw.random((n_cols // group, n_rows), np.float32) * 1e-3 + 1e-7).to(dtype)
    words = [in_words(codes.T, bits).T, in_words(zeros, bits)]
    config = {
        "quantization_config": {
            "quant_method": "auto-round",
            "packing_format": "auto_round:gptqmodel",
            "group_size": group,
        }
    }
    names = {"w.qweight": words[0], "w.qzeros": words[1]}
    tensors = {name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in names.items()}
    model = written(tmp_path, config, {**tensors, "w.scales": scales})
    levels = torch.from_numpy((codes - zeros.repeat(group, 0)).T).float()
    assert model.tensors[NAME].qtype == (wide if dtype == torch.float32 else held)
    assert torch.equal(unpacked(model), levels * scales.float().repeat_interleave(group, 0).T)


def in_words(codes: np.ndarray, bits: int) -> np.ndarray:
    """Rows of codes bit by bit, the lowest bit first. [n, columns] -> int32 [n, words]"""
    stream = np.packbits(codes[..., None].astype(np.uint8) >> np.arange(bits, dtype=np.uint8) & 1, bitorder="little")
    return stream.view(np.int32).reshape(len(codes), -1)


@pytest.mark.parametrize(("bits", "group", "held"), [(8, 96, "INT8_G32"), (6, 192, "INT6_G64"), (3, 64, "INT4_G64")])
def test_affine_groups_are_held_in_groups_of_32_or_64(bits: int, group: int, held: str, tmp_path: Path) -> None:
    draw = np.random.default_rng(bits)
    codes = draw.integers(0, 2**bits, (5, 384))
    stream = np.packbits(codes[..., None] >> np.arange(bits) & 1, bitorder="little").view(np.int32).reshape(5, -1)
    scales, biases = (torch.from_numpy(draw.random((5, 384 // group), np.float32)).bfloat16() for _ in range(2))
    config = {"quantization": {"group_size": group, "bits": bits}}
    packed = torch.from_numpy(stream).view(torch.uint32)
    model = written(tmp_path, config, {NAME: packed, "w.scales": scales, "w.biases": biases})
    factors, summands = (part.float().repeat_interleave(group, 1) for part in (scales, biases))
    assert model.tensors[NAME].qtype == held
    assert torch.equal(unpacked(model), torch.from_numpy(codes).float() * factors + summands)


@pytest.mark.parametrize(("bits", "held"), [(2, "INT4_F32_G32"), (4, "INT4_F32_G32"), (5, "INT8_F32_G32")])
def test_bf16_scales_that_lie_too_far_apart_for_fp16_are_held_in_f32(bits: int, held: str, tmp_path: Path) -> None:
    draw = np.random.default_rng(bits)
    codes = torch.from_numpy(draw.integers(0, 2**bits, (5, 384)))
    scales, biases = (torch.from_numpy(draw.random((5, 6), np.float32)).bfloat16() for _ in range(2))
    scales[3] *= 2.0**-60
    config = {"quantization": {"group_size": 64, "bits": bits}}
    packed = torch.from_numpy(in_words(codes.numpy(), bits)).view(torch.uint32)
    narrow = written(tmp_path, config, {NAME: packed, "w.scales": scales, "w.biases": biases})
    with pytest.raises(ModelFileError) as caught:
        unpacked(narrow)
    assert caught.value.code == "WIDE_SCALES"
    model = with_wide_scales(narrow)
    assert list(model.tensors) == [NAME]  # the power of two is gone
    assert model.tensors[NAME].qtype == held
    factors, summands = (part.float().repeat_interleave(64, 1) for part in (scales, biases))
    assert torch.equal(unpacked(model), codes.float() * factors + summands)
    assert torch.equal(unpacked(model, 3, 2), unpacked(model)[3:])


def test_scales_that_fit_fp16_stay_there(tmp_path: Path) -> None:
    scales = torch.full((5, 2), 2.0**-40, dtype=torch.bfloat16)  # all of them far from one
    config = {"quantization": {"group_size": 64, "bits": 4}}
    packed = torch.zeros(5, 16, dtype=torch.int32).view(torch.uint32)
    model = written(tmp_path, config, {NAME: packed, "w.scales": scales, "w.biases": scales.clone()})
    assert with_wide_scales(model).tensors == model.tensors
