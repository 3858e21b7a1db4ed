"""Linears on a GPU's tensor cores, emulated: right, and to the bit the same however rows are put together."""

from itertools import product

import pytest
import torch
import torch.nn.functional as F
from localrun_testing.broken_kernels import SCHEDULES, report, runtime
from localrun_testing.cuda_linear import ERROR, LAYOUT_CASES, Exact, quantized, run, run_twin
from localrun_testing.emulator.build import Sanitizer
from localrun_testing.emulator.cuda import EmulatedDevice
from localrun_testing.gpu_weights import CODES, FLOATS, GRIDS, columns, packed, packed_floats, random_rows
from localrun_testing.native_ops import nmse

from localrun.backends.cuda.linears import can_quantize, dequantize, gate_beside_up, linear
from localrun.backends.gpu.layouts import GpuLayout
from localrun.backends.gpu.matrices import embed
from localrun.backends.gpu.q8 import Q8
from localrun.backends.gpu.weight_layouts import MIXED, layout_of
from localrun.backends.reference.ops import activate
from localrun.ops.instructions import LinearWeight
from localrun.ops.layouts import RowReader
from localrun.ops.types import LinearActivation

ACTIVATIONS: tuple[LinearActivation, ...] = ("silu_mul", "gelu_mul", "clamped_silu_mul")
NMSE_LIMIT = 5e-4  # activations are rounded to 8 bits
ROWS = (1, 3, 8, 40, 70)
MORE_ROWS = (2, 9, 16, 17, 20, 32, 33, 64)  # each way to take them


@pytest.mark.parametrize("qtype", [*CODES, *FLOATS])
def test_linear_is_right_and_a_row_does_not_depend_on_the_rows_beside_it(qtype: str) -> None:
    n_cols = columns(qtype)
    weight, x = packed(qtype, 37, n_cols), random_rows(70, n_cols)
    (whole,) = run(x, [LinearWeight(weight)])
    exact = Exact.of(x, weight)
    assert exact.error(whole) < ERROR
    assert nmse(whole, F.linear(x, weight.unpack())) < NMSE_LIMIT
    for rows in (*ROWS, *(MORE_ROWS if qtype in ("Q4_0", "Q6_K", "F16") else ())):
        for first in {0, 70 - rows}:
            (part,) = run(x[first : first + rows], [LinearWeight(weight)])
            assert torch.equal(part, whole[first : first + rows]), (first, rows)


@pytest.mark.parametrize("qtype", CODES)
def test_the_twin_without_tensor_cores_gives_the_same_bits(qtype: str) -> None:
    n_cols = columns(qtype)
    weight, x = packed(qtype, 37, n_cols), random_rows(3, n_cols)
    (expected,) = run(x, [LinearWeight(weight)])
    assert torch.equal(run_twin(x, weight, EmulatedDevice()), expected)


@pytest.mark.parametrize("qtype", ["Q8_0", "Q6_K", "Q2_K"])
def test_the_smaller_tiles_of_turing_give_the_same_bits(qtype: str) -> None:
    weight = packed(qtype, 37, columns(qtype))
    for rows in (3, 20):
        x = random_rows(rows, weight.n_cols)
        (expected,), (found,) = (run(x, [LinearWeight(weight)], device=EmulatedDevice(arch)) for arch in (80, 75))
        assert torch.equal(found, expected)


@pytest.mark.slow
@pytest.mark.parametrize("sanitizer", ["address", "thread"])
@pytest.mark.parametrize("case", LAYOUT_CASES)
def test_no_sanitizer_objects_to_a_layout(case: str, sanitizer: Sanitizer) -> None:
    if not runtime(sanitizer).is_absolute():
        pytest.skip("this compiler has no such sanitizer: windows and macos build theirs in another way")
    assert report("cuda", case, sanitizer, SCHEDULES[0], {}) == ""


@pytest.mark.slow
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("case", LAYOUT_CASES)
def test_layouts_are_right_for_every_thread_schedule(case: str, schedule: tuple[int, int]) -> None:
    seed, poison = schedule
    assert LAYOUT_CASES[case](EmulatedDevice(seed=seed, poison=poison)) == ""


@pytest.mark.parametrize("qtype", ["Q4_0", "Q4_K", "Q6_K", "BF16"])
def test_schedules_and_poison_change_nothing(qtype: str) -> None:
    n_cols = columns(qtype)
    weight = packed(qtype, 70, n_cols)
    for rows in (5, 40):
        x = random_rows(rows, n_cols)
        found = [
            run(x, [LinearWeight(weight)], device=EmulatedDevice(seed=seed, poison=poison))[0]
            for seed, poison in ((0, 0xFF), (1, 0x00), (2, 0x3C), (3, 0x7F))
        ]
        assert all(torch.equal(found[0], other) for other in found)


@pytest.mark.parametrize("rows", [2, 11])
@pytest.mark.parametrize("types", [("Q4_0", "Q4_0", "Q4_0"), ("Q4_K", "Q6_K", "Q4_K", "Q4_K", "Q4_K"), ("F16", "Q8_0")])
def test_matrices_of_different_sizes_and_layouts_share_a_linear(types: tuple[str, ...], rows: int) -> None:
    weights = [packed(qtype, n, 256, seed=n) for qtype, n in zip(types, (70, 16, 33, 1, 129), strict=False)]
    biases = [random_rows(1, weight.n_rows)[0] for weight in weights]
    x = random_rows(rows, 256)
    scales = [1.0, 0.7, 1.3, -2.0, 0.1][: len(weights)]
    together = run(x, [*map(LinearWeight, weights, biases, scales)])
    for found, weight, bias, scale in zip(together, weights, biases, scales, strict=True):
        (alone,) = run(x, [LinearWeight(weight)])
        assert torch.equal(found, alone * scale + bias)


@pytest.mark.parametrize(
    ("types", "rows", "n_launches"),
    [
        (("Q4_K", "Q4_K", "Q4_K"), 2, 1),
        (("Q4_K", "Q6_K", "Q4_K"), 8, 1),
        (("Q6_K", "Q4_K"), 1, 1),
        (("Q4_K", "Q6_K", "Q4_K"), 9, 2),
        (("Q4_K", "Q6_K", "Q5_K"), 2, 3),
        (("Q4_K", "Q4_K", "Q4_K", "Q6_K"), 2, 2),
        (("Q4_1", "Q6_K"), 2, 2),
        (("F16", "Q4_K"), 2, 2),
    ],
)
def test_matrices_of_a_layout_and_of_usual_pairs_are_one_launch(
    types: tuple[str, ...], rows: int, n_launches: int
) -> None:
    x, outs = random_rows(rows, 256), [torch.zeros(rows, 16) for _ in types]
    weights = [LinearWeight(packed(qtype, 16, 256)) for qtype in types]
    assert len(linear(EmulatedDevice(), x, quantized(x), weights, outs, rows)) == n_launches


def types_of(layout: str) -> str:
    """A quant type that is held in a layout."""
    return next(qtype for qtype in CODES if layout_of(qtype).name == layout)


@pytest.mark.parametrize("pair", MIXED, ids="-".join)
def test_layouts_in_one_launch_give_the_bits_of_each_alone(pair: tuple[str, str]) -> None:
    """With sizes that end within a tile, biases, scales and a residual, in every order."""
    first, second = map(types_of, pair)
    for types, rows in product(((first, first, second), (second, first), (second, first, second)), (1, 3, 8)):
        weights = [
            LinearWeight(packed(qtype, n, 256, seed=n), random_rows(1, n)[0], 0.5 + n)
            for qtype, n in zip(types, (70, 16, 33), strict=False)
        ]
        x = random_rows(rows, 256)
        together = run(x, weights)
        for found, weight in zip(together, weights, strict=True):
            assert torch.equal(found, run(x, [weight])[0])


@pytest.mark.parametrize(
    ("types", "act", "rows"),
    [*product((("Q4_0", "Q4_0"), ("Q4_K", "Q6_K"), ("BF16", "BF16"), ("F32", "Q8_0")), ACTIVATIONS, (2, 11))],
)
def test_gate_and_up_end_in_one(act: LinearActivation, types: tuple[str, str], rows: int) -> None:
    weights = [
        LinearWeight(packed(qtype, 49, 256, seed), random_rows(1, 49, seed)[0], scale=0.6 + seed)
        for seed, qtype in enumerate(types)
    ]
    x, residual = random_rows(rows, 256) * 0.3, random_rows(rows, 49, 8)
    gate, up = run(x, [*weights])
    (found,) = run(x, [*weights], act=act, out_scale=0.5, residual=residual)
    expected = residual + 0.5 * activate(gate.double(), up.double(), act)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)
    (alone,) = run(x[1:2], [*weights], act=act, out_scale=0.5, residual=residual[1:2])
    assert torch.equal(alone, found[1:2])


@pytest.mark.parametrize("act", ACTIVATIONS)
@pytest.mark.parametrize("qtype", ["Q4_0", "Q4_K", "Q6_K"])
def test_a_gate_beside_an_up_is_quantised_to_the_bits_of_two_launches(qtype: str, act: LinearActivation) -> None:
    for n_out, rows in product((49, 64, 160), (1, 3, 8)):
        weights = [
            LinearWeight(packed(qtype, n_out, 256, seed), random_rows(1, n_out, seed)[0], 0.6) for seed in (1, 2)
        ]
        x = random_rows(rows, 256)
        (expected,) = run(x, weights, act=act)
        memory, made = torch.full((rows + 3, n_out), torch.nan), Q8.of(n_out, rows, x.device)
        made.codes.fill_(7)
        gate_beside_up(EmulatedDevice(), quantized(x), weights, memory[:rows], made, act)()
        assert torch.equal(memory[:rows], expected)
        assert memory[rows:].isnan().all()
        assert made.is_of(expected)


def test_where_a_gate_is_quantised_at_once() -> None:
    codes, mixed, floats = (
        [LinearWeight(packed(qtype, 16, 256)) for qtype in types]
        for types in (("Q4_K", "Q4_K"), ("Q4_K", "Q6_K"), ("F16", "F16"))
    )
    device = EmulatedDevice()
    assert can_quantize(device, codes, "silu_mul", 8)
    assert not can_quantize(device, codes, "silu_mul", 9)
    assert not can_quantize(device, codes, "none", 1)
    assert not can_quantize(device, mixed, "silu_mul", 1)
    assert not can_quantize(device, floats, "silu_mul", 1)
    assert not can_quantize(EmulatedDevice(90), codes, "silu_mul", 1)


@pytest.mark.parametrize("rows", [2, 11])
@pytest.mark.parametrize("qtype", ["Q4_0", "BF16"])
def test_squares_of_what_is_positive(qtype: str, rows: int) -> None:
    weight, bias = packed(qtype, 49, 256), random_rows(1, 49)[0]
    x, residual = random_rows(rows, 256) * 0.3, random_rows(rows, 49, 8)
    bias[7] = torch.nan
    (y,) = run(x, [LinearWeight(weight, bias)])
    (found,) = run(x, [LinearWeight(weight, bias)], act="relu_squared", residual=residual)
    torch.testing.assert_close(found, residual + activate(y, y, "relu_squared"), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("qtype", ["Q4_0", "F16"])
def test_an_output_may_be_the_residual(qtype: str) -> None:
    weight, bias = packed(qtype, 33, 256), random_rows(1, 33)[0]
    for rows in (4, 12):
        x, residual = random_rows(rows, 256), random_rows(rows, 33, 3)
        (alone,) = run(x, [LinearWeight(weight)])
        out = residual.clone()
        for launch in linear(
            EmulatedDevice(), x, quantized(x), [LinearWeight(weight, bias)], [out], rows, residual=out, out_scale=0.3
        ):
            launch()
        assert torch.equal(out, residual + (alone + bias) * 0.3)


@pytest.mark.parametrize("act", ACTIVATIONS)
def test_activations_are_exact_far_out_and_hide_nothing(act: LinearActivation) -> None:
    """Of what no exponential can hold, beyond the limits of the clamped one, and of what is no number."""
    x = torch.tensor([[-1e4, -200.0, -90.0, -1.0, 0.0, 1.0, 90.0, 1e4]])
    eye, zero = (packed_floats(matrix) for matrix in (torch.eye(8), torch.zeros(8, 8)))
    for up in (1.0, -100.0, 100.0):
        (found,) = run(x, [LinearWeight(eye), LinearWeight(zero, torch.full((8,), up))], act=act)
        torch.testing.assert_close(found, activate(x, torch.tensor(up), act), rtol=1e-6, atol=1e-30)
    broken = torch.zeros(8)
    broken[3] = torch.nan
    for gate, up_bias in ((broken, torch.ones(8)), (torch.ones(8), broken)):
        (found,) = run(x, [LinearWeight(zero, gate), LinearWeight(zero, up_bias)], act=act)
        assert found[0].isnan().tolist() == [i == 3 for i in range(8)]


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("qtype", ["Q4_0", "Q4_K", "Q6_K", "BF16"])
def test_a_broken_row_spoils_itself_and_no_other(qtype: str, value: float) -> None:
    weight = packed(qtype, 16, 256)
    for rows in (3, 40):
        x = random_rows(rows, 256)
        (whole,) = run(x, [LinearWeight(weight)])
        x[1, 40] = value
        (found,) = run(x, [LinearWeight(weight)])
        others = torch.arange(rows) != 1
        assert not found[1].isfinite().any()
        assert torch.equal(found[others], whole[others])


def test_codes_reach_the_limits_without_saturating() -> None:
    raw = torch.zeros(16, 34, dtype=torch.uint8)
    raw[:, 1] = 0x3C  # scale 1
    raw[:, 2:] = 0x80  # -128
    weight = GpuLayout().pack(RowReader("Q8_0", 16, 32, lambda first, n: raw[first : first + n].numpy()))
    x = torch.full((2, 32), 127.0)
    x[1] = -127.0
    (found,) = run(x, [LinearWeight(weight)])
    assert torch.equal(found, torch.tensor([[-128.0 * 127 * 32], [128.0 * 127 * 32]]).expand(2, 16))


@pytest.mark.parametrize("qtype", [*CODES, *GRIDS, *FLOATS])
def test_rows_by_id_are_the_files_numbers(qtype: str) -> None:
    n_cols = columns(qtype)
    weight = packed(qtype, 37, n_cols)
    ids = torch.tensor([36, 0, 8, 17, 0], dtype=torch.int32)
    out = torch.full((5, n_cols), torch.nan)
    embed(EmulatedDevice(), weight, ids, 3.0, out, 5)()
    assert torch.equal(out, weight.unpack_rows(ids.long()) * 3.0)


@pytest.mark.parametrize("qtype", CODES)
def test_decoded_matrices_are_the_nearest_bf16_numbers(qtype: str) -> None:
    n_cols = columns(qtype)
    weight, out = packed(qtype, 37, n_cols), torch.full((37, columns(qtype)), torch.nan, dtype=torch.bfloat16)
    dequantize(EmulatedDevice(), weight, out)()
    assert torch.equal(out, weight.unpack().bfloat16())


@pytest.mark.parametrize(
    ("qtype", "n_rows", "n_cols"), [("Q4_0", 16, 14336), ("Q4_K", 20, 14336), ("Q6_K", 4097, 256), ("F16", 16, 14336)]
)
def test_widths_of_real_models(qtype: str, n_rows: int, n_cols: int) -> None:
    weight, x = packed(qtype, n_rows, n_cols), random_rows(9, n_cols)
    (whole,) = run(x, [LinearWeight(weight)])
    assert Exact.of(x, weight).error(whole) < ERROR
    (alone,) = run(x[4:5], [LinearWeight(weight)])
    assert torch.equal(alone, whole[4:5])
