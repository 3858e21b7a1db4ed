"""Norm, embedding and logits of the CPU library against the reference."""

import ctypes
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from localrun_testing.arithmetics import integers_of, rounded
from localrun_testing.instruction_sets import native, pairwise, using
from localrun_testing.native import int32s
from localrun_testing.native_ops import (
    NATIVE_TYPES,
    Guarded,
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

from localrun.backends.cpu import abi, abi_step
from localrun.backends.reference.logits import finish_logits
from localrun.backends.reference.norm import rms_norm
from localrun.backends.reference.ops import activate, xielu
from localrun.formats.quant import QUANT_TYPES
from localrun.ops.instructions import Xielu
from localrun.ops.interface import LogitAdjust
from localrun.ops.token_counts import TokenCounts


def rows(n: int, n_cols: int, seed: int = 1) -> Tensor:
    return torch.randn(n, n_cols, generator=torch.Generator().manual_seed(seed))


def norm(x: Tensor, weight: Tensor, eps: float, residual: Tensor | None = None, forms: int = 0) -> NativeValue:
    source, out = NativeValue(len(x), x.shape[1], data=x), NativeValue(len(x), x.shape[1], forms)
    held = Guarded(4 * len(weight))
    held.tensor(torch.float32, len(weight))[:] = weight
    op = abi.Norm(x=ctypes.pointer(source.c), out=ctypes.pointer(out.c), weight=held.address, eps=eps, size=len(weight))
    rest = None if residual is None else NativeValue(len(x), x.shape[1], data=residual)
    if rest is not None:
        op.residual = ctypes.pointer(rest.c)
    run([instruction(op)], len(x), threads=2)
    return out


@pytest.mark.parametrize("width", [1, 15, 16, 17, 288, 1000, 4096])
def test_norm_is_that_of_the_reference(isa: str, width: int) -> None:
    x, weight = rows(5, width) * 3, rows(1, width, 2)[0]
    torch.testing.assert_close(norm(x, weight, 1e-5).data, rms_norm(x, weight, 1e-5), rtol=2e-6, atol=1e-6)
    residual = rows(5, width, 3)
    found = norm(x, weight, 1e-5, residual).data
    torch.testing.assert_close(found, residual + rms_norm(x, weight, 1e-5), rtol=2e-6, atol=2e-6)
    assert torch.equal(norm(x[3:4], weight, 1e-5).data[0], norm(x, weight, 1e-5).data[3])


@pytest.mark.parametrize(("n_runs", "size"), [(1, 24), (3, 16), (5, 17), (35, 256)])
def test_runs_of_a_row_are_normed_by_themselves(isa: str, n_runs: int, size: int) -> None:
    x, weight, residual = rows(3, n_runs * size) * 3, rows(1, size, 2)[0], rows(3, n_runs * size, 3)
    expected = rms_norm(x.unflatten(1, (n_runs, size)), weight, 1e-6).flatten(1)
    torch.testing.assert_close(norm(x, weight, 1e-6).data, expected, rtol=2e-6, atol=1e-6)
    torch.testing.assert_close(norm(x, weight, 1e-6, residual).data, residual + expected, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize(("first", "n"), [(0, 1), (3, 17), (256, 256), (31, 40)])
def test_gelu_of_a_gate_counts_for_a_part_of_x(isa: str, first: int, n: int) -> None:
    gate, x = rows(4, n) * 4, rows(4, first + n + 5, 2)
    values = [NativeValue(4, n, data=gate), NativeValue(4, first + n + 5, data=x), NativeValue(4, n)]
    run([instruction(abi.GeluMul(*(ctypes.pointer(value.c) for value in values), first))], 4, threads=2)
    expected = activate(gate, x[:, first : first + n], "gelu_mul")
    torch.testing.assert_close(values[2].data, expected, rtol=3e-6, atol=2e-6)


@pytest.mark.parametrize("width", [1, 17, 1536])
def test_a_row_is_scaled(isa: str, width: int) -> None:
    x = rows(3, width)
    source, out = NativeValue(3, width, data=x), NativeValue(3, width)
    run([instruction(abi.Scale(ctypes.pointer(source.c), ctypes.pointer(out.c), 0.3))], 3)
    assert torch.equal(out.data, x * 0.3)


@pytest.mark.parametrize("width", [1, 17, 1536])
@pytest.mark.parametrize("bounds", [(-0.5, 0.25), (-torch.inf, 0.1), (0.0, torch.inf)])
def test_clamp_is_that_of_torch(isa: str, width: int, bounds: tuple[float, float]) -> None:
    x = rows(3, width)
    x[2, -1] = torch.nan
    x[1, 0] = torch.inf
    source, out = NativeValue(3, width, data=x), NativeValue(3, width)
    run([instruction(abi.Clamp(ctypes.pointer(source.c), ctypes.pointer(out.c), *bounds))], 3, threads=2)
    torch.testing.assert_close(out.data, x.clamp(*bounds), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("width", [1, 17, 1536])
def test_xielu_is_that_of_the_reference(isa: str, width: int) -> None:
    x = rows(3, width) * 4
    x[0, 0] = 0.0
    x[1, width // 2] = -1e-7  # nearer to 0 than the limit
    x[2, -1] = torch.nan
    numbers = (0.9, 1.3, 0.5, -1e-6)
    source, out = NativeValue(3, width, data=x), NativeValue(3, width)
    run([instruction(abi.Xielu(ctypes.pointer(source.c), ctypes.pointer(out.c), *numbers))], 3, threads=2)
    torch.testing.assert_close(out.data, xielu(Xielu(x, *numbers)), rtol=3e-6, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("n_cols", [96, 1056])
def test_codes_are_made_in_the_order_of_columns(isa: str, n_cols: int) -> None:
    """As if the row itself were in that order, which it is not."""
    x, order = rows(5, n_cols) * 3, torch.randperm(n_cols, generator=torch.Generator().manual_seed(3)).int()
    matrix = NativeMatrix(sample("INT4_ZP_G32", 20, n_cols), "INT4_ZP_G32", n_cols)
    results = []
    for data, address in ((x[:, order.long()], None), (x, order.data_ptr())):
        value, out = NativeValue(5, n_cols, data=data), NativeValue(5, 20)
        op = abi.Linear(a=ctypes.pointer(value.c), order=address, n_weights=1, out_scale=1.0)
        op.weight[0], op.out[0], op.make_formats = (
            ctypes.pointer(matrix.c),
            ctypes.pointer(out.c),
            matrix.activation_format,
        )
        run([instruction(op)], 5, threads=2)
        assert torch.equal(value.data, data)
        results.append(out.data)
    assert torch.equal(*results)


def test_norm_makes_the_codes_that_linear_would_make(isa: str) -> None:
    x, weight = rows(4, 288), rows(1, 288, 2)[0]
    matrix = NativeMatrix(sample("Q6_K", 20, 256), "Q6_K", 256)
    forms = matrix.activation_format
    made = norm(x, weight, 1e-5, forms=forms)
    again = NativeValue(4, 288, data=made.data)
    wide = NativeMatrix(sample("Q4_0", 20, 288), "Q4_0", 288)
    results = []
    for value, missing in ((made, 0), (again, forms)):
        out = NativeValue(4, 20)
        op = abi.Linear(a=ctypes.pointer(value.c), n_weights=1, out_scale=1.0, make_formats=missing)
        op.weight[0], op.out[0] = ctypes.pointer(wide.c), ctypes.pointer(out.c)
        run([instruction(op)], 4)
        results.append(out.data)
    assert torch.equal(*results)
    integers, scales = integers_made(made)
    assert not integers[:, 9:].any()
    assert torch.equal((integers * scales[..., None]).flatten(1)[:, :288], rounded(made.data, arithmetic()))
    assert matrix.activation_format == wide.activation_format


def arithmetic() -> str:
    return library().library.arithmetic


def integers_made(value: NativeValue) -> tuple[Tensor, Tensor]:
    """What a buffer's codes stand for: whole numbers [R, groups, 32] and scales [R, groups]; its sums are theirs, less
    what outliers have beyond a byte."""
    n, groups = len(value.f32), value.f32.shape[1] // 32
    codes = value.parts["q8"].tensor(torch.int8, n, 32 * groups * code_bytes())
    words = value.parts["q8_scale"].tensor(torch.float32, n, groups)
    integers, scales = integers_of(arithmetic(), codes, words)
    sums = value.parts["q8_sum"].tensor(torch.int32, n, 2 * groups)
    summed = codes[:, : 32 * groups].int() if arithmetic() == "int8+4/32" else integers
    assert torch.equal(sums, summed.view(n, 2 * groups, 16).sum(-1, dtype=torch.int32))
    return integers, scales


@pytest.mark.parametrize("size", [1e-38, 1e-30, 3e-30, 1e-6, 1.0, 1e6, 1e37, 3e38])
def test_activations_of_any_size_are_rounded_to_the_nearest(isa: str, size: float) -> None:
    """Codes and scales beside torch, to the bit; and nowhere further off than half a step."""
    x = (rows(6, 288) * rows(6, 288, 2).mul(3).exp()).clamp(-7, 7) / 7
    x[1, 40:70], x[2] = 0, torch.linspace(-1, 1, 288)
    x[3] *= torch.tensor([1.0, 0.01]).repeat(144)  # columns of their own size
    made = NativeValue(6, 288, data=x * size)
    matrix, out = NativeMatrix(sample("Q4_0", 16, 288), "Q4_0", 288), NativeValue(6, 16)
    run([instruction(linear_op(made.c, [matrix], [out.c]))], 6)
    integers, scales = integers_made(made)
    groups = made.f32.unflatten(1, (-1, 32))
    found = integers.float() * scales[..., None]
    assert torch.equal(found.flatten(1)[:, :288], rounded(x * size, arithmetic()))
    step = groups.abs().amax(-1, keepdim=True) / 127
    assert ((found / 2 - groups / 2).abs() <= step * 0.2525 + (1e-30 if size < 1e-28 else 0)).all()


def test_the_largest_codes_have_the_largest_factors(isa: str) -> None:
    """The activations by which test_twins.py shows that no sum runs over."""
    made = NativeValue(1, 32, 1, data=torch.full((1, 32), 15 * 127 / 2048))
    matrix, out = NativeMatrix(sample("Q4_0", 16, 32), "Q4_0", 32), NativeValue(1, 16)
    run([instruction(linear_op(made.c, [matrix], [out.c]))], 1)
    integers, _ = integers_made(made)
    assert integers[0, 0].unique().tolist() == [{"int8:8/32": 127 * 15, "int16/32": 127 * 257}.get(arithmetic(), 127)]


@pytest.mark.skipif("avxvnni" not in native(), reason="AVX-VNNI is another instruction set")
def test_outliers_leave_the_others_their_own_scale() -> None:
    x = rows(1, 1024).clamp(-1, 1)
    x[0, 0], x[0, 4:8], x[0, 40], x[0, 80] = 1, torch.tensor([0.5, -200.0, 3.0, 0.01]), -3000, 2
    with using("avxvnni"):
        made = NativeValue(1, 1024, 1, data=x)
        matrix, out = NativeMatrix(sample("Q4_0", 16, 1024), "Q4_0", 1024), NativeValue(1, 16)
        run([instruction(linear_op(made.c, [matrix], [out.c]))], 1)
        integers, scales = integers_made(made)
    assert integers[0, 0, [0, 4, 5]].tolist() == [127, 64, -25400]
    assert scales[0, 0] == torch.tensor(1 / 127)
    assert integers[0, 1, 8] == -127 * 257  # beyond 257 times the others it decides itself
    assert integers[0, 2, 16] == 127  # it does not stand out enough


@pytest.mark.parametrize("broken", [torch.nan, torch.inf, -torch.inf])
def test_a_group_with_no_number_has_no_scale(isa: str, broken: float) -> None:
    x = rows(2, 288)
    x[0, 70] = broken
    made = NativeValue(2, 288, 1, data=x)
    matrix, out = NativeMatrix(sample("Q4_0", 16, 288), "Q4_0", 288), NativeValue(2, 16)
    run([instruction(linear_op(made.c, [matrix], [out.c]))], 2)
    _, scales = integers_made(made)
    assert scales.isfinite().logical_not().nonzero().tolist() == [[0, 2]]
    assert not out.data[0].isfinite().any()
    assert out.data[1].isfinite().all()


@pytest.mark.parametrize("qtype", ["Q4_0", "Q6_K", "BF16", "F16"])
def test_embedding_takes_rows_by_id(isa: str, qtype: str) -> None:
    raw = sample(qtype, 50, 256)
    matrix = NativeMatrix(raw, qtype, 256)
    ids = [49, 0, 7, 7, 16]
    token = int32s(ids)
    for scale in (1.0, 12.5):
        out = NativeValue(len(ids), 256)
        op = abi.Embed(weight=ctypes.pointer(matrix.c), out=ctypes.pointer(out.c), scale=scale)
        run([instruction(op)], len(ids), token=ctypes.addressof(token))
        assert torch.equal(out.data, decoded(qtype, raw, 256)[ids] * scale)


@pytest.mark.parametrize("qtype", sorted(NATIVE_TYPES))
def test_embedding_takes_rows_of_a_files_own_blocks(isa: str, qtype: str) -> None:
    kind = QUANT_TYPES[qtype]
    assert kind.number is not None
    for n_cols in (256, 1280, *([288] if kind.block_size <= 32 else []), *([7] if kind.block_size == 1 else [])):
        raw = sample(qtype, 20, n_cols)
        ids = [19, 0, 7, 7]
        token, out = int32s(ids), NativeValue(len(ids), n_cols)
        op = abi.EmbedMapped(raw.data_ptr(), ctypes.pointer(out.c), 2.0, kind.number, 20, n_cols)
        run([instruction(op)], len(ids), token=ctypes.addressof(token))
        expected = decoded(qtype, raw, n_cols)[ids] * 2.0
        torch.testing.assert_close(out.data, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("width", [7, 256, 288])
def test_rows_of_images_come_from_the_buffer_unscaled(isa: str, width: int) -> None:
    raw, ids, buffer_row = sample("F32", 20, width), [19, 3, 7, 3], [-1, 2, -1, 0]
    matrix, buffer, added = NativeMatrix(raw, "F32", width), rows(3, width, 5), rows(3, width, 6)
    token, wanted = int32s(ids), int32s(buffer_row)
    pointers = (ctypes.c_void_p * 1)(added.data_ptr())
    images = {
        "token": ctypes.addressof(token),
        "buffer_row": ctypes.addressof(wanted),
        "buffer": buffer.data_ptr(),
        "added": ctypes.addressof(pointers),
        "n_buffer": 3,
        "n_added": 1,
    }
    out, more, like_token = (NativeValue(4, width) for _ in range(3))
    weight = ctypes.pointer(matrix.c)
    program = [
        instruction(abi.Embed(weight, ctypes.pointer(out.c), 2.0, -1)),
        instruction(abi.AddImageRows(ctypes.pointer(out.c), ctypes.pointer(more.c), 0)),
        instruction(abi.Embed(weight, ctypes.pointer(like_token.c), 2.0, 11)),
    ]
    run(program, 4, **images)
    expected = decoded("F32", raw, width)[ids] * 2.0
    expected[[1, 3]] = buffer[[2, 0]]
    assert torch.equal(out.data, expected)
    expected[[1, 3]] += added[[2, 0]]
    assert torch.equal(more.data, expected)
    assert torch.equal(like_token.data, decoded("F32", raw, width)[[19, 11, 7, 11]] * 2.0)


def adjust_of(change: LogitAdjust | None, keep: list[Any]) -> abi_step.Adjust:
    if change is None:
        return abi_step.Adjust(repeat=1.0, inv_temperature=1.0)

    def array(values: Sequence[Any], kind: Any) -> Any:
        keep.append((kind * max(1, len(values)))(*values))
        return ctypes.addressof(keep[-1])

    return abi_step.Adjust(
        seen=array(list(change.seen), ctypes.c_int32),
        ids=array(list(change.counts), ctypes.c_int32),
        counts=array(list(change.counts.values()), ctypes.c_int32),
        bias_ids=array(list(change.bias), ctypes.c_int32),
        bias=array(list(change.bias.values()), ctypes.c_float),
        n_seen=len(change.seen),
        n_ids=len(change.counts),
        n_bias=len(change.bias),
        repeat=change.repeat,
        presence=change.presence,
        frequency=change.frequency,
        inv_temperature=1 / (change.temperature or 1.0),
    )


def logits(
    x: Tensor,
    matrix: NativeMatrix,
    wanted: list[int],
    adjust: Sequence[LogitAdjust | None] = (),
    scale: float = 1.0,
    softcap: float = 0.0,
    threads: int = 2,
) -> tuple[Tensor, list[abi_step.Candidates]]:
    """Rows of logits, adjusted, f32 [L, vocab], and their candidates."""
    vocab, n = matrix.c.n_rows, len(wanted)
    a, gathered = NativeValue(len(x), x.shape[1], data=x), NativeValue(n, x.shape[1], matrix.activation_format)
    memory = Guarded(4 * n * vocab)
    op = abi.LogitsOp(
        a=ctypes.pointer(a.c),
        weight=ctypes.pointer(matrix.c),
        rows=memory.address,
        gathered=ctypes.pointer(gathered.c),
        scale=scale,
        softcap=softcap,
    )
    keep: list[Any] = []
    candidates = (abi_step.Candidates * n)()
    fields: dict[str, Any] = {"candidates": candidates, "n_logits": n}
    if adjust:
        fields["adjust"] = (abi_step.Adjust * n)(*(adjust_of(change, keep) for change in adjust))
    wanted_c = int32s(wanted)
    run([instruction(op)], len(x), threads, logits_row=ctypes.addressof(wanted_c), **fields)
    return memory.tensor(torch.float32, n, vocab).clone(), list(candidates)


def given(values: Tensor) -> tuple[Tensor, NativeMatrix]:
    """An input and a matrix whose logits are exactly `values` [L, vocab]: f32 weights, one column a row."""
    columns = values.T.clone(memory_format=torch.contiguous_format)
    return torch.eye(len(values)), NativeMatrix(columns.view(torch.uint8).reshape(len(columns), -1), "F32", len(values))


def check_candidates(values: Tensor, adjust: Sequence[LogitAdjust | None] = ()) -> None:
    x, matrix = given(values)
    found, candidates = logits(x, matrix, list(range(len(values))), adjust)
    expected = finish_logits(values.clone(), adjust)
    torch.testing.assert_close(found, expected.rows, rtol=1e-6, atol=1e-6)
    exact = finish_logits(found.clone(), ())
    for i, row in enumerate(candidates):
        n = min(256, values.shape[1])
        assert row.n_candidates == n
        assert list(row.ids[:n]) == exact.top_ids[i].tolist()
        assert list(row.values[:n]) == exact.top_values[i].tolist()
        assert row.finite == 1
        assert row.logsumexp == pytest.approx(float(expected.logsumexp[i]), abs=1e-5, rel=1e-6)


@pytest.mark.parametrize("vocab", [1, 15, 17, 255, 256, 257, 1000, 8191, 8192, 8193, 32_003])
def test_candidates_are_those_of_the_reference(isa: str, vocab: int) -> None:
    check_candidates(rows(3, vocab) * 5)


def test_equal_logits_are_ordered_by_id(isa: str) -> None:
    n = 20_000
    check_candidates(torch.zeros(1, n))
    check_candidates(torch.randint(-3, 3, (2, n), generator=torch.Generator().manual_seed(1)).float())
    check_candidates(torch.arange(n).float()[None])
    check_candidates(-torch.arange(n).float()[None])
    signed = torch.zeros(1, 300)
    signed[0, ::2] = -0.0
    check_candidates(signed)
    steps = torch.full((1, n), -5.0)
    steps[0, -100:] = 1.0
    check_candidates(steps)


def test_penalties_and_bias_come_first(isa: str) -> None:
    change = LogitAdjust(
        seen=TokenCounts((1, 5, 900)),
        counts=TokenCounts((5, 5, 5, 7)),
        repeat=1.3,
        presence=0.5,
        frequency=0.25,
        bias={2: 9.0, 3: -100.0},
    )
    values = rows(3, 1000) * 4
    check_candidates(values, [change, None, replace(change, temperature=0.4)])
    banned = replace(change, bias={4: -torch.inf})
    check_candidates(values[:1], [banned])


def test_a_row_is_adjusted_once_by_every_reader(isa: str) -> None:
    """Logits are surveyed by parts of 8,192, each with the changes of its own ids."""
    edges = (0, 8_191, 8_192, 16_383, 16_384, 19_999)
    change = LogitAdjust(
        seen=TokenCounts(edges),
        counts=TokenCounts(edges * 2),
        repeat=1.5,
        presence=0.5,
        frequency=0.25,
        bias={8_192: 3.0, 8_191: 3.0},
    )
    check_candidates(rows(2, 20_000) * 2, [change, None])


def test_parts_that_are_banned_whole_count_for_nothing(isa: str) -> None:
    banned = dict.fromkeys(range(8_192, 16_384), -torch.inf)
    check_candidates(rows(1, 20_000), [LogitAdjust(bias=banned)])
    every_id_but_one = LogitAdjust(bias=dict.fromkeys(range(1, 8_300), -torch.inf))
    check_candidates(rows(1, 8_300), [every_id_but_one])


def test_scale_and_softcap(isa: str) -> None:
    raw = sample("Q8_0", 500, 64)
    matrix, x = NativeMatrix(raw, "Q8_0", 64), rows(6, 64)
    found, _ = logits(x, matrix, [5, 0, 3], scale=0.5, softcap=7.0)
    (plain,) = linear(x, [matrix])
    torch.testing.assert_close(found, 7 * torch.tanh(plain[[5, 0, 3]] * 0.5 / 7), rtol=1e-5, atol=2e-6)
    assert nmse(plain, x @ decoded("Q8_0", raw, 64).T) < 5e-4


@pairwise(value=(torch.nan, torch.inf, -torch.inf), softcap=(0.0, 30.0))
def test_rows_that_are_not_numbers_are_said_to_be(isa: str, value: float, softcap: float) -> None:
    values = rows(2, 9000)
    x, matrix = given(values)
    x[0, 0] = value
    _, candidates = logits(x, matrix, [0, 1], softcap=softcap)
    assert candidates[0].finite == 0
    assert candidates[0].n_candidates == 0
    assert candidates[1].finite == 1


@pairwise(place=(0, 8_191, 8_192, 8_999), softcap=(0.0, 30.0))
def test_one_value_that_is_no_number_is_noticed(isa: str, place: int, softcap: float) -> None:
    values = rows(1, 9000)
    values[0, place] = torch.nan
    found, (candidates,) = logits(*given(values), [0], softcap=softcap)
    assert (candidates.finite, candidates.n_candidates) == (0, 0)
    assert found.isnan().nonzero().tolist() == [[0, place]]


def test_a_softcap_hides_no_broken_state_from_codes(isa: str) -> None:
    matrix, x = NativeMatrix(sample("Q8_0", 500, 64), "Q8_0", 64), rows(4, 64)
    x[1, 7], x[2, 40] = torch.nan, torch.inf
    _, candidates = logits(x, matrix, [0, 1, 2, 3], softcap=30.0)
    assert [row.finite for row in candidates] == [1, 0, 0, 1]


def test_threads_and_neighbours_change_no_candidate(isa: str) -> None:
    matrix, x = NativeMatrix(sample("Q6_K", 3000, 256), "Q6_K", 256), rows(8, 256)
    together, candidates = logits(x, matrix, list(range(8)))
    for row in (0, 5):
        alone, (one,) = logits(x, matrix, [row], threads=1)
        assert torch.equal(alone[0], together[row])
        assert bytes(one) == bytes(candidates[row])
