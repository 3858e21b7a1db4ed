"""Linear on every instruction set and layout: right, and to the bit the same however rows are put together."""

import pytest
import torch
import torch.nn.functional as F
from localrun_testing.arithmetics import rounded
from localrun_testing.instruction_sets import pairwise
from localrun_testing.native_ops import (
    NativeMatrix,
    NativeValue,
    code_bytes,
    decoded,
    instruction,
    library,
    linear,
    linear_op,
    nmse,
    run,
    sample,
)
from torch import Tensor

from localrun.backends.cpu import abi
from localrun.backends.reference.ops import activate
from localrun.formats.quant import QUANT_TYPES
from localrun.ops.types import LinearActivation

ACTIVATIONS: tuple[LinearActivation, ...] = ("silu_mul", "gelu_mul", "clamped_silu_mul")
MOST_CACHED = 256 << 20  # bytes of weights of which a cache may keep some: executor.cpp
PAIRS_LIMIT = 2**-15  # the end of an activation and the fourth product are left out: matmul/amx_f16.inc
NMSE_LIMIT = 5e-4  # activations are rounded to 8 bits
LAYOUTS = [
    "F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "IQ4_NL", "MXFP4", "NVFP4", "Q2_K", "Q3_K", "Q4_K",
    "Q5_K", "Q6_K", "IQ4_XS", "Q8_K", "IQ1_M", "IQ2_XS", "IQ3_S", "TQ2_0", "INT2_G64", "INT5_G64", "INT6_G32",
    "INT8_G64", "F8_E4M3", "F8_G128", "MXFP8", "NF4_G64", "INT4_F32_G32", "INT8_F32_G32", "INT4_SYM_F32_G128",
    "INT8_SYM_F32_G32", "INT4_ZP_F32_G32", "INT8_ZP_F32_G32",
]  # fmt: skip
COLUMNS = {1: (33, 100, 288), 32: (32, 96, 288), 64: (64, 320), 128: (128, 384), 256: (256, 768)}


def rows(n: int, n_cols: int, seed: int = 1) -> Tensor:
    x = torch.randn(n, n_cols, generator=torch.Generator().manual_seed(seed))
    x[:, ::71] *= 30  # outliers, where there are enough columns
    return x


@pytest.mark.parametrize("qtype", LAYOUTS)
def test_linear_matches_a_matmul_in_float64(isa: str, qtype: str) -> None:
    for n_cols in COLUMNS[QUANT_TYPES[qtype].block_size]:
        for n_rows in (1, 17, 67):
            raw = sample(qtype, n_rows, n_cols)
            matrix, weight = NativeMatrix(raw, qtype, n_cols), decoded(qtype, raw, n_cols)
            x = rows(9, n_cols)
            (found,) = linear(x, [matrix])
            limit = PAIRS_LIMIT if (isa, qtype) == ("amx", "F16") else 2e-6
            assert largest_error(found, x, matrix, weight) < limit, (n_rows, n_cols)
    assert nmse(found, F.linear(x, weight)) < NMSE_LIMIT


def largest_error(found: Tensor, x: Tensor, matrix: NativeMatrix, weight: Tensor) -> float:
    """Beside float64 products of the activations that a kernel sees; cancellation does not count."""
    in_format = matrix.activation_format
    codes = rounded(x, library().library.arithmetic)
    is_coded = in_format in (abi.FORMAT_Q8, abi.FORMAT_Q16)
    if in_format and not is_coded and library().layout_name(matrix.c.layout) == "nf4_g64":
        blocks = weight.unflatten(1, (-1, 64))  # its table is rounded as activations are, and its scales are not
        scales = blocks.abs().amax(2, keepdim=True)
        weight = ((blocks / scales).bfloat16().double() * scales.double()).flatten(1)
    seen = (codes if is_coded else x.bfloat16().float() if in_format else x).double()
    sizes = seen.abs() @ weight.double().abs().T
    return float(((found - seen @ weight.double().T).abs() / sizes).max())


@pytest.mark.parametrize("qtype", ["F8_E4M3", "F8_G128", "MXFP8"])
def test_codes_of_fp8_may_be_subnormal_or_not(isa: str, qtype: str) -> None:
    """Where none is among those that a kernel widens at once, it is quicker: here in half of the columns."""
    row, n_cols = QUANT_TYPES[qtype], 256
    raw = sample(qtype, 35, n_cols)
    blocks = raw.view(35, -1, row.block_bytes)
    blocks[:, : blocks.shape[1] // 2, -row.block_size :] |= 0x08
    matrix, weight, x = NativeMatrix(raw, qtype, n_cols), decoded(qtype, raw, n_cols), rows(20, n_cols)
    (found,) = linear(x, [matrix])
    assert largest_error(found, x, matrix, weight) < 2e-6


@pytest.mark.parametrize("qtype", LAYOUTS)
def test_a_row_does_not_depend_on_the_rows_beside_it(isa: str, qtype: str) -> None:
    n_cols = 512
    matrix = NativeMatrix(sample(qtype, 83, n_cols), qtype, n_cols)
    x = rows(60, n_cols)
    (together,) = linear(x, [matrix])
    for first, n in [(0, 1), (59, 1), (3, 2), (10, 3), (7, 4), (20, 5), (30, 7), (33, 8), (1, 13), (5, 16), (0, 48)]:
        (part,) = linear(x[first : first + n], [matrix])
        assert torch.equal(part, together[first : first + n]), (first, n)


@pytest.mark.parametrize("qtype", ["F8_E4M3", "F8_G128", "MXFP8", "NF4_G64"])
def test_a_row_alone_is_what_it_is_beside_others_next_to_zero(isa: str, qtype: str) -> None:
    """Tile registers of AMX count subnormal numbers as zero, and a kernel for one row has to."""
    matrix = NativeMatrix(sample(qtype, 37, 640), qtype, 640)
    x = rows(20, 640) * 2.0 ** -torch.arange(107, 127)[:, None]
    (together,) = linear(x, [matrix])
    for row in range(20):
        (alone,) = linear(x[row : row + 1], [matrix])
        assert torch.equal(alone, together[row : row + 1]), row


@pytest.mark.parametrize(
    "qtype",
    [
        "F32",
        "F16",
        "BF16",
        "Q4_0",
        "Q5_1",
        "Q8_0",
        "NVFP4",
        "Q2_K",
        "Q4_K",
        "Q6_K",
        "INT8_G64",
        "F8_E4M3",
        "F8_G128",
        "NF4_G64",
        "INT8_SYM_F32_G128",
        "INT4_ZP_F32_G32",
        "INT8_F32_G32",
    ],
)
def test_many_rows_of_many_columns_are_what_each_is_alone(isa: str, qtype: str) -> None:
    """More than a task takes of rows, and more than fits a kernel's first cache of columns."""
    n_cols = 2304
    matrix = NativeMatrix(sample(qtype, 37, n_cols), qtype, n_cols)
    x = rows(150, n_cols)
    (together,) = linear(x, [matrix], threads=2)
    for first, n in [(0, 1), (127, 2), (149, 1), (60, 33), (100, 50), (10, 129)]:
        (part,) = linear(x[first : first + n], [matrix])
        assert torch.equal(part, together[first : first + n]), (first, n)


@pytest.mark.parametrize(
    "types",
    [
        ("Q4_0", "Q4_0"),
        ("Q4_K", "Q6_K"),
        ("F16", "F32"),
        ("BF16", "BF16"),
        ("BF16", "Q8_0"),
        ("Q8_0", "F32"),
        ("F8_G128", "F8_E4M3"),
        ("F8_G128", "Q8_0"),
        ("NF4_G64", "F8_E4M3"),
    ],
)
def test_many_rows_of_an_activation_are_what_each_is_alone(isa: str, types: tuple[str, str]) -> None:
    matrices = [NativeMatrix(sample(t, 49, 1280, seed), t, 1280) for seed, t in enumerate(types)]
    x, bias, residual = rows(70, 1280), [rows(1, 49, 5)[0], rows(1, 49, 6)[0]], rows(70, 49, 8)
    (together,) = linear(x, matrices, bias, act="silu_mul", residual=residual)
    for first, n in [(0, 1), (33, 4), (20, 40)]:
        of = slice(first, first + n)
        (part,) = linear(x[of], matrices, bias, act="silu_mul", residual=residual[of])
        assert torch.equal(part, together[of]), (first, n)


def test_the_longest_rows_fit_the_memory_of_a_task(isa: str) -> None:
    """Gate and up of different layouts want their activations in two forms at once."""
    n_cols = 61440
    matrices = [NativeMatrix(sample(t, 16, n_cols, seed), t, n_cols) for seed, t in enumerate(("Q4_K", "Q6_K"))]
    x, bias = rows(40, n_cols), [torch.zeros(16), torch.zeros(16)]
    (together,) = linear(x, matrices, bias, act="silu_mul", threads=2)
    (part,) = linear(x[35:], matrices, bias, act="silu_mul")
    assert torch.equal(part, together[35:])


def test_the_number_of_threads_changes_nothing(isa: str) -> None:
    matrices = [NativeMatrix(sample(t, n, 512), t, 512) for t, n in (("Q4_K", 300), ("Q6_K", 64), ("Q8_0", 700))]
    x = rows(70, 512)
    once = linear(x, matrices)
    for threads in (2, 3):
        for found, expected in zip(linear(x, matrices, threads=threads), once, strict=True):
            assert torch.equal(found, expected)


def test_weights_of_different_layouts_share_one_linear(isa: str) -> None:
    types = ["Q4_K", "Q8_0", "BF16", "F32"]
    raws = [sample(t, 33, 256, seed) for seed, t in enumerate(types)]
    matrices = [NativeMatrix(raw, t, 256) for raw, t in zip(raws, types, strict=True)]
    bias = [rows(1, 33, seed=9 + i)[0] for i in range(4)]
    x = rows(5, 256)
    scale = [torch.tensor([number]) for number in (0.7, 1.0, -2.0, 0.1)]
    for found, matrix, b, s in zip(linear(x, matrices, bias, scale=scale), matrices, bias, scale, strict=True):
        (alone,) = linear(x, [matrix])
        assert torch.equal(found, alone * s + b)


@pairwise(act=ACTIVATIONS, types=(("Q4_0", "Q4_0"), ("Q4_K", "Q6_K"), ("F32", "Q8_0")))
def test_gate_and_up_end_in_one(isa: str, act: LinearActivation, types: tuple[str, str]) -> None:
    matrices = [NativeMatrix(sample(t, 49, 256, seed), t, 256) for seed, t in enumerate(types)]
    x, bias = rows(7, 256) * 0.3, [rows(1, 49, 5)[0], rows(1, 49, 6)[0]]
    scale = [torch.tensor([0.6]), torch.tensor([1.6])]
    gate, up = linear(x, matrices, bias, scale=scale)
    residual = rows(7, 49, 8)
    (found,) = linear(x, matrices, bias, act=act, out_scale=0.5, residual=residual, scale=scale)
    expected = residual + 0.5 * activate(gate.double(), up.double(), act)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("qtype", ["Q4_0", "Q6_K", "BF16", "F32"])
def test_a_squared_relu_has_no_gate(isa: str, qtype: str) -> None:
    matrix, x, residual = NativeMatrix(sample(qtype, 49, 1280), qtype, 1280), rows(70, 1280), rows(70, 49, 8)
    bias = [rows(1, 49, 5)[0]]
    (up,) = linear(x, [matrix], bias)
    (found,) = linear(x, [matrix], bias, act="relu_squared", out_scale=0.5, residual=residual)
    assert torch.equal(found, residual + 0.5 * up.clamp(min=0.0).square())
    (part,) = linear(x[20:33], [matrix], bias, act="relu_squared", out_scale=0.5, residual=residual[20:33])
    assert torch.equal(part, found[20:33])
    (broken,) = linear(x[:1] * torch.nan, [matrix], bias, act="relu_squared")
    assert broken.isnan().all()


def test_activations_are_exact_far_out(isa: str) -> None:
    """Of what no exponential can hold, and beyond the limits of the clamped one."""
    x = torch.tensor([[-1e4, -200.0, -90.0, -1.0, 0.0, 1.0, 90.0, 1e4]])
    eye = NativeMatrix(torch.eye(8).view(torch.uint8).reshape(8, -1), "F32", 8)
    ones = NativeMatrix(torch.zeros(8, 8).view(torch.uint8).reshape(8, -1), "F32", 8)
    for act in ACTIVATIONS:
        for up in (1.0, -100.0, 100.0):
            (found,) = linear(x, [eye, ones], [torch.zeros(8), torch.full((8,), up)], act=act)
            torch.testing.assert_close(found, activate(x, torch.tensor(up), act), rtol=1e-6, atol=1e-30)


@pytest.mark.parametrize("act", ACTIVATIONS)
def test_activations_hide_nothing_that_is_no_number(isa: str, act: LinearActivation) -> None:
    x = torch.zeros(1, 8)
    x[0, 3] = torch.nan
    one = torch.zeros(8, 8)
    one[3, 3] = 1.0
    gate = NativeMatrix(one.view(torch.uint8).reshape(8, -1), "F32", 8)
    (found,) = linear(x.nan_to_num(0.0), [gate, gate], [x[0], torch.ones(8)], act=act)
    assert found[0].isnan().tolist() == [i == 3 for i in range(8)]


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_broken_activations_do_not_pass_for_numbers(isa: str, value: float) -> None:
    for qtype in ("Q4_0", "BF16"):
        matrix = NativeMatrix(sample(qtype, 16, 64), qtype, 64)
        for n in (3, 40):
            x = rows(n, 64)
            x[1, 40] = value
            (found,) = linear(x, [matrix])
            assert not found[1].isfinite().any()
            assert found[torch.arange(n) != 1].isfinite().all()


def test_groups_of_zeros_and_of_next_to_nothing_count_as_zero(isa: str) -> None:
    matrix = NativeMatrix(sample("Q8_0", 16, 96), "Q8_0", 96)
    x = torch.zeros(2, 96)
    x[1, 32:64] = 1e-38
    (found,) = linear(x, [matrix])
    assert not found.any()


def test_codes_reach_the_limits_without_saturating(isa: str) -> None:
    """All weights and activations at the end of their range: what 16-bit sums of two products would clip."""
    raw = torch.zeros(16, 34, dtype=torch.uint8)
    raw[:, 1] = 0x3C  # scale 1
    raw[:, 2:] = 0x80  # -128
    x = torch.full((2, 32), 15 * 127.0)  # of factors, too, where there are any
    x[1] *= -1
    (found,) = linear(x, [NativeMatrix(raw, "Q8_0", 32)])
    expected = torch.tensor([[-128.0 * 15 * 127 * 32], [128.0 * 15 * 127 * 32]]).expand(2, 16)
    torch.testing.assert_close(found, expected, rtol=0 if code_bytes() == 1 else 2e-7, atol=0)


@pytest.mark.parametrize("qtype", ["F32", "F16", "Q8_0", "Q6_K"])
def test_weights_that_no_cache_keeps_give_the_same_bits(isa: str, qtype: str) -> None:
    """A program counts them by instruction, so a small matrix that is read often enough will do."""
    n_rows, n_cols = 512, 1024
    matrix, x = NativeMatrix(sample(qtype, n_rows, n_cols), qtype, n_cols), rows(1, n_cols)
    (expected,) = linear(x, [matrix])
    a, out = NativeValue(1, n_cols, data=x), NativeValue(1, n_rows)
    op = instruction(linear_op(a.c, [matrix], [out.c]))
    run([op] * (MOST_CACHED // matrix.c.n_bytes + 1), 1)
    assert torch.equal(out.data, expected)
