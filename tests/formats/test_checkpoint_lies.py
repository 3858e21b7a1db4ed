"""Quantised checkpoints whose parts lie: each ends in a ModelFileError that says what does not fit."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from localrun_testing.checkpoint_samples import (
    DIGESTS,
    Change,
    Tensors,
    one_more_scheme,
    sample,
    unpacked,
    written,
)

from localrun.base.errors import ModelFileError
from localrun.formats.finite import first_not_finite


def config_says(**values: Any) -> Change:
    return lambda config, tensors: next(iter(config.values())).update(values)


def put(kind: str, change: Callable[[torch.Tensor], torch.Tensor | None]) -> Change:
    """Another tensor in the place of one; None: without it."""

    def apply(config: dict[str, Any], tensors: Tensors) -> None:
        changed = change(tensors.pop(f"w.{kind}"))
        if changed is not None:
            tensors[f"w.{kind}"] = changed

    return apply


def without(name: str) -> Change:
    def apply(config: dict[str, Any], tensors: Tensors) -> None:
        del tensors[name]

    return apply


def in_order(groups: torch.Tensor) -> Change:
    return lambda config, tensors: tensors.update({"w.weight_g_idx": groups.int()})


def in_groups(groups: torch.Tensor) -> Change:
    return lambda config, tensors: tensors.update({"w.g_idx": groups.int()})


def ordered(groups: torch.Tensor) -> Change:
    """Columns in any order, as the config says."""

    def apply(config: dict[str, Any], tensors: Tensors) -> None:
        in_groups(groups)(config, tensors)
        config_says(desc_act=True)(config, tensors)

    return apply


def told(**values: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    """A JSON object kept as a tensor, with other values."""

    def apply(tensor: torch.Tensor) -> torch.Tensor:
        changed = json.loads(bytes(tensor.tolist())) | values
        return torch.tensor(list(json.dumps(changed).encode()), dtype=torch.uint8)

    return apply


def divided_by_zero(config: dict[str, Any], tensors: Tensors) -> None:
    """As GPTQModel scales FP8."""
    config_says(weight_scale_semantics="inverse")(config, tensors)
    tensors["w.weight_scale"].zero_()


def nowhere(bits: int) -> Callable[[torch.Tensor], torch.Tensor]:
    """The first number of a tensor made into other bits."""

    def apply(tensor: torch.Tensor) -> torch.Tensor:
        raw = tensor.contiguous().view(torch.uint8).clone()
        size = tensor.element_size()
        raw.view(-1)[:size] = torch.tensor(list(bits.to_bytes(size, "little")), dtype=torch.uint8)
        return raw.view(tensor.dtype)

    return apply


BLOCKS, ROWS_FP8, WHOLE = "fp8-0-blocks", "fp8-channel", "fp8-tensor"
PACKED, MX4, MX8 = "nvfp4-compressed-tensors", "compressed-mxfp4", "compressed-mxfp8"
WORDS, ZEROS = "compressed-00-int4-g64", "compressed-01-int4-g64-zeros"
ROWS, ROW_ZEROS = "compressed-08-int8-rows", "compressed-09-int8-rows-zeros"
GEMMA, NF4, INT8 = "gemma-int4", "bitsandbytes-0-nf4", "bitsandbytes-int8"
NF4_STATE = "weight.quant_state.bitsandbytes__nf4"
NF4_PLAIN = "bitsandbytes-1-nf4"
GPTQ, AWQ, GEMV = "gptq-4-int4", "awq-gemm", "awq-gemv"
GPTQ_ZEROS = "gptq-2-int4-zeros"
MXFP4, MXFP8 = "mlx-10-mxfp4-4-g32", "mlx-12-mxfp8-8-g32"
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
    "scales too far apart": (INT4, "WIDE_SCALES", put("scales", nowhere(0x7F00))),
    "an e4m3 scale that is no number": (NVFP4, "NOT_FINITE", put("scales", nowhere(0x7F))),
    "a negative e4m3 scale": (NVFP4, "UNSUPPORTED", put("scales", nowhere(0x99))),
    "a group of another mode": (NVFP4, "BAD_TENSOR", config_says(group_size=32)),
    "MXFP4 with scales of other blocks": (MX4, "BAD_TENSOR", put("weight_scale", lambda tensor: tensor[:, :2].clone())),
    "MXFP4 with floats as scales": (MX4, "BAD_TENSOR", put("weight_scale", lambda tensor: tensor.float())),
    "MXFP4 in odd rows": (MX4, "BAD_TENSOR", put("weight_packed", lambda tensor: tensor[:, :24].clone())),
    "MXFP8 with scales of other blocks": (MX8, "BAD_TENSOR", put("weight_scale", lambda tensor: tensor[:, :3].clone())),
    "a size of blocks": (BLOCKS, "BAD_TENSOR", config_says(weight_block_size=[2, 32])),
    "blocks of none": (BLOCKS, "BAD_TENSOR", config_says(weight_block_size=[0, 32])),
    "one size of blocks": (BLOCKS, "BAD_TENSOR", config_says(weight_block_size=128)),
    "scales of integers": (BLOCKS, "BAD_TENSOR", put("weight_scale_inv", lambda tensor: tensor.to(torch.int32))),
    "a code that is no number": (BLOCKS, "NOT_FINITE", put("weight", nowhere(0x7F))),
    "a block's scale that is no number": (BLOCKS, "NOT_FINITE", put("weight_scale_inv", nowhere(0x7FC00000))),
    "a block's scale that is too large": (BLOCKS, "NOT_FINITE", put("weight_scale_inv", nowhere(0x7F7FFFFF))),
    "a matrix's scale that is no number": (WHOLE, "NOT_FINITE", put("weight_scale", nowhere(0x7FC00000))),
    "one scale where all are of blocks": (
        BLOCKS,
        "BAD_TENSOR",
        put("weight_scale_inv", lambda tensor: tensor.flatten()[0].clone()),
    ),
    "powers of two for blocks as bytes": (BLOCKS, "BAD_TENSOR", put("weight_scale_inv", lambda tensor: tensor.byte())),
    "a matrix without scales beside one with them": (
        BLOCKS,
        "BAD_TENSOR",
        lambda _, tensors: tensors.update({"w2.weight": tensors["w.weight"].clone()}),
    ),
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
    "no scales": (WORDS, "BAD_TENSOR", put("weight_scale", lambda tensor: None)),
    "a matrix that is there whole, too": (
        WORDS,
        "BAD_TENSOR",
        lambda _, tensors: tensors.update({"w.weight": torch.zeros(11, 128)}),
    ),
    "no scheme": (WORDS, "BAD_TENSOR", config_says(config_groups={})),
    "schemes that cannot be told apart": (WORDS, "BAD_TENSOR", one_more_scheme("re:(w+)+$")),
    "schemes for the same": (WORDS, "BAD_TENSOR", one_more_scheme("Linear")),
    "schemes that are none": (WORDS, "BAD_TENSOR", config_says(config_groups={"a": {"weights": {"num_bits": "4"}}})),
    "scales of other groups": (WORDS, "BAD_TENSOR", put("weight_scale", lambda tensor: tensor[:, :1].contiguous())),
    "scales of fewer rows": (WORDS, "BAD_TENSOR", put("weight_scale", lambda tensor: tensor[1:])),
    "another shape": (WORDS, "BAD_TENSOR", put("weight_shape", lambda tensor: tensor + 1)),
    "a shape of one": (WORDS, "BAD_TENSOR", put("weight_shape", lambda tensor: tensor[:1])),
    "words of a vector": (WORDS, "BAD_TENSOR", put("weight_packed", lambda tensor: tensor.flatten())),
    "a group's scale that is no number": (WORDS, "NOT_FINITE", put("weight_scale", nowhere(0x7FC0))),
    "scales of groups too far apart": (WORDS, "WIDE_SCALES", put("weight_scale", nowhere(0x7F00))),
    "an order that is not told": (WORDS, "BAD_TENSOR", in_order(torch.arange(128) % 2)),
    "an order of fewer columns": (WORDS, "BAD_TENSOR", in_order(torch.zeros(127))),
    "a group that there is not": (WORDS, "BAD_TENSOR", in_order(torch.arange(128) // 64 + 1)),
    "a group below none": (WORDS, "BAD_TENSOR", in_order(torch.arange(128) // 64 - 1)),
    "zero points that the config tells of": (ZEROS, "BAD_TENSOR", put("weight_zero_point", lambda tensor: None)),
    "zero points of bytes that the config tells of": (
        ROW_ZEROS,
        "BAD_TENSOR",
        put("weight_zero_point", lambda tensor: None),
    ),
    "zero points of fewer rows": (ZEROS, "BAD_TENSOR", put("weight_zero_point", lambda tensor: tensor[1:])),
    "zero points of floats": (ZEROS, "BAD_TENSOR", put("weight_zero_point", lambda tensor: tensor.float())),
    "zero points out of reach": (
        ZEROS,
        "BAD_TENSOR",
        put("weight_zero_point", lambda tensor: torch.full((11, 2), 100, dtype=torch.int8)),
    ),
    "zero points of more bits": (
        WORDS,
        "BAD_TENSOR",
        lambda _, tensors: tensors.update({"w.weight_zero_point": torch.full((3, 2), 9, dtype=torch.int8)}),
    ),
    "codes without scales": (ROWS, "BAD_TENSOR", put("weight_scale", lambda tensor: None)),
    "codes of one row": (ROWS, "BAD_TENSOR", put("weight", lambda tensor: tensor.flatten())),
    "a row's scale that is no number": (ROWS, "NOT_FINITE", put("weight_scale", nowhere(0x7FC0))),
    "zero points in words": (ROW_ZEROS, "BAD_TENSOR", put("weight_zero_point", lambda tensor: tensor.int())),
    "no zero points": (GPTQ, "BAD_TENSOR", put("qzeros", lambda tensor: None)),
    "zero points as floats": (GPTQ, "BAD_TENSOR", put("qzeros", lambda tensor: tensor.float())),
    "zero points of other groups": (GPTQ, "BAD_TENSOR", put("qzeros", lambda tensor: tensor[:1])),
    "zero points of other bits": (GPTQ, "BAD_TENSOR", put("qzeros", lambda tensor: tensor.repeat(1, 2))),
    "zero points off the middle": (GPTQ, "BAD_TENSOR", put("qzeros", lambda tensor: tensor + 1)),
    "scales of other rows": (GPTQ, "BAD_TENSOR", put("scales", lambda tensor: tensor[:, 1:].contiguous())),
    "integers for scales": (GPTQ, "BAD_TENSOR", put("scales", lambda tensor: tensor.int())),
    "words in one row": (GPTQ, "BAD_TENSOR", put("qweight", lambda tensor: tensor.flatten())),
    "half of the words": (GPTQ, "BAD_TENSOR", put("qweight", lambda tensor: tensor[:4])),
    "a turned scale that is no number": (GPTQ, "NOT_FINITE", put("scales", nowhere(0x7E00))),
    "groups of other sizes": (GPTQ, "BAD_TENSOR", config_says(group_size=16)),
    "one group of all columns": (GPTQ, "BAD_TENSOR", config_says(group_size=-1)),
    "a table that is not NF4's": (NF4, "BAD_TENSOR", put("weight.quant_map", lambda tensor: tensor * 0.5)),
    "an order without a g_idx": (GPTQ, "BAD_TENSOR", config_says(desc_act=True)),
    "a g_idx of floats": (GPTQ, "BAD_TENSOR", lambda _, tensors: tensors.update({"w.g_idx": torch.zeros(64)})),
    "a g_idx of fewer columns": (GPTQ, "BAD_TENSOR", in_groups(torch.arange(63) // 32)),
    "a g_idx without desc_act": (GPTQ, "BAD_TENSOR", in_groups(torch.arange(64) % 2)),
    "a g_idx of groups that are not": (GPTQ, "BAD_TENSOR", in_groups(torch.arange(64) // 16)),
    "a g_idx of groups of other sizes": (GPTQ, "BAD_TENSOR", ordered(torch.arange(64) // 31 % 2)),
    "a g_idx below none": (GPTQ, "BAD_TENSOR", in_groups(torch.arange(64) // 32 - 1)),
    "AWQ without zero points": (AWQ, "BAD_TENSOR", put("qzeros", lambda tensor: None)),
    "AWQ of other groups": (AWQ, "BAD_TENSOR", put("qzeros", lambda tensor: tensor[:1])),
    "AWQ with scales of other rows": (AWQ, "BAD_TENSOR", put("scales", lambda tensor: tensor[:, 8:].contiguous())),
    "AWQ packed as GPTQ": (AWQ, "BAD_TENSOR", put("qweight", lambda tensor: tensor.reshape(8, 32))),
    "AWQ with a scale that is no number": (AWQ, "NOT_FINITE", put("scales", nowhere(0x7C00))),
    "gemv in groups of three": (GEMV, "BAD_TENSOR", config_says(group_size=3)),
    "gemv in too many groups": (GEMV, "BAD_TENSOR", config_says(group_size=1)),
    "gemv said of gemm": (AWQ, "BAD_TENSOR", config_says(version="gemv")),
    "gemm said of gemv": (GEMV, "BAD_TENSOR", config_says(version="gemm")),
    "Gemma with scales of fewer rows": (GEMMA, "BAD_TENSOR", put("weight_scale", lambda tensor: tensor[1:])),
    "Gemma with scales for three": (GEMMA, "BAD_TENSOR", put("weight_scale", lambda tensor: tensor.repeat(1, 3))),
    "Gemma with integers for scales": (GEMMA, "BAD_TENSOR", put("weight_scale", lambda tensor: tensor.int())),
    "Gemma with a scale that is no number": (GEMMA, "NOT_FINITE", put("weight_scale", nowhere(0x7FC00000))),
    "Gemma of 3 bits": (GEMMA, "BAD_TENSOR", config_says(num_bits=3)),
    "Gemma by an endless pattern": (GEMMA, "BAD_TENSOR", config_says(module_quant_configs={"(w+)+$": {"num_bits": 2}})),
    "codes of Gemma in a row": (GEMMA, "BAD_TENSOR", put("weight", lambda tensor: tensor.flatten())),
    "NF4 in a row": (NF4, "BAD_TENSOR", put("weight", lambda tensor: tensor.flatten())),
    "NF4 without a table": (NF4, "BAD_TENSOR", put("weight.quant_map", lambda tensor: None)),
    "NF4 with a table of 15": (NF4, "BAD_TENSOR", put("weight.quant_map", lambda tensor: tensor[1:])),
    "NF4 with a table that is no number": (NF4, "NOT_FINITE", put("weight.quant_map", nowhere(0x7FC00000))),
    "NF4 that nothing describes": (NF4, "BAD_TENSOR", put(NF4_STATE, lambda tensor: None)),
    "NF4 described by noise": (NF4, "BAD_TENSOR", put(NF4_STATE, lambda tensor: tensor * 0 + 65)),
    "NF4 of another shape": (NF4, "BAD_TENSOR", put(NF4_STATE, told(shape=[128, 6]))),
    "NF4 in other blocks": (NF4, "BAD_TENSOR", put(NF4_STATE, told(blocksize=32))),
    "NF4 in no blocks": (NF4, "BAD_TENSOR", put(NF4_STATE, told(blocksize=0))),
    "NF4 without an offset": (NF4, "BAD_TENSOR", put(NF4_STATE, told(nested_offset=None))),
    "NF4 with other scales of scales": (NF4, "BAD_TENSOR", put(NF4_STATE, told(nested_blocksize=5))),
    "NF4 without scales of scales": (NF4, "BAD_TENSOR", put("weight.nested_absmax", lambda tensor: None)),
    "NF4 with floats for codes of scales": (NF4, "BAD_TENSOR", put("weight.absmax", lambda tensor: tensor.float())),
    "NF4 of a model of no width": (NF4, "BAD_TENSOR", without("embed_tokens.weight")),
    "int8 with scales of fewer rows": (INT8, "BAD_TENSOR", put("SCB", lambda tensor: tensor[1:])),
    "int8 with a scale that is no number": (INT8, "NOT_FINITE", put("SCB", nowhere(0x7FC00000))),
    "int8 in another order": (INT8, "BAD_TENSOR", put("weight_format", lambda tensor: tensor + 1)),
    "zero points of a type that holds none": (GPTQ_ZEROS, "BAD_TENSOR", put("qzeros", lambda tensor: tensor.short())),
    "a code of mxfp8 that is no number": (MXFP8, "NOT_FINITE", put("weight", nowhere(0x7F))),
    "a power of two that is no number": (MXFP8, "NOT_FINITE", put("scales", nowhere(0xFF))),
    "NF4 with an endless offset": (NF4, "NOT_FINITE", put(NF4_STATE, told(nested_offset=math.inf))),
    "NF4 with an offset that is too large": (NF4, "NOT_FINITE", put(NF4_STATE, told(nested_offset=1e39))),
    "a divisor of none": (ROWS_FP8, "NOT_FINITE", divided_by_zero),
    "biases of floats": (NVFP4, "BAD_TENSOR", lambda _, tensors: tensors.update({"w.biases": torch.ones(3, 8)})),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("lie", LIES)
def test_parts_that_lie_are_refused(lie: str, tmp_path: Path) -> None:
    name, code, change = LIES[lie]
    config, tensors = sample(name)
    del tensors["expected"]
    change(config, tensors)
    with pytest.raises(ModelFileError, match="w") as caught:
        unpacked(written(tmp_path, config, tensors))
    assert (caught.value.code, caught.value.exit_code, bool(caught.value.hint)) == (code, 6, True)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", DIGESTS)
def test_no_float_of_any_format_may_be_none(name: str, number: float, tmp_path: Path) -> None:
    """Scales, biases, tables, codes that are floats: the first or the last of each is made into no number, by turns."""
    for kind, tensor in sample(name)[1].items():
        if not tensor.is_floating_point() or kind in ("expected", "embed_tokens.weight"):
            continue
        for place in (0, -1):
            config, tensors = sample(name)
            del tensors["expected"]
            changed = tensor.flatten().clone()
            changed[place] = torch.tensor(number).to(tensor.dtype)
            if changed[place].float().isfinite():  # a type without infinity
                continue
            tensors[kind] = changed.reshape(tensor.shape)
            assert is_refused(tmp_path, config, tensors), (kind, place)


def is_refused(folder: Path, config: dict[str, Any], tensors: Tensors) -> bool:
    """Whether a checkpoint is, by its reader or by the check of what it reads, which every load makes."""
    model = written(folder, config, tensors)
    try:
        read = [(info.qtype, np.frombuffer(model.read(name), np.uint8)) for name, info in model.tensors.items()]
    except ModelFileError as error:
        return error.code == "NOT_FINITE" and error.exit_code == 6 and bool(error.hint)
    return any(first_not_finite(qtype, values) is not None for qtype, values in read)
