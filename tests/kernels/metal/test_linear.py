"""Linears on an Apple GPU, emulated: right, and to the bit the same however rows are put together."""

from itertools import product

import pytest
import torch
from localrun_testing.broken_kernels import SCHEDULES, report, runtime
from localrun_testing.emulator.build import Sanitizer
from localrun_testing.emulator.metal import emulated_device
from localrun_testing.gpu_weights import CODES, FLOATS, GRIDS, columns, packed, packed_floats, random_rows
from localrun_testing.metal_linear import ERROR, LAYOUT_CASES, error, matrix_device, run

from localrun.backends.gpu.matrices import embed
from localrun.backends.metal.linears import linear
from localrun.backends.metal.norms import norm
from localrun.backends.metal.self_test_linears import has_exact_matrices
from localrun.backends.metal.source import KERNELS
from localrun.backends.reference.ops import activate
from localrun.ops.instructions import LinearWeight
from localrun.ops.types import LinearActivation

ACTIVATIONS: tuple[LinearActivation, ...] = ("silu_mul", "gelu_mul", "clamped_silu_mul")
ROWS = (1, 8, 40, 70)
MORE_ROWS = (2, 3, 4, 7, 9, 16, 17, 32, 33, 64)  # each way to take them
EPS = 1e-5


@pytest.mark.parametrize("qtype", [*CODES, *FLOATS])
def test_linear_is_right_and_a_row_does_not_depend_on_the_rows_beside_it(qtype: str) -> None:
    n_cols = columns(qtype)
    weight, x = packed(qtype, 37, n_cols), random_rows(70, n_cols)
    (whole,) = run(x, [LinearWeight(weight)])
    assert error(whole, x, weight) < ERROR
    for rows in (*ROWS, *(MORE_ROWS if qtype in ("Q4_0", "F16") else ())):
        for first in {0, 70 - rows}:
            (part,) = run(x[first : first + rows], [LinearWeight(weight)])
            assert torch.equal(part, whole[first : first + rows]), (first, rows)


@pytest.mark.parametrize("qtype", ["Q4_K", "Q6_K", "BF16"])
def test_products_of_matrices_give_the_same_bits(qtype: str) -> None:
    weight = packed(qtype, 70, columns(qtype))
    for rows in (9, 40):
        x, residual = random_rows(rows, weight.n_cols), random_rows(rows, 70, 3)
        found = [
            run(x, [LinearWeight(weight, residual[0])], residual=residual, device=device)[0]
            for device in (emulated_device(), matrix_device())
        ]
        assert torch.equal(*found)


def test_whether_products_of_matrices_are_exact_is_found_out() -> None:
    assert has_exact_matrices(emulated_device())
    fma = "simdgroup_multiply_accumulate(sums.chains[t][a][b], of_x[a], of_w, sums.chains[t][a][b])"
    text = (KERNELS.folder() / "many_sums.metal").read_text()
    assert fma in text
    beside = "simdgroup_float8x8 product(0.f); simdgroup_multiply_accumulate(product, of_x[a], of_w, product);"
    added = "for (int e = 0; e < 2; e++) sums.chains[t][a][b].thread_elements()[e] += product.thread_elements()[e]"
    other = text.replace(f"{fma};", f"{{ {beside} {added}; }}")
    assert not has_exact_matrices(emulated_device(replace={"many_sums.metal": other}))


@pytest.mark.slow
@pytest.mark.parametrize("sanitizer", ["address", "thread"])
@pytest.mark.parametrize("case", LAYOUT_CASES)
def test_no_sanitizer_objects_to_a_layout(case: str, sanitizer: Sanitizer) -> None:
    if not runtime(sanitizer).is_absolute():
        pytest.skip("this compiler has no such sanitizer: windows and macos build theirs in another way")
    assert report("metal", case, sanitizer, SCHEDULES[0], {}) == ""


@pytest.mark.slow
@pytest.mark.parametrize("schedule", [(1, 0x00), (2, 0x3C)])
@pytest.mark.parametrize("case", LAYOUT_CASES)
def test_layouts_are_right_for_every_thread_schedule(case: str, schedule: tuple[int, int]) -> None:
    seed, poison = schedule
    assert LAYOUT_CASES[case](emulated_device(seed=seed, poison=poison)) == ""
    assert LAYOUT_CASES[case](matrix_device(seed, poison)) == ""


@pytest.mark.parametrize("qtype", ["Q4_0", "Q6_K", "BF16"])
def test_schedules_and_poison_change_nothing(qtype: str) -> None:
    weight = packed(qtype, 70, columns(qtype))
    for rows in (5, 40):
        x = random_rows(rows, weight.n_cols)
        found = [
            run(x, [LinearWeight(weight)], device=emulated_device(seed=seed, poison=poison))[0]
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


def test_matrices_of_one_layout_are_one_launch_and_so_are_gate_and_up() -> None:
    x, outs = random_rows(2, 256), [torch.zeros(2, 16) for _ in range(3)]
    weights = [LinearWeight(packed(qtype, 16, 256)) for qtype in ("Q4_K", "Q6_K", "Q4_K")]
    assert len(linear(emulated_device(), x, weights, outs, 2)) == 2
    assert len(linear(emulated_device(), x, weights[::2], outs[:1], 2, act="silu_mul")) == 1


@pytest.mark.parametrize(
    ("types", "act", "rows"), [*product((("Q4_K", "Q6_K"), ("Q4_0", "Q4_0"), ("BF16", "BF16")), ACTIVATIONS, (2, 11))]
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


@pytest.mark.parametrize("rows", [2, 11])
@pytest.mark.parametrize("qtype", ["Q4_0", "BF16"])
def test_squares_of_what_is_positive(qtype: str, rows: int) -> None:
    weight, bias = packed(qtype, 49, 256), random_rows(1, 49)[0]
    x, residual = random_rows(rows, 256) * 0.3, random_rows(rows, 49, 8)
    bias[7] = torch.nan
    (y,) = run(x, [LinearWeight(weight, bias)])
    (found,) = run(x, [LinearWeight(weight, bias)], act="relu_squared", residual=residual)
    torch.testing.assert_close(found, residual + activate(y, y, "relu_squared"), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize(("matrix", "rows"), [*product((("Q4_0", 416), ("Q6_K", 2304), ("F32", 102)), (1, 5, 8))])
def test_a_norm_within_gives_the_bits_of_a_norm_before(matrix: tuple[str, int], rows: int) -> None:
    qtype, n_cols = matrix
    weights = [LinearWeight(packed(qtype, n, n_cols, n)) for n in (33, 33)]
    x, gain = 3 * random_rows(rows, n_cols), random_rows(1, n_cols, 5)[0]
    normed = torch.full_like(x, torch.nan)
    norm(emulated_device(), x, gain, EPS, rows, out=normed)()
    for act, residual in (("none", None), ("silu_mul", random_rows(rows, 33, 8))):
        before = run(normed, weights, act=act, residual=residual)  # type: ignore[arg-type]
        within = run(x, weights, act=act, residual=residual, norm=(gain, EPS))  # type: ignore[arg-type]
        assert all(map(torch.equal, within, before))


@pytest.mark.parametrize("qtype", ["Q4_0", "F16"])
def test_an_output_may_be_the_residual(qtype: str) -> None:
    weight, bias = packed(qtype, 33, 256), random_rows(1, 33)[0]
    for rows in (4, 12):
        x, residual = random_rows(rows, 256), random_rows(rows, 33, 3)
        (apart,) = run(x, [LinearWeight(weight, bias)], residual=residual, out_scale=0.3)
        out = residual.clone()
        for launch in linear(
            emulated_device(), x, [LinearWeight(weight, bias)], [out], rows, residual=out, out_scale=0.3
        ):
            launch()
        assert torch.equal(out, apart)
        (alone,) = run(x, [LinearWeight(weight)])
        torch.testing.assert_close(out, residual + (alone + bias) * 0.3, rtol=1e-6, atol=1e-6)


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
@pytest.mark.parametrize("qtype", ["Q4_K", "BF16"])
def test_a_broken_row_spoils_itself_and_no_other(qtype: str, value: float) -> None:
    weight = packed(qtype, 16, 256)
    for rows, device in ((3, emulated_device()), (40, emulated_device()), (40, matrix_device())):
        x = random_rows(rows, 256)
        (whole,) = run(x, [LinearWeight(weight)], device=device)
        x[1, 40] = value
        (found,) = run(x, [LinearWeight(weight)], device=device)
        others = torch.arange(rows) != 1
        assert not found[1].isfinite().any()
        assert torch.equal(found[others], whole[others])


@pytest.mark.parametrize("qtype", [*CODES, *GRIDS, *FLOATS])
def test_rows_by_id_are_the_files_numbers(qtype: str) -> None:
    n_cols = columns(qtype)
    weight = packed(qtype, 37, n_cols)
    ids = torch.tensor([36, 0, 8, 17, 0], dtype=torch.int32)
    out = torch.full((5, n_cols), torch.nan)
    embed(emulated_device(), weight, ids, 3.0, out, 5)()
    assert torch.equal(out, weight.unpack_rows(ids.long()) * 3.0)


@pytest.mark.parametrize("n_cols", [1, 63, 66])
def test_widths_that_no_vector_fits(n_cols: int) -> None:
    matrix = random_rows(19, n_cols, 4)
    weight = packed_floats(matrix)
    for rows in (2, 10):
        x = random_rows(rows, n_cols)
        assert error(run(x, [LinearWeight(weight)])[0], x, weight) < ERROR


@pytest.mark.parametrize(("qtype", "n_rows", "n_cols"), [("Q4_K", 20, 14336), ("Q6_K", 4097, 256), ("F16", 16, 14336)])
def test_widths_of_real_models(qtype: str, n_rows: int, n_cols: int) -> None:
    weight, x = packed(qtype, n_rows, n_cols), random_rows(9, n_cols)
    (whole,) = run(x, [LinearWeight(weight)])
    assert error(whole, x, weight) < ERROR
    (alone,) = run(x[4:5], [LinearWeight(weight)])
    assert torch.equal(alone, whole[4:5])


@pytest.mark.slow
def test_a_whole_matrix_of_a_real_model() -> None:
    weight, x = packed("Q4_K", 4096, 14336), random_rows(2, 14336)
    (found,) = run(x, [LinearWeight(weight)])
    assert error(found, x, weight) < ERROR
