"""The depth of drafts, in worlds where steps cost what a formula says and drafts are right as often as wanted."""

import random
from collections.abc import Callable
from itertools import pairwise, takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from localrun_testing.small_model import greedy

from localrun.engine.figures import GenerationFigures
from localrun.engine.generation import GenerationState
from localrun.engine.speculation.depth import (
    FIRST_LOSS,
    GLANCES,
    GUESS_SHARE,
    LEAST_GAIN,
    SAFE,
    SHARE,
    TRY,
    Depths,
)
from localrun.engine.speculation.draft_cost import DraftCost
from localrun.engine.speculation.drafter import DraftedTokens
from localrun.engine.speculation.learnt_cost import MOST_WEIGHT, LearntCost
from localrun.engine.speculation.record import Record
from localrun.engine.speculation.rest import MOST, Rest
from localrun.engine.step_plan import StepPlan, StepWork

EVIDENCE = 8
Seconds = Callable[[int], float]


def begun(n: int = 400) -> GenerationState:
    """An answer of n tokens, of which the first is chosen."""
    sequence = GenerationState(greedy([1, 2, 3], n))
    sequence.n_computed = 3
    sequence.append(4, 0.0)
    return sequence


class World:
    """One answer of `n` tokens; a step of so many rows takes `seconds`, a token is right with probability `right`."""

    def __init__(self, seconds: Seconds, right: float, n: int = 400, seed: int = 0) -> None:
        self.depths, self.dice = Depths(), random.Random(seed)
        self.sequence = begun(n)
        self.time, self.chosen = 0.0, list[int]()
        while self.sequence.n_generated < n:
            self.step(seconds, right)

    def step(self, seconds: Seconds, right: float) -> None:
        sequence = self.sequence
        draft = DraftedTokens((5,) * self.depths.most(sequence), EVIDENCE)
        (depth,) = self.depths.choose([StepWork(sequence, 1)], [draft], 63)
        work = StepWork(sequence, 1, draft.tokens[:depth])
        self.chosen.append(depth)
        self.time += seconds(1 + depth)
        self.depths.observe(StepPlan((work,)), seconds(1 + depth))
        accepted = 0
        while accepted < depth and self.dice.random() < right:
            accepted += 1
        if depth:
            self.depths.settle(work, accepted)
        for _ in range(1 + accepted):
            sequence.append(5, 0.0)
        sequence.n_computed = sequence.n_tokens - 1


def test_drafts_that_are_right_make_it_as_fast_as_the_best_depth() -> None:
    found = World(lambda rows: 1 + 0.1 * (rows - 1), right=0.9, n=2000)
    best = min((1 + 0.1 * d) / sum(0.9**k for k in range(d + 1)) for d in range(16))
    assert found.time < 1.15 * best * 2000


def test_what_stood_in_the_answer_itself_has_to_be_likelier_until_drafts_have_gained() -> None:
    """Prose repeats itself by a few words; what quotes has its text before the answer."""
    depths, sequence = Depths(), begun()
    depths.observe(StepPlan((StepWork(sequence, 1),)), 1.0)
    for rows in range(1, 17):
        depths.cost.observe(rows, 1 + 0.1 * (rows - 1))
    record = depths.records[sequence.number]

    def depth(distance: int, purse: float) -> int:
        record.purse = purse
        return depths.choose([StepWork(sequence, 1)], [DraftedTokens((5,), 3, distance=distance)], 63)[0]

    assert sequence.n_generated == 1
    assert [depth(distance, SAFE - 1) for distance in (1, 2)] == [0, 1]
    assert [depth(distance, SAFE) for distance in (1, 2)] == [1, 1]


@given(st.floats(0.01, 1.0), st.integers(1, 200), st.integers(1, 7), st.booleans())
def test_as_many_tokens_are_verified_as_give_the_most_a_second(
    row: float, evidence: int, computed: int, takes_back: bool
) -> None:
    """Where a state takes back a step, all that it computed before the first wrong token comes again."""
    depths, sequence, costs = Depths(), begun(), [1 + row * n for n in range(40)]
    depths.observe(StepPlan((StepWork(sequence, 1),)), 1.0)
    for rows in range(1, 41):
        depths.cost.observe(rows, costs[rows - 1])
    depths.records[sequence.number].purse, depths.takes_back = 99.0, takes_back
    draft = DraftedTokens((5,) * 15, evidence)
    right = depths.records[sequence.number].likelihood(draft)

    def speed(depth: int) -> float:
        again = sum(right**n * (1 - right) * (costs[computed + n] - costs[0]) for n in range(depth))
        tokens = sum(right**n for n in range(depth + 1))
        return tokens / (costs[computed + depth - 1] + (again if takes_back else 0.0))

    (depth,) = depths.choose([StepWork(sequence, computed)], [draft], 63)
    best = max(map(speed, range(16)))
    assert speed(depth) >= 0.97 * best or (depth == 0 and best <= 1.03 * LEAST_GAIN * speed(0))


@pytest.mark.parametrize("is_guess", [False, True])
def test_until_drafts_have_gained_rows_of_lookups_have_to_pay_by_half_more(is_guess: bool) -> None:
    depths, sequence = Depths(), begun()
    for rows in range(1, 17):
        depths.observe(StepPlan((StepWork(sequence, 1, (5,) * (rows - 1)),)), 1 + 0.3 * (rows - 1))
    record, draft = depths.records[sequence.number], DraftedTokens((5,) * 15, 16, of_model=is_guess)  # two of three

    def depth() -> int:
        return depths.choose([StepWork(sequence, 1)], [draft], 63)[0]

    record.purse = 9.0
    deep, record.purse = depth(), SAFE / 2
    assert deep > 1
    assert depth() == deep if is_guess else 0 < depth() < deep


def test_rows_that_cost_a_step_each_are_not_tried_again_and_again() -> None:
    found = World(lambda rows: float(rows), right=0.9)
    assert sum(depth > 0 for depth in found.chosen) <= 3


def test_one_that_begins_beside_a_draft_changes_nothing_for_it() -> None:
    """Its prompt was all cached: the first step of its answer is one of decoding."""
    world = World(lambda rows: 1.0, right=1.0, n=60)
    begins, sequence = GenerationState(greedy([1, 2, 3])), world.sequence
    begins.n_computed = 2
    work = StepWork(sequence, 1, (5, 5))
    world.depths.choose(
        [StepWork(begins, 1), StepWork(sequence, 1)], [DraftedTokens(), DraftedTokens((5, 5), EVIDENCE)], 60
    )
    world.depths.observe(StepPlan((StepWork(begins, 1), work)), 1.0)
    world.depths.settle(work, 2)
    assert world.depths.records[sequence.number].purse > 0


def test_drafts_after_an_edit_are_likely_less_often_right_and_are_counted_by_themselves() -> None:
    world = World(lambda rows: 1.0, right=1.0, n=60)
    record = world.depths.records[world.sequence.number]
    match, edit = DraftedTokens((5,), EVIDENCE), DraftedTokens((5,), EVIDENCE, after_edit=True)
    known, resumed, likely = record.likelihood(match), edit._replace(resumed=True), record.likelihood(edit)
    assert likely < Record(0.0).likelihood(match)
    world.depths.choose([StepWork(world.sequence, 1)], [edit], 63)
    record.learn(1, 0)
    assert record.likelihood(edit) < likely
    assert record.likelihood(resumed) == likely
    assert record.likelihood(match) == known


def test_places_that_part_speak_less_for_what_follows_and_are_counted_by_themselves() -> None:
    world = World(lambda rows: 1.0, right=1.0, n=60)
    record = world.depths.records[world.sequence.number]
    one, fork = DraftedTokens((5,), EVIDENCE), DraftedTokens((5,), EVIDENCE, is_fork=True)
    known, likely = record.likelihood(one), Record(0.0).likelihood(fork)
    assert likely < Record(0.0).likelihood(one)
    record.verify(fork)
    record.learn(1, 0)
    assert record.likelihood(fork) < likely
    assert record.likelihood(one) == known


def test_tokens_that_places_agree_on_are_counted_by_themselves() -> None:
    """Drafts whose first two tokens are always right, and the next one never."""
    world = World(lambda rows: 1.0, right=0.5, n=60)
    record, draft = world.depths.records[world.sequence.number], DraftedTokens((5,) * 6, EVIDENCE, agreed=2)
    for _ in range(20):
        assert len(record.verify(draft)) == 6
        record.learn(6, 2)
    likely = record.verify(draft)
    assert min(likely[:2]) > 0.9
    assert max(likely[2:]) < 0.2
    assert record.verify(draft._replace(tokens=(5,))) == likely[:1]


def test_what_a_draft_gained_is_what_its_steps_would_have_taken_less_its_rows() -> None:
    depths, sequence = Depths(), begun()
    depths.observe(StepPlan((StepWork(sequence, 1),)), 1.0)
    depths.choose([StepWork(sequence, 1)], [DraftedTokens((5,) * 4, EVIDENCE)], 63)
    work = StepWork(sequence, 1, (5,) * 4)
    depths.observe(StepPlan((work,)), 1.25)
    assert depths.settle(work, 3) == pytest.approx(3 * 1.0 - 0.25)
    assert depths.settle(work, 0) == pytest.approx(-0.25)


def test_what_interrupts_a_step_is_no_loss_of_its_drafts() -> None:
    """They lose what such steps usually take more than others."""
    depths, sequence = Depths(), begun()
    depths.observe(StepPlan((StepWork(sequence, 1),)), 1.0)
    depths.choose([StepWork(sequence, 1)], [DraftedTokens((5,) * 4, EVIDENCE)], 63)
    work = StepWork(sequence, 1, (5,) * 4)
    for _ in range(9):
        depths.observe(StepPlan((work,)), 1.25)
    depths.observe(StepPlan((work,)), 9.25)
    assert -0.25 - 0.25 * 8 - 1e-9 <= depths.settle(work, 0) < 0


def test_the_gain_of_an_answer_is_by_the_time_that_it_took() -> None:
    figures = GenerationFigures(n_drafted=9, saved_seconds=1.0, token_times=[5.0, 5.0, 7.0])
    assert figures.draft_gain == pytest.approx(1.5)
    assert GenerationFigures(n_drafted=9, saved_seconds=-3.0, token_times=[5.0, 7.0]).draft_gain == 0.0
    assert GenerationFigures(token_times=[5.0, 7.0]).draft_gain is None
    assert GenerationFigures(n_drafted=9, token_times=[5.0, 5.0]).draft_gain is None


@given(st.lists(st.integers(0, 6), max_size=12))
def test_right_drafts_after_a_stop_string_are_no_part_of_the_answer(rights: list[int]) -> None:
    """The other tokens after the first one are those of a step each, the last step included."""
    figures, step_of = GenerationFigures(), [0]  # by token: the first one is the prompt's
    for step, right in enumerate(rights, 1):
        if right:
            figures.right_drafts.append((len(step_of), right))
        step_of += [step] * (1 + right)
    for n in range(1, len(step_of) + 1):
        assert n - 1 - figures.accepted_in(n) == len(set(step_of[1:n]))


def test_without_a_measured_step_nothing_is_drafted() -> None:
    assert World(lambda rows: 1.0, right=1.0).chosen[0] == 0


@given(st.floats(0.01, 1.0), st.floats(0.0, 0.4), st.integers(0, 99))
def test_wrong_drafts_lose_no_more_than_is_allowed(row: float, right: float, seed: int) -> None:
    """Half a percent and what the start of an answer may lose, plus one try that cost more than was thought."""
    found = World(lambda rows: 1 + row * (rows - 1), right, n=150, seed=seed)
    dearest = max(row * depth for depth in found.chosen)
    assert found.time <= found.sequence.n_generated * (1 + SHARE) + FIRST_LOSS + dearest


@given(st.dictionaries(st.integers(1, 16), st.tuples(st.floats(0.5, 4.0), st.integers(1, 5)), min_size=1, max_size=6))
def test_more_rows_never_take_less(measured: dict[int, tuple[float, int]]) -> None:
    cost = LearntCost(0.06)
    for rows, (seconds, times) in measured.items():
        for _ in range(times):
            cost.observe(rows, seconds)
    ordered = sorted(measured)

    def mean(first: int, last: int) -> float:
        some = [(measured[rows][0], min(measured[rows][1], MOST_WEIGHT)) for rows in ordered[first : last + 1]]
        return sum(seconds * weight for seconds, weight in some) / sum(weight for _, weight in some)

    for n, rows in enumerate(ordered):  # the closest that rises: by its min-max formula
        lowest = [min(mean(first, last) for last in range(n, len(ordered))) for first in range(n + 1)]
        assert cost.of(rows) == pytest.approx(max(lowest))
    found = [cost.of(rows) for rows in range(1, 20)]
    assert all(after >= before - 1e-9 for before, after in pairwise(found))


@given(st.permutations(range(1, 9)), st.floats(0.01, 1.0), st.floats(0.01, 1.0))
def test_passes_are_known_in_whatever_order_drafts_of_them_came(depths: list[int], first: float, more: float) -> None:
    cost = DraftCost()
    for depth in depths:
        cost.observe(depth, first + more * (depth - 1))
    assert [cost.of(depth, 1.0) for depth in range(1, 9)] == pytest.approx([first + more * n for n in range(8)])


def test_a_deep_draft_is_never_taken_to_cost_what_a_short_one_did() -> None:
    cost = DraftCost()
    assert cost.of(3, 10.0) == pytest.approx(3 * cost.of(1, 10.0))
    cost.observe(4, 0.8)
    cost.observe(2, 0.4)
    assert [cost.of(depth, 10.0) for depth in (1, 2, 4, 10)] == pytest.approx([0.2, 0.4, 0.8, 2.0])


@given(st.floats(0.02, 0.5), st.sampled_from([0.3, 0.5, 0.7, 0.9]), st.integers(1, 7))
def test_rows_that_a_state_takes_back_count_in_the_depth(row: float, right: float, computed: int) -> None:
    """By all that may become of a draft: the tokens before the first wrong one come again, after those of the step."""
    depths, costs = Depths(), [1 + row * n for n in range(40)]
    for rows in range(1, 40):
        depths.cost.observe(rows, costs[rows - 1])
    depths.guessing.observe(1, 1e-9)
    depths.takes_back = True

    def speed(depth: int) -> float:
        ends = [right**n * (1 - right) for n in range(depth)]
        tokens = sum((1 + n) * chance for n, chance in enumerate(ends)) + (1 + depth) * right**depth
        again = sum(chance * (costs[computed + n] - costs[0]) for n, chance in enumerate(ends))
        return tokens / (costs[computed + depth - 1] + again)

    depth, gain = depths.best_guess([(right, computed)], 1, computed, 15)
    best = max(range(16), key=speed)
    assert speed(depth) >= 0.97 * speed(best) or speed(best) < 1.05 * speed(0)
    assert gain == pytest.approx(speed(depth) / speed(0), rel=0.05)


def test_the_first_measurements_are_averaged_and_later_ones_forgotten_bit_by_bit() -> None:
    cost = LearntCost(0.06)
    for seconds in (4.0, 2.0, 3.0):
        cost.observe(1, seconds)
    assert cost.of(1) == pytest.approx(3.0)
    for _ in range(40):
        cost.observe(1, 7.0)
    assert cost.of(1) == pytest.approx(7.0, rel=1e-3)


def test_a_measurement_lasts_the_longer_the_oftener_it_was_made() -> None:
    """A single one may have come at a bad time."""
    for times, lasts in ((1, 32), (2, 64), (9, 288), (20, 512)):
        cost = LearntCost(0.06)
        for _ in range(times):
            cost.observe(2, 50.0)
        cost.observe(1, 1.0)
        cost.pass_by(lasts - 2)
        assert cost.of(2) == 50.0
        cost.pass_by(65)
        assert cost.of(2) == pytest.approx(1.06)
        cost.pass_by(10_000)
        assert cost.of(1) == 1.0


def test_a_step_that_is_interrupted_hardly_changes_what_is_known() -> None:
    cost = LearntCost(0.06)
    for seconds in (1.2, 1.2, 1.2, 1.2, 60.0):
        cost.observe(2, seconds)
    assert cost.of(2) == pytest.approx(1.5)
    for _ in range(30):
        cost.observe(2, 60.0)  # it does take so long
    assert cost.of(2) == pytest.approx(60.0, rel=0.05)


def test_between_two_measurements_is_a_line() -> None:
    cost = LearntCost(0.06)
    for rows, seconds in ((1, 1.0), (5, 3.0)):
        cost.observe(rows, seconds)
    assert [cost.of(rows) for rows in (1, 2, 3, 5)] == pytest.approx([1.0, 1.5, 2.0, 3.0])
    assert cost.of(9) > 3.0


class GuessingWorld(World):
    """The same with guesses of a program: each pass of it takes `PASS` of a step."""

    def step(self, seconds: Seconds, right: float) -> None:
        sequence, depths = self.sequence, self.depths
        work = StepWork(sequence, 1)
        depth = min(depths.most(sequence), depths.wish([sequence], [work], 63) if depths.most(sequence) else 0)
        if depth:
            self.time += PASS * depth
            depths.guessed(depth, PASS * depth)
        draft = DraftedTokens.likely((5,) * depth, 0.6)
        (depth,) = depths.choose([work], [draft], 63)
        work = StepWork(sequence, 1, draft.tokens[:depth])
        self.chosen.append(depth)
        self.time += seconds(1 + depth)
        depths.observe(StepPlan((work,)), seconds(1 + depth))
        accepted = 0
        while accepted < depth and self.dice.random() < right:
            accepted += 1
        if depth:
            depths.settle(work, accepted)
        for _ in range(1 + accepted):
            sequence.append(5, 0.0)
        sequence.n_computed = sequence.n_tokens - 1


PASS = 0.08


def rests(depths: Depths, answers: list[GenerationState], glance: float, n: int) -> int:
    """Let n steps of some answers pass without drafts, glances taking so long for each -> how many there were."""
    rest, n_glances = Rest(), 0
    while n > 0:
        rest.begin(answers, [None] * len(answers), depths.glances(answers))
        rest.steps = [1.0] * min(n, MOST)
        rest.n_glances = sum(step % rest.every == 0 for step in range(len(rest.steps)))
        rest.glancing = rest.n_glances * glance * len(answers)
        depths.rested(rest)
        n, n_glances = n - len(rest.steps), n_glances + rest.n_glances
    return n_glances


@given(st.floats(0.0001, 0.1), st.integers(1, 4))
def test_glances_take_no_more_than_their_share(glance: float, n: int) -> None:
    """Of steps in which nothing is found, once it is known what one takes; but for the first one of a rest."""
    depths, answers = Depths(), [begun() for _ in range(n)]
    depths.observe(StepPlan(tuple(StepWork(one, 1) for one in answers)), 1.0)
    rests(depths, answers, glance, 40 * MOST)
    n_glances = rests(depths, answers, glance, 10 * MOST)
    share = min(1.0, GLANCES / (n * glance))
    assert 5 * share * MOST <= n_glances <= 10 * (share * MOST + 1)


def test_a_glance_that_is_interrupted_does_not_end_them() -> None:
    depths, answers = Depths(), [begun()]
    depths.observe(StepPlan((StepWork(answers[0], 1),)), 1.0)
    rests(depths, answers, GLANCES / 2, 1000)
    assert depths.glances(answers) == 1
    rests(depths, answers, 50.0, 1)
    assert depths.glances(answers) <= 2
    rests(depths, answers, 50.0, 4000)  # they do take so long
    assert depths.glances(answers) > MOST


def test_what_may_lose_nothing_is_not_glanced_for() -> None:
    depths, answers = Depths(), [begun()]
    assert depths.glances(answers) == 0
    depths.observe(StepPlan((StepWork(answers[0], 1),)), 1.0)
    depths.records[answers[0].number].purse = -0.1
    assert depths.glances(answers) == MOST
    rests(depths, answers, 0.0, MOST * 4)
    assert depths.glances(answers) == 1


def test_steps_of_rest_cost_what_most_of_them_took() -> None:
    depths, answers, rest = Depths(), [begun()], Rest()
    rest.begin(answers, [None], every=1)
    rest.steps = [1.0, 1.0, 90.0, 1.1, 80.0]
    depths.rested(rest)
    assert depths.cost.of(1) == 1.1


def test_without_a_measured_step_nothing_is_guessed() -> None:
    depths, sequence = Depths(), GenerationState(greedy([1, 2, 3]))
    assert depths.wish([sequence], [StepWork(sequence, 1)], 63) == 0


def test_guesses_are_made_as_deep_as_their_passes_are_worth() -> None:
    found = GuessingWorld(lambda rows: 1 + 0.05 * (rows - 1), right=0.8, n=2000)
    best = min((1 + (0.05 + PASS) * d) / sum(0.8**k for k in range(d + 1)) for d in range(16))
    assert found.time < 1.2 * best * 2000


def test_guesses_that_lost_all_they_may_rest_until_they_can_be_tried_again() -> None:
    """In all answers together; what they take is thought to be half after a long time."""
    depths, sequence = Depths(), begun()
    work = StepWork(sequence, 1)
    depths.observe(StepPlan((work,)), 1.0)
    assert depths.wish([sequence], [work], 63) > 0
    depths.guessed(1, 3.0)
    assert depths.guesses_rest
    assert depths.wish([sequence], [work], 63) == 0
    other, n_rested = begun(), 0
    depths.observe(StepPlan((StepWork(other, 1),)), 1.0)
    while depths.guesses_rest:
        assert depths.wish([other], [StepWork(other, 1)], 63) == 0
        rests(depths, [other], 0.0, 8)
        n_rested += 8
    assert n_rested == pytest.approx((3.0 - TRY + TRY) / GUESS_SHARE, abs=10)
    assert depths.guessing.of(1, 1.0) == pytest.approx(1.5)


def steps_of_rest(depths: Depths, answer: GenerationState) -> int:
    """Steps until guesses are tried again, once they have lost all they may."""
    depths.lose(depths.guess_purse + 0.001)
    assert depths.guesses_rest
    n = 0
    while depths.guesses_rest:
        rests(depths, [answer], 0.0, 1)
        n += 1
    return n


def test_guesses_are_tried_more_and_more_seldom_until_some_gain() -> None:
    depths, answer = Depths(), begun()
    depths.observe(StepPlan((StepWork(answer, 1),)), 1.0)
    rests = [steps_of_rest(depths, answer) for _ in range(6)]
    assert rests == [pytest.approx(TRY / GUESS_SHARE * times, rel=0.01) for times in (1, 2, 4, 8, 8, 8)]
    guess = DraftedTokens.likely((5,) * 9, 0.9)
    depths.choose([StepWork(answer, 1)], [guess], 63)
    work = StepWork(answer, 1, guess.tokens)
    depths.observe(StepPlan((work,)), 1.0)
    depths.settle(work, 9)
    assert steps_of_rest(depths, answer) == pytest.approx(TRY / GUESS_SHARE, rel=0.01)


def wrong_guesses(depths: Depths, answer: GenerationState, n: int, row: float) -> StepWork:
    """n guesses of one token that are wrong -> the next step, in which each takes a quarter of one, and its row."""
    guess = DraftedTokens.likely((5,), 0.5)
    for _ in range(n):
        depths.guessed(1, 0.25)
        depths.choose([StepWork(answer, 1)], [guess], 63)
        work = StepWork(answer, 1, guess.tokens)
        depths.observe(StepPlan((work,)), 1.0 + row)
        depths.settle(work, 0)
    return StepWork(answer, 1)


def test_a_few_wrong_guesses_say_little_after_many_right_ones() -> None:
    depths, answer = Depths(), begun()
    depths.observe(StepPlan((StepWork(answer, 1),)), 1.0)
    depths.usual.learn(40, 28)
    assert depths.wish([answer], [wrong_guesses(depths, answer, 3, row=0.0)], 63) > 0


def test_after_bad_luck_guesses_are_tried_again_in_the_same_answer() -> None:
    """As long as there is time that they may lose."""
    depths, answer = Depths(), begun()
    depths.observe(StepPlan((StepWork(answer, 1),)), 1.0)
    depths.guess_purse = 8.0
    depths.usual.learn(200, 150)
    work, n = wrong_guesses(depths, answer, 12, row=0.25), 0
    while not depths.wish([answer], [work], 63):
        n += 1
        assert n < 100
    assert n > 5


def test_steps_of_rest_count_in_how_long_a_cost_is_known() -> None:
    depths, answer = Depths(), begun()
    depths.cost.observe(3, 50.0)
    depths.observe(StepPlan((StepWork(answer, 1),)), 1.0)
    rests(depths, [answer], 0.0, 200)
    assert depths.cost.of(3) < 2.0


def test_an_answer_that_soon_ends_is_not_read_for() -> None:
    depths = Depths()
    long, short = begun(100), begun(4)
    depths.observe(StepPlan((StepWork(long, 1), StepWork(short, 1))), 1.0)
    depths.guessing.read(100, 10.0)
    assert depths.worth_reading(long, 100)
    assert not depths.worth_reading(short, 100)


@given(st.floats(0.01, 0.3), st.integers(0, 99))
def test_guesses_that_are_never_right_lose_hardly_anything(row: float, seed: int) -> None:
    found = GuessingWorld(lambda rows: 1 + row * (rows - 1), 0.0, n=300, seed=seed)
    dearest = max((row + PASS) * depth for depth in found.chosen)
    assert found.time <= found.sequence.n_generated * (1 + GUESS_SHARE) + TRY + dearest


def test_short_answers_whose_first_steps_are_slow_do_not_keep_drafts_that_cost_time() -> None:
    """A first step takes three times as long: where drafts follow at once, none but these are measured without."""
    depths, dice, taken = Depths(), random.Random(0), 0.0
    for _ in range(200):
        sequence, is_first = begun(24), True
        while sequence.n_generated < 24:
            draft = DraftedTokens((5,) * min(depths.most(sequence), 23 - sequence.n_generated), EVIDENCE, of_model=True)
            (depth,) = depths.choose([StepWork(sequence, 1)], [draft], 63)
            work = StepWork(sequence, 1, draft.tokens[:depth])
            seconds = 3.0 if is_first else 1.0 + depth  # no draft gains anything: a row takes as long as a step
            depths.observe(StepPlan((work,)), seconds)
            n_right = sum(1 for _ in takewhile(lambda _: dice.random() < 0.9, work.drafts))
            if depth:
                depths.settle(work, n_right)
            for _ in range(1 + n_right):
                sequence.append(5, 0.0)
            sequence.n_computed, is_first, taken = sequence.n_tokens - 1, False, taken + seconds
        depths.forget(sequence)
    assert taken <= 1.01 * 200 * (3.0 + 22)


def test_a_step_without_drafts_is_taken_again_once_what_it_takes_is_forgotten() -> None:
    """While each step has drafts nothing tells what one without them takes, and it may have been a bad moment."""
    world = World(lambda rows: 1 + 0.01 * (rows - 1), right=1.0, n=10_000)
    assert 3 <= world.chosen.count(0) <= 0.1 * len(world.chosen)
