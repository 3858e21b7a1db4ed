"""The sampler chain on candidates against the textbook chain on the full row."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from localrun.backends.reference.logits import finish_logits
from localrun.base.request import Sampling
from localrun.engine.generation import GenerationRequest, GenerationState
from localrun.engine.next_tokens import NextRow, sample_next
from localrun.engine.philox import uniform
from localrun.engine.sampler import SamplerSettings, resolve_settings
from localrun.ops.interface import LogitAdjust
from localrun.ops.sampling import Draw, best_ids, choose, choose_of_row
from localrun.ops.token_counts import TokenCounts

CHAINS = [
    SamplerSettings(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0),
    SamplerSettings(temperature=0.7, top_k=40, top_p=1.0, min_p=0.0),
    SamplerSettings(temperature=1.3, top_k=0, top_p=0.9, min_p=0.0),
    SamplerSettings(temperature=0.9, top_k=0, top_p=1.0, min_p=0.05),
    SamplerSettings(temperature=0.8, top_k=40, top_p=0.95, min_p=0.05),
    SamplerSettings(temperature=2.0, top_k=300, top_p=0.99, min_p=0.0),
]


def draw_of(chain: SamplerSettings, u: float, row: int = 0) -> Draw:
    return Draw(row, chain.top_k, chain.temperature, chain.top_p, chain.min_p, u)


def textbook(logits: torch.Tensor, chain: SamplerSettings) -> torch.Tensor:
    """The distribution by the book: softmax at the temperature, then top-k, top-p and min-p on all of it -> [vocab]."""
    p = torch.softmax(logits.double() / chain.temperature, -1)
    if chain.top_k:
        p = torch.where(p >= p.topk(min(chain.top_k, len(p))).values[-1], p, 0.0)
        p = p / p.sum()
    order = p.argsort(descending=True)
    before = p[order].cumsum(0) - p[order]
    p[order[before >= chain.top_p]] = 0.0
    p[p < chain.min_p * p.max()] = 0.0
    return p / p.sum()


def chosen(logits: torch.Tensor, chain: SamplerSettings, draws: Sequence[float]) -> list[int]:
    """Our way: on 256 candidates, and on the full row only if those cannot tell."""
    row = finish_logits(logits.clone()[None], [LogitAdjust(temperature=chain.temperature)])
    few = row.top_ids[0], row.top_values[0], float(row.logsumexp[0]), False
    tokens = [choose(*few, draw_of(chain, u)) for u in draws]
    return [full_choice(logits, chain, u) if token is None else token for u, token in zip(draws, tokens, strict=True)]


def full_choice(logits: torch.Tensor, chain: SamplerSettings, u: float) -> int:
    values, ids = logits.sort(descending=True, stable=True)
    logsumexp = float(torch.logsumexp(logits / chain.temperature, -1))
    token = choose(ids.numpy(), values.numpy(), logsumexp, True, draw_of(chain, u))
    assert token is not None
    return token


@pytest.mark.parametrize("chain", CHAINS)
def test_draws_follow_the_textbook_distribution(chain: SamplerSettings) -> None:
    logits = torch.randn(600, generator=torch.Generator().manual_seed(3)) * 2.0
    expected = textbook(logits, chain)
    n = 4000
    counts = torch.bincount(torch.tensor(chosen(logits, chain, [uniform(11, i) for i in range(n)])), minlength=600)
    assert counts[expected == 0].sum() == 0
    likely = expected * n >= 5
    rare = ~likely & (expected > 0)
    observed = torch.cat((counts[likely].double(), counts[rare].sum().double()[None]))
    wanted = torch.cat((expected[likely] * n, (expected[rare].sum() * n)[None]))
    keep = wanted > 0
    chi_squared = float(((observed - wanted)[keep] ** 2 / wanted[keep]).sum())
    freedom = int(keep.sum()) - 1
    assert chi_squared < freedom + 4.0 * (2 * freedom) ** 0.5 + 8  # far beyond 99.9 %


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 10_000),
    st.floats(0.05, 3.0),
    st.sampled_from([0, 1, 3, 40, 255, 256, 257, 700]),
    st.sampled_from([0.05, 0.5, 0.9, 0.999, 1.0]),
    st.sampled_from([0.0, 0.001, 0.05, 1.0]),
    st.floats(0.0, 1.0, exclude_max=True),
)
def test_candidates_and_full_row_always_agree(
    seed: int, temperature: float, top_k: int, top_p: float, min_p: float, u: float
) -> None:
    spread = 0.1 + seed % 5
    logits = torch.randn(1000, generator=torch.Generator().manual_seed(seed)) * spread
    chain = SamplerSettings(temperature, top_k, top_p, min_p)
    assert chosen(logits, chain, [u]) == [full_choice(logits, chain, u)]


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 1000), st.sampled_from([0, 9000, 30_000]), st.sampled_from([0.3, 0.99, 1.0]), st.floats(0.0, 0.9999)
)
def test_a_flat_row_is_looked_through_as_far_as_needed(seed: int, top_k: int, top_p: float, u: float) -> None:
    logits = torch.randn(20_000, generator=torch.Generator().manual_seed(seed)) * (seed % 3)
    chain = SamplerSettings(1.0, top_k, top_p, min_p=0.0)
    logsumexp = float(torch.logsumexp(logits, -1))
    assert choose_of_row(logits.numpy(), logsumexp, draw_of(chain, u)) == full_choice(logits, chain, u)


@settings(max_examples=100, deadline=None)
@given(
    st.integers(0, 1000),
    st.sampled_from([0.0, 0.3, 1.0]),
    st.sampled_from([0, 3, 300]),
    st.sampled_from([0.3, 1.0]),
    st.sampled_from([1, 30, 2000, 5000]),
    st.floats(0.0, 0.9999),
)
def test_among_allowed_tokens_it_is_as_if_there_were_no_others(
    seed: int, temperature: float, top_k: int, top_p: float, n_allowed: int, u: float
) -> None:
    """Whether candidates decide, or none of them is allowed."""
    logits = torch.randn(5000, generator=torch.Generator().manual_seed(seed)) * (0.5 + seed % 4)
    allowed = torch.randperm(5000, generator=torch.Generator().manual_seed(seed)).numpy()[:n_allowed]
    mask = np.zeros(5024, np.uint8)
    mask[allowed] = 1
    chain = SamplerSettings(temperature, top_k, top_p, min_p=0.0)
    step = finish_logits(logits.clone()[None], [LogitAdjust(temperature=temperature)])
    token = step.choose_allowed(draw_of(chain, u), np.packbits(mask, bitorder="little"))
    kept = np.sort(allowed)
    few = logits[torch.from_numpy(kept)]
    assert token == kept[int(few.argmax()) if temperature == 0 else full_choice(few, chain, u)]
    assert step.copied([0, 0]).choose_allowed(draw_of(chain, u, row=1), np.packbits(mask, bitorder="little")) == token


@pytest.mark.parametrize("n", [1, 2, 50, 999, 1000])
def test_the_best_ids_of_a_row(n: int) -> None:
    """As many as asked for and what equals the last of them, in the order of a stable sort of the whole row."""
    row = np.random.default_rng(n).integers(-40, 40, 1000).astype(np.float32)
    row[:3], row[3:9], row[9] = -np.inf, -0.0, np.inf
    order = np.argsort(-row, kind="stable")
    found = best_ids(row, n)
    assert len(found) >= n
    assert found.tolist() == order[row[order] >= row[order[n - 1]]].tolist()


def test_a_whole_step_is_sampled_as_its_rows_alone() -> None:
    """Greedy, sampled and flat rows side by side, of which candidates cannot decide all."""
    logits = torch.randn(40, 5000, generator=torch.Generator().manual_seed(1)) * 2
    chains = [[SamplerSettings(temperature=0.0), *CHAINS][n % 7] for n in range(40)]
    step = finish_logits(logits.clone(), [LogitAdjust(temperature=chain.temperature) for chain in chains])
    requests = [GenerationRequest((1, 2, 3), 5, frozenset(), chain, seed=n) for n, chain in enumerate(chains)]
    wanted = [NextRow(row, GenerationState(request)) for row, request in enumerate(requests)][3:]
    found = sample_next(step, wanted)
    assert found == [sample_next(step, [one])[0] for one in wanted]
    for (row, sequence, _), token in zip(wanted, found, strict=True):
        chain = chains[row]
        greedy = chain.temperature == 0
        expected = logits[row].argmax() if greedy else full_choice(logits[row], chain, uniform(row, sequence.n_tokens))
        assert token == expected


def test_equal_logits_rank_by_id() -> None:
    row = finish_logits(torch.zeros(1, 5000), [])
    assert row.top_ids[0].tolist() == list(range(256))


def test_penalties_and_bias_by_the_book() -> None:
    logits = torch.tensor([[2.0, -2.0, 1.0, 0.5, 3.0]])
    change = LogitAdjust(
        seen=TokenCounts([0, 1]),
        counts=TokenCounts([0, 2, 2, 2]),
        repeat=2.0,
        presence=0.25,
        frequency=0.5,
        bias={3: 4.0, 4: -100.0},
    )
    rows = finish_logits(logits, [change]).rows[0]
    expected = [2.0 / 2 - 0.25 - 0.5, -2.0 * 2, 1.0 - 0.25 - 1.5, 4.5, -97.0]
    assert rows.tolist() == pytest.approx(expected)


def test_logits_that_are_not_finite_are_noticed_even_when_banned() -> None:
    logits = torch.tensor([[1.0, float("nan"), 0.0], [1.0, 2.0, 3.0]])
    row = finish_logits(logits, [LogitAdjust(bias={1: -100.0}), None])
    assert row.finite.tolist() == [False, True]


def test_wishes_then_the_models_own_settings_then_ours() -> None:
    settled = resolve_settings(Sampling(temperature=0.0), Sampling(temperature=0.6, top_k=20))
    assert settled == SamplerSettings(temperature=0.0, top_k=20)
    assert np.isclose(SamplerSettings().top_p, 0.95)
