"""Mixtures of experts, emulated: right, and to the bit the same however rows are put together."""

from dataclasses import replace

import pytest
import torch
from localrun_testing.gpu_cases import Name
from localrun_testing.gpu_mixtures import N_EXPERTS, mixture_of, of_rows, products_of, routed_by
from localrun_testing.gpu_weights import CODES, FLOATS, columns, random_rows
from localrun_testing.metal_linear import matrix_device
from localrun_testing.native_ops import nmse
from torch import Tensor

from localrun.backends.gpu.mixture import ExpertProducts, parts
from localrun.backends.gpu.mixture_memory import FEW, MANY, mixture_bytes
from localrun.backends.gpu.self_test_mixture import exact, run
from localrun.backends.metal.products import MetalProducts
from localrun.backends.reference.moe import choose
from localrun.ops.instructions import Moe
from localrun.ops.types import LinearActivation, Routing

NMSE_LIMIT = 1e-3  # rows are rounded to 8 bits, twice
CLOSE = 1e-5
ON_BOTH = pytest.mark.parametrize("platform", ["cuda", "metal"])
GROUPED = Routing(2, "sigmoid", scale=2.5, n_groups=3, n_groups_used=2)
ROUTINGS = (Routing(1), Routing(3, normalize=False), GROUPED, Routing(2, n_groups=2, n_groups_used=1, group_rank=1))


def rows_of(op: Moe, which: slice) -> Moe:
    """Some rows of a mixture."""
    rows = {name: value[which] for name in ("a", "residual", "chosen_by") if (value := getattr(op, name)) is not None}
    return replace(op, **rows)


def assert_alike_in_parts(op: Moe, whole: Tensor, sizes: tuple[int, ...], products: ExpertProducts) -> None:
    for size in sizes:
        for first in {0, len(whole) - size}:
            which = slice(first, first + size)
            assert torch.equal(run(products, rows_of(op, which)), whole[which]), (first, size)


USUAL = ("Q8_0", "Q4_K", "Q6_K", "F32")  # each layout is kernels of its own to compile


@pytest.mark.parametrize(
    "qtype", [q if q in USUAL else pytest.param(q, marks=pytest.mark.slow) for q in (*CODES, *FLOATS)]
)
@ON_BOTH
def test_experts_are_right_and_a_row_does_not_depend_on_the_rows_beside_it(platform: Name, qtype: str) -> None:
    """In tiles of up to 8 pairs and of up to 64, of one expert or of all."""
    products, n_cols = products_of(platform), 256 if columns(qtype) == 768 else 64
    op = of_rows(mixture_of(qtype, sizes=(n_cols, n_cols), n_experts=2), 12)
    whole = run(products, op)
    assert nmse(whole, exact(op)) < (NMSE_LIMIT if qtype in CODES else CLOSE**2)
    assert_alike_in_parts(op, whole, (1, 3), products)


@pytest.mark.parametrize("qtypes", ["MXFP4", "F16", ("Q4_0", "Q8_0", "F16")])
@ON_BOTH
def test_every_chunk_gives_the_same_bits(platform: Name, qtypes: tuple[str, str, str] | str) -> None:
    """Across tiles that are full, and where experts have very different numbers of rows."""
    products = products_of(platform)
    op = of_rows(mixture_of(qtypes, act="clamped_silu_mul", n_experts=3), 70)
    whole = run(products, op)
    assert nmse(whole, exact(op)) < NMSE_LIMIT
    assert_alike_in_parts(op, whole, (1, 2, 8, 9, 33), products)


def test_products_of_matrices_give_the_same_bits() -> None:
    """On Metal, in tiles of many pairs of which some are not there."""
    for qtype in ("Q4_K", "F16"):
        op = of_rows(mixture_of(qtype, sizes=(256, 256), n_experts=3), 45)
        assert torch.equal(run(MetalProducts(matrix_device()), op), run(products_of("metal"), op))


@ON_BOTH
def test_all_rows_to_one_expert(platform: Name) -> None:
    """More than a tile holds, of either size."""
    logits = torch.full((MANY + 3, N_EXPERTS), -1.0)
    logits[:, 4], logits[:, 2] = 3.0, 1.0
    for qtype in ("Q8_0", "F32"):
        op = routed_by(mixture_of(qtype), logits)
        whole = run(products_of(platform), op)
        assert nmse(whole, exact(op)) < NMSE_LIMIT
        assert_alike_in_parts(op, whole, (1, FEW, FEW + 1), products_of(platform))


@pytest.mark.parametrize("rows", [2, 11])
@pytest.mark.parametrize("routing", ROUTINGS)
@ON_BOTH
def test_rows_are_routed_as_they_are_by_the_reference(platform: Name, routing: Routing, rows: int) -> None:
    """With a choice bias, a scale of every expert, and an expert that all rows go through."""
    op = mixture_of("F32", routing, shared=True)
    biased = replace(op.router, choice_bias=random_rows(1, N_EXPERTS, 8)[0], scale=1 + random_rows(1, N_EXPERTS, 9)[0])
    op = of_rows(replace(op, router=biased), rows)
    found, expected = run(products_of(platform), op), exact(op)
    assert (found - expected).abs().max() <= CLOSE * expected.abs().max()


@pytest.mark.parametrize("routing", [Routing(3), replace(GROUPED, n_used=3), Routing(3, "sigmoid", normalize=False)])
@pytest.mark.parametrize(
    "logits",
    [
        [0.0] * 6,
        [1.0, 2.0, 2.0, 1.0, 2.0, 2.0],
        [0.0, -0.0, 0.0, -0.0, 0.0, -0.0],
        [-90.0, 90.0, -90.0, -90.0, -90.0, 90.0],
    ],
)
@ON_BOTH
def test_of_equal_scores_the_lower_expert_comes_first(platform: Name, logits: list[float], routing: Routing) -> None:
    raw = torch.tensor([logits, [*reversed(logits)]])
    op = routed_by(mixture_of("F32", routing), raw)
    ids, weights = routes(platform, op)
    expected, chosen = choose(raw, op.router)
    assert ids.tolist() == chosen.tolist()
    torch.testing.assert_close(weights, expected, rtol=1e-6, atol=0)


@ON_BOTH
def test_a_broken_row_spoils_itself_and_no_other(platform: Name) -> None:
    for rows, qtype in ((3, "Q8_0"), (40, "Q8_0"), (11, "F32")):
        op = of_rows(mixture_of(qtype), rows)
        whole = run(products_of(platform), op)
        op.a[1, 40] = torch.nan
        found, others = run(products_of(platform), op), torch.arange(rows) != 1
        assert not found[1].isfinite().any()
        assert torch.equal(found[others], whole[others])


@pytest.mark.parametrize("rows", [5, 20])
@ON_BOTH
def test_rows_that_only_pad_go_nowhere(platform: Name, rows: int) -> None:
    op = of_rows(mixture_of("Q8_0"), rows)
    whole, positions = run(products_of(platform), op), torch.arange(rows, dtype=torch.int32)
    padding = torch.tensor([1, rows - 1])
    positions[padding] = -1
    op.a[padding] = torch.nan
    memory = torch.zeros(mixture_bytes([op], rows) // 4, dtype=torch.int32)
    found = run(products_of(platform), op, positions=positions, memory=memory)
    ids, others = parts(memory, op, rows)["ids"].view(rows, -1), positions >= 0
    assert (ids[padding] == -1).all()
    assert torch.equal(found[others], whole[others])


@pytest.mark.parametrize("act", ["silu_mul", "gelu_mul", "clamped_silu_mul", "relu_squared"])
@ON_BOTH
def test_activations_of_experts(platform: Name, act: LinearActivation) -> None:
    for rows in (2, 30):
        op = of_rows(mixture_of(("Q8_0", "Q8_0", "F32"), act=act, n_experts=2), rows)
        assert nmse(run(products_of(platform), op), exact(op)) < NMSE_LIMIT


@ON_BOTH
def test_experts_that_begin_within_a_tile(platform: Name) -> None:
    """Of sizes that no model has: 16 rows of a matrix are of two experts."""
    for gate, rows in (("Q8_0", 3), ("F32", 11)):
        op = of_rows(mixture_of((gate, gate, "F32"), sizes=(32 if gate == "Q8_0" else 44, 27)), rows)
        assert nmse(run(products_of(platform), op), exact(op)) < NMSE_LIMIT


@ON_BOTH
def test_schedules_and_poison_change_nothing(platform: Name) -> None:
    for qtype, rows in (("MXFP4", 3), ("MXFP4", 30), ("F16", 11)):
        op = of_rows(mixture_of(qtype, GROUPED), rows)
        found = [run(products_of(platform, seed, poison), op) for seed, poison in ((0, 0xFF), (1, 0x00), (2, 0x3C))]
        assert all(torch.equal(found[0], other) for other in found)


def routes(platform: Name, op: Moe) -> tuple[Tensor, Tensor]:
    """Where the kernels send rows: ids and weights [rows, n_used]."""
    rows = len(op.a)
    memory = torch.zeros(mixture_bytes([op], rows) // 4, dtype=torch.int32)
    run(products_of(platform), op, memory=memory)
    found = parts(memory, op, rows)
    return found["ids"].view(rows, -1), found["weights"].view(rows, -1)
