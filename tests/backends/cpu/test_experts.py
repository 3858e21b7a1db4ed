"""Mixtures of experts of the CPU library: an expert computes what its matrices compute, whoever else it serves."""

import ctypes
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from localrun_testing.instruction_sets import pairwise
from localrun_testing.native_ops import NativeMatrix, NativeValue, instruction, linear, run, sample
from torch import Tensor

from localrun.backends.cpu import abi

HIDDEN, FFN, N_EXPERTS = 512, 256, 5
GPT_OSS = ("MXFP4", "MXFP4", "MXFP4")


@dataclass
class NativeMixture:
    """A router and the stacked matrices of all experts, with each expert's own beside them."""

    qtypes: tuple[str, str, str]
    top_k: int = 2
    normalize: bool = True
    sigmoid: bool = False
    choice_bias: Tensor | None = None
    scale: float = 1.0
    act: str = "silu_mul"
    biases: bool = False  # of the router and of every expert
    expert_scale: Tensor | None = None
    groups: tuple[int, int, int] = (1, 1, 1)  # how many, how many are used, by how many of its experts one is ranked
    n_experts: int = N_EXPERTS

    def __post_init__(self) -> None:
        self.router = NativeMatrix(sample("F32", self.n_experts, HIDDEN, seed=1), "F32", HIDDEN)
        shapes = ((FFN, HIDDEN), (FFN, HIDDEN), (HIDDEN, FFN))
        self.all: list[NativeMatrix] = []
        self.each: list[list[NativeMatrix]] = []  # [gate, up, down][expert]
        for seed, (qtype, (n_rows, n_cols)) in enumerate(zip(self.qtypes, shapes, strict=True)):
            raw = sample(qtype, self.n_experts * n_rows, n_cols, seed + 2)
            self.all.append(NativeMatrix(raw, qtype, n_cols))
            self.each.append([NativeMatrix(part, qtype, n_cols) for part in raw.split(n_rows)])
        draw, n = torch.Generator().manual_seed(9), self.n_experts
        widths = (n, *(n * n_rows for n_rows, _ in shapes))
        self.bias = [torch.randn(n, generator=draw) if self.biases else torch.zeros(n) for n in widths]

    def run(self, x: Tensor, residual: Tensor | None = None, scale: float = 1.0, threads: int = 2) -> Tensor:
        """As the library computes it, in one program -> f32 [R, HIDDEN]."""
        n_rows, (gate, up, down) = len(x), self.all
        a, scores, out = (
            NativeValue(n_rows, HIDDEN, data=x),
            NativeValue(n_rows, self.n_experts),
            NativeValue(n_rows, HIDDEN),
        )
        chosen = NativeValue(n_rows * self.top_k, HIDDEN, gate.activation_format | up.activation_format)
        hidden = NativeValue(n_rows * self.top_k, FFN, down.activation_format)
        y = NativeValue(n_rows * self.top_k, HIDDEN)
        rest = None if residual is None else NativeValue(n_rows, HIDDEN, data=residual)
        ints = [np.zeros(n_rows * self.top_k, np.int32) for _ in range(2)] + [np.zeros(self.n_experts + 1, np.int32)]
        weights = np.zeros(n_rows * self.top_k, np.float32)
        expert, place, first = (part.ctypes.data for part in ints)
        routes = ctypes.pointer(abi.Routes(expert, weights.ctypes.data, place, first, self.n_experts, self.top_k))
        point = ctypes.pointer
        score = abi.Linear(a=point(a.c), n_weights=1, out_scale=1.0, make_formats=chosen.c.formats)
        score.weight[0], score.out[0] = point(self.router.c), point(scores.c)
        score.bias[0], *bias = (b.data_ptr() if self.biases else None for b in self.bias)
        reads_f32 = not (gate.activation_format and up.activation_format)
        choice_bias = None if self.choice_bias is None else self.choice_bias.data_ptr()
        expert_scale = None if self.expert_scale is None else self.expert_scale.data_ptr()
        how = (choice_bias, self.normalize, reads_f32, self.sigmoid, self.scale, expert_scale, *self.groups)
        route = abi.Route(point(scores.c), point(a.c), point(chosen.c), routes, *how)
        widen = abi.Experts(a=point(chosen.c), out=point(hidden.c), routes=routes, act=abi.ACTIVATIONS[self.act])
        widening = [(up, bias[1])] if self.act == "relu_squared" else [(gate, bias[0]), (up, bias[1])]
        for index, (matrix, of_matrix) in enumerate(widening):
            widen.weight[index], widen.bias[index] = point(matrix.c), of_matrix
        narrow_bias = bias[2]
        narrow = abi.Experts(a=point(hidden.c), out=point(y.c), routes=routes, make_formats=down.activation_format)
        narrow.weight[0], narrow.bias[0] = point(down.c), narrow_bias
        combine = abi.Combine(y=point(y.c), out=point(out.c), routes=routes, scale=scale)
        if rest is not None:
            combine.residual = point(rest.c)
        run([instruction(op) for op in (score, route, widen, narrow, combine)], n_rows, threads)
        self.chosen = torch.from_numpy(ints[0]).view(n_rows, self.top_k).clone()
        self.weights = torch.from_numpy(weights).view(n_rows, self.top_k).clone()
        return out.data

    def by_hand(self, x: Tensor) -> Tensor:
        """Each expert on the rows that choose it, one product of the library after the other."""
        (scores,) = linear(x, [self.router], self.bias[:1])
        of_each = [bias.view(self.n_experts, -1) for bias in self.bias[1:]]
        shares = scores.double().sigmoid() if self.sigmoid else torch.softmax(scores.double(), -1)
        ranks = [share if self.choice_bias is None else share + self.choice_bias for share in shares]
        order = [self.of_the_best_groups(rank).argsort(descending=True, stable=True) for rank in ranks]
        best = torch.stack(order)[:, : self.top_k]
        total = shares.gather(1, best).sum(1) if self.normalize else torch.ones(len(x), dtype=torch.double)
        out = torch.zeros(len(x), HIDDEN, dtype=torch.double)
        for e in best.unique().tolist():
            its_rows = (best == e).any(1)
            gate, up, down = (matrices[e] for matrices in self.each)
            gate_bias, up_bias, down_bias = (bias[e] for bias in of_each)
            widening = ([up], [up_bias]) if self.act == "relu_squared" else ([gate, up], [gate_bias, up_bias])
            (hidden,) = linear(x[its_rows], *widening, act=self.act)
            (narrowed,) = linear(hidden, [down], [down_bias])
            counts = self.scale * (1.0 if self.expert_scale is None else float(self.expert_scale[e]))
            out[its_rows] += (counts * shares[its_rows, e] / total[its_rows]).unsqueeze(1) * narrowed.double()
        return out.float()

    def of_the_best_groups(self, rank: Tensor) -> Tensor:
        """Ranks [n_experts] with those of all other groups at the very end."""
        n_groups, n_used, by = self.groups
        grouped = rank.unflatten(0, (n_groups, -1))
        worth = grouped.sort(descending=True).values[:, :by].sum(-1)
        others = worth.argsort(descending=True, stable=True)[n_used:]
        kept: Tensor = grouped.index_fill(0, others, -torch.inf).flatten()
        return kept


def rows(n: int, seed: int = 7) -> Tensor:
    return torch.randn(n, HIDDEN, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(
    "qtypes", [("F32", "F32", "F32"), ("Q4_K", "Q4_K", "Q6_K"), ("Q8_0", "Q4_0", "Q8_0"), ("BF16", "F16", "Q4_1")]
)
def test_a_row_goes_through_its_experts(isa: str, qtypes: tuple[str, str, str]) -> None:
    mixture = NativeMixture(qtypes)
    for n in (1, 40):
        expected = mixture.by_hand(rows(n))
        assert bool(((mixture.run(rows(n)) - expected).norm(dim=-1) <= 1e-5 * expected.norm(dim=-1)).all())


@pairwise(sigmoid=(True, False), normalize=(True, False))
def test_a_bias_has_a_say_in_the_choice_and_none_in_the_weights(isa: str, sigmoid: bool, normalize: bool) -> None:
    bias = torch.tensor([0.5, -0.5, 0.0, 0.3, -0.2])
    mixture = NativeMixture(("F32", "F32", "F32"), 2, normalize, sigmoid, bias, scale=2.5)
    expected = mixture.by_hand(rows(40))
    assert bool(((mixture.run(rows(40)) - expected).norm(dim=-1) <= 1e-5 * expected.norm(dim=-1)).all())
    biased = mixture.chosen
    mixture.choice_bias = None
    mixture.run(rows(40))
    assert not torch.equal(mixture.chosen, biased)


@pairwise(groups=((4, 2, 2), (4, 2, 1), (2, 1, 2), (6, 2, 1)), sigmoid=(True, False))
def test_experts_are_chosen_from_the_best_groups(isa: str, groups: tuple[int, int, int], sigmoid: bool) -> None:
    x = 0.05 * rows(40)  # scores are well apart
    mixture = NativeMixture(("F32",) * 3, 3, sigmoid=sigmoid, n_experts=12)
    for bias in (torch.linspace(-0.1, 0.1, 12).roll(5), None):
        mixture.choice_bias, mixture.groups = bias, groups
        expected = mixture.by_hand(x)
        assert bool(((mixture.run(x) - expected).norm(dim=-1) <= 1e-5 * expected.norm(dim=-1)).all())
        grouped = mixture.chosen.clone()
        assert all(len({e * groups[0] // 12 for e in of_row}) <= groups[1] for of_row in grouped.tolist())
        mixture.groups = (1, 1, 1)
        mixture.run(x)
        assert not torch.equal(mixture.chosen, grouped)


def test_equal_groups_are_chosen_by_lower_number(isa: str) -> None:
    mixture = NativeMixture(("F32",) * 3, 2, groups=(4, 2, 2), n_experts=8)
    mixture.run(torch.zeros(3, HIDDEN))
    assert mixture.chosen.tolist() == [[0, 1]] * 3


def test_what_an_expert_gives_is_scaled(isa: str) -> None:
    scales = torch.tensor([0.5, -1.0, 2.0, 3.0, 0.1])
    mixture = NativeMixture(("F32", "F32", "F32"), 3, scale=1.5, expert_scale=scales)
    expected = mixture.by_hand(rows(40))
    assert bool(((mixture.run(rows(40)) - expected).norm(dim=-1) <= 1e-5 * expected.norm(dim=-1)).all())


@pytest.mark.parametrize("qtypes", [GPT_OSS, ("Q8_0", "Q8_0", "Q8_0"), ("BF16", "BF16", "BF16")])
def test_experts_have_biases_and_a_clamped_activation(isa: str, qtypes: tuple[str, str, str]) -> None:
    mixture = NativeMixture(qtypes, top_k=4, act="clamped_silu_mul", biases=True)
    for n in (1, 40):
        expected = mixture.by_hand(rows(n))
        assert bool(((mixture.run(rows(n)) - expected).norm(dim=-1) <= 1e-5 * expected.norm(dim=-1)).all())


@pytest.mark.parametrize("qtypes", [("Q4_K", "Q4_K", "Q6_K"), ("F32", "F32", "F32")])
def test_experts_without_gates(isa: str, qtypes: tuple[str, str, str]) -> None:
    mixture = NativeMixture(qtypes, top_k=3, act="relu_squared", biases=True)
    for n in (1, 40):
        expected = mixture.by_hand(rows(n))
        assert bool(((mixture.run(rows(n)) - expected).norm(dim=-1) <= 1e-5 * expected.norm(dim=-1)).all())


@pytest.mark.parametrize("qtypes", [("Q4_K", "Q4_K", "Q6_K"), ("F16", "F16", "F16"), GPT_OSS])
def test_a_row_alone_is_the_row_among_others(isa: str, qtypes: tuple[str, str, str]) -> None:
    act = "clamped_silu_mul" if qtypes == GPT_OSS else "silu_mul"
    mixture, x = NativeMixture(qtypes, top_k=3, act=act, biases=qtypes == GPT_OSS), rows(80)
    together = mixture.run(x)
    for n, threads in ((1, 1), (2, 1), (17, 3), (64, 2)):
        for first in range(0, len(x) - n + 1, max(n, 13)):
            assert torch.equal(mixture.run(x[first : first + n], threads=threads), together[first : first + n])


def test_everybody_at_one_expert(isa: str) -> None:
    mixture = NativeMixture(("Q8_0", "Q8_0", "Q8_0"), top_k=1)
    x = rows(1).expand(140, HIDDEN).contiguous()
    out = mixture.run(x)
    assert len(mixture.chosen.unique()) == 1
    assert torch.equal(mixture.weights, torch.ones(140, 1))
    assert torch.equal(out, mixture.run(x[:1]).expand(140, HIDDEN))


def test_weights_residual_and_scale(isa: str) -> None:
    mixture, x, residual = NativeMixture(("F32", "F32", "F32"), top_k=N_EXPERTS, normalize=False), rows(6), rows(6, 8)
    plain = mixture.run(x)
    assert torch.equal(mixture.chosen.sort(-1).values, torch.arange(N_EXPERTS).expand(6, -1).int())
    torch.testing.assert_close(mixture.weights.sum(-1), torch.ones(6))
    assert bool((mixture.weights.diff(dim=-1) <= 0).all())
    torch.testing.assert_close(mixture.run(x, residual, scale=0.5), residual + 0.5 * plain)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_broken_row_breaks_no_other(isa: str, bad: float) -> None:
    mixture, x = NativeMixture(("Q4_K", "Q4_K", "Q6_K")), rows(40)
    whole = mixture.run(x)
    x[11, 3] = bad
    found = mixture.run(x)
    assert bool(found[11].isnan().any())
    keep = [row for row in range(40) if row != 11]
    assert torch.equal(found[keep], whole[keep])
