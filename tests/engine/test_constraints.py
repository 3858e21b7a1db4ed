"""Answers held to a constraint, against a reference that tries every token of a tiny vocabulary at every step."""

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from localrun_testing.cache_engine import GEMMA, HYBRID, LLAMA, CacheCase
from localrun_testing.letters import END, LANGUAGES, LETTERS, TRIGGER, Language, answer, held, letter_constraints
from localrun_testing.small_model import finish, greedy, text
from localrun_testing.waiting import until

from localrun.backends.cpu.library import load_library
from localrun.backends.reference.logits import apply_adjust
from localrun.base.constraint import Constraint
from localrun.engine.constraints import Constraints
from localrun.engine.generation import GenerationRequest, GenerationState
from localrun.engine.handle import NewToken
from localrun.engine.philox import uniform
from localrun.engine.sampler import SamplerSettings
from localrun.engine.scheduler import Scheduler
from localrun.engine.scratch_runs import ScratchRuns
from localrun.engine.step_plan import StepPlan
from localrun.ops.interface import CancelFlag, LogitAdjust, Logits
from localrun.ops.sampling import Draw, choose
from localrun.ops.token_counts import TokenCounts

NATIVE = load_library() is not None
CASES = {
    "full": CacheCase(LLAMA, "q8"),
    "windows": CacheCase(GEMMA, "q8", window_blocks=8),
    "recurrent": CacheCase(HYBRID, "q8", window_blocks=24),
}
GREEDY = SamplerSettings(temperature=0.0)
HOT = SamplerSettings(temperature=1.5, top_k=0, top_p=0.9, min_p=0.01, repeat_penalty=1.3, presence_penalty=0.5)
FEW = SamplerSettings(temperature=0.8, top_k=3, frequency_penalty=0.4)


@pytest.fixture(scope="module")
def constraints() -> Iterator[Constraints]:
    made = letter_constraints()
    yield made
    made.close()


def expected(case: CacheCase, request: GenerationRequest, words: frozenset[str]) -> str:
    """The answer, token by token on an engine of its own: each chosen among those that some word goes on with."""
    engine, how = case.engine(NATIVE), request.settings
    try:
        ids, said, counts = list(request.prompt), "", TokenCounts()
        while True:
            with ScratchRuns(engine.runner, engine.store) as run:
                row = torch.from_numpy(run.feed(ids, 0, [len(ids) - 1]).row(0).copy())
            penalties = (how.repeat_penalty, how.presence_penalty, how.frequency_penalty)
            apply_adjust(row, LogitAdjust(TokenCounts(ids), counts, *penalties, request.logit_bias))
            for token, letter in enumerate(LETTERS):
                if not any(word.startswith(said + letter) for word in words):
                    row[token] = -torch.inf
            row[TRIGGER] = row[96] = -torch.inf
            if said not in words:
                row[END] = -torch.inf
            u = uniform(request.seed, len(ids))
            token = textbook(row, Draw(0, how.top_k, how.temperature, how.top_p, how.min_p, u))
            if token == END:
                return said
            ids.append(token)
            counts.add(token)
            said += LETTERS[token]
    finally:
        engine.close()


def textbook(row: torch.Tensor, draw: Draw) -> int:
    """The token of a draw from a whole row."""
    if not draw.temperature:
        return int(row.argmax())
    values, ids = row.sort(descending=True, stable=True)
    n = int(torch.isfinite(values).sum())
    logsumexp = float(torch.logsumexp(row / draw.temperature, -1))
    token = choose(ids[:n].numpy(), values[:n].numpy(), logsumexp, True, draw)
    assert token is not None
    return token


@pytest.mark.parametrize("name", CASES)
def test_an_answer_is_that_of_trying_every_token(constraints: Constraints, name: str) -> None:
    """Alone or beside others, computed or cached, with forced tokens skipped or with the logprobs of all."""
    case = CASES[name]
    asked: list[tuple[Language, GenerationRequest]] = []
    for seed, (language, settings) in enumerate(itertools.product(LANGUAGES.values(), (GREEDY, HOT, FEW))):
        bias = {LETTERS.index("P"): 2.0, 96: 50.0} if seed % 2 else {}
        request = replace(greedy(text(50 + 9 * seed, seed), 60), settings=settings, seed=seed, logit_bias=bias)
        asked.append((language, held(constraints, language.constraint, request)))
    engine = case.engine(NATIVE)
    try:
        beside = [engine.submit(greedy(text(30, seed), 40)) for seed in range(3)]
        together = [answer(handle) for handle in [engine.submit(request) for _, request in asked]]
        assert together == [expected(case, request, language.words) for language, request in asked]
        assert all(word in language.words for word, (language, _) in zip(together, asked, strict=True))
        for handle in beside:
            finish(handle)
        for (language, request), before in zip(asked, together, strict=True):
            assert answer(engine.submit(request)) == before, "cached"
            scored = held(constraints, language.constraint, replace(request, logprobs=1))
            assert answer(engine.submit(scored)) == before, "one token at a time"
    finally:
        engine.close()


LONG = "the very same words every time, over and over, "
ENDLESS = Constraint("lark", f'start: ("{LONG}" /[ab]/){{50}}')


def test_whoever_is_pushed_out_goes_on_as_it_would_have(
    constraints: Constraints, monkeypatch: pytest.MonkeyPatch
) -> None:
    pushed_out, preempt = [], Scheduler._preempt

    def counted(scheduler: Scheduler, sequence: GenerationState) -> None:
        pushed_out.append(sequence)
        preempt(scheduler, sequence)

    monkeypatch.setattr(Scheduler, "_preempt", counted)
    asked = [
        held(constraints, ENDLESS, replace(greedy(text(100, seed), 200), settings=HOT, seed=seed)) for seed in range(3)
    ]
    roomy, narrow = CASES["full"].engine(NATIVE), replace(CASES["full"], n_blocks=9).engine(NATIVE)
    try:
        answers = [answer(roomy.submit(request)) for request in asked]
        with narrow.lock:  # they come together: alone, each would have room
            handles = [narrow.submit(request) for request in asked]
        assert [answer(handle) for handle in handles] == answers
        assert pushed_out
        assert all(said.startswith(LONG) for said in answers)
    finally:
        roomy.close()
        narrow.close()


def test_forced_tokens_take_few_steps(constraints: Constraints, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = CASES["full"].engine(NATIVE)
    monkeypatch.setattr("localrun.engine.generations.FORCED_SECONDS", 60.0)  # as long as it takes
    steps: list[int] = []
    run = engine.runner.run

    def counted(plan: StepPlan, cancel: CancelFlag) -> Logits:
        steps.append(plan.n_rows)
        return run(plan, cancel)

    monkeypatch.setattr(engine.runner, "run", counted)
    try:
        said = answer(engine.submit(held(constraints, ENDLESS, greedy(text(9), 4 * (len(LONG) + 1)))))
        assert len(said) == 4 * (len(LONG) + 1)
        assert len(steps) <= 1 + 4 * 2, "the prompt, and two for each round: no more than 32 rows are computed at once"
    finally:
        engine.close()


class HeldUp(Executor):
    """Does nothing until it is let go."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], Future[Any]]] = []
        self.pool = ThreadPoolExecutor(1)
        self.is_free = False

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **more: Any) -> Future[Any]:
        if self.is_free:
            return self.pool.submit(work, *arguments)
        self.waiting.append(partial(self.pool.submit, work, *arguments))
        return Future()

    def let_go(self) -> None:
        self.is_free = True
        for start in self.waiting:
            start()


def test_a_late_mask_delays_its_own_row_only() -> None:
    late = letter_constraints()
    late._pool = pool = HeldUp()  # type: ignore[assignment]
    engine, request = CASES["full"].engine(NATIVE), greedy(text(40), 60)
    try:
        waits = engine.submit(held(late, LANGUAGES["schema"].constraint, request))
        others = [engine.submit(greedy(text(30, seed), 30)) for seed in range(3)]
        assert [finish(handle).stop_reason for handle in others] == ["length"] * 3
        assert not waits.is_over
        until(lambda: waits.sequence.number in engine.generations.late.kept)
        pool.let_go()
        assert answer(waits) == expected(CASES["full"], request, LANGUAGES["schema"].words)
        pool.is_free = False
        pool.waiting.clear()
        given_up = engine.submit(held(late, LANGUAGES["schema"].constraint, request))
        until(lambda: bool(pool.waiting) and given_up.sequence.n_uncomputed == 0)
        given_up.cancel()
        assert finish(given_up).stop_reason == "cancelled"
        assert not engine.generations.late.kept
    finally:
        pool.pool.shutdown()
        engine.close()


def test_logits_that_a_forced_token_went_past_choose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row waits for its mask, a token is forced instead, and the row after that ends the answer."""
    late, language = letter_constraints(), LANGUAGES["regex"]
    engine, request = CASES["full"].engine(NATIVE), replace(greedy(text(50), 60), logit_bias={END: 2.0})
    submit, kept = late._pool.submit, list[Callable[[], Any]]()
    monkeypatch.setattr(late._pool, "submit", lambda *work: kept.append(partial(submit, *work)))
    try:
        handle = engine.submit(held(late, language.constraint, request))
        number = handle.sequence.number
        while not handle.is_over:
            until(lambda: handle.is_over or bool(kept and number in engine.generations.late.kept))
            for start in [kept.pop(0) for _ in list(kept)]:
                start()
        assert answer(handle) == expected(CASES["full"], request, language.words)
    finally:
        engine.close()
        late.close()


def test_an_answer_is_free_up_to_its_trigger(constraints: Constraints) -> None:
    triggered = Constraint("lark", f"start: <[{TRIGGER}]> /(ab|b[cd]){{1,3}}x?/")
    engine = CASES["full"].engine(NATIVE)
    try:
        untold = replace(greedy(text(40), 30), stop_ids=frozenset({END}), logit_bias={TRIGGER: -1000.0})
        assert (
            finish(engine.submit(held(constraints, triggered, untold, TRIGGER))).token_ids
            == finish(engine.submit(untold)).token_ids
        )
        pushed = replace(greedy(text(40), 60), logit_bias={TRIGGER: 1000.0})
        called = finish(engine.submit(held(constraints, triggered, pushed, TRIGGER)))
        assert called.token_ids[40] == TRIGGER
        assert "".join(LETTERS[token] for token in called.token_ids[41:]) in LANGUAGES["regex"].words
    finally:
        engine.close()


def test_an_answer_that_is_cut_is_the_beginning_of_one(constraints: Constraints) -> None:
    engine = replace(CASES["full"], ctx=128).engine(NATIVE)
    language = LANGUAGES["schema"]
    try:
        for n in (1, 5, 12):
            cut = finish(engine.submit(held(constraints, language.constraint, greedy(text(40), n))))
            said = "".join(LETTERS[token] for token in cut.token_ids[40:])
            assert (len(said), cut.stop_reason) == (n, "length")
            assert any(word.startswith(said) for word in language.words)
        full = finish(engine.submit(held(constraints, ENDLESS, greedy(text(100), 500))))
        assert (full.n_tokens, full.stop_reason) == (128, "length")
    finally:
        engine.close()


def test_what_is_told_adds_up(constraints: Constraints) -> None:
    """Every token has an event of its own, forced ones too; with logprobs, so has the one that ends it."""
    engine = CASES["full"].engine(NATIVE)
    try:
        request = held(constraints, LANGUAGES["schema"].constraint, greedy(text(40), 60))
        events = list(engine.submit(request))
        tokens = [event.token_id for event in events if isinstance(event, NewToken)]
        sequence = finish(engine.submit(request))
        assert tokens == sequence.token_ids[40:]
        scored = held(constraints, LANGUAGES["schema"].constraint, replace(request, logprobs=0))
        told = [event for event in engine.submit(scored) if isinstance(event, NewToken)]
        assert [event.token_id for event in told] == [*tokens, END]
        assert all(event.logprob is not None for event in told)
    finally:
        engine.close()
