"""Steps that begin before the token of the one before is known: the same answers, with most tokens begun ahead."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from localrun_testing.sure_chat import NEAR_A_BLOCK_END

from localrun.backends.cuda.availability import EMULATE
from localrun.backends.gpu import step_tensors
from localrun.backends.gpu.ahead import StepsAhead, read_by
from localrun.backends.gpu.executor import GpuExecutor
from localrun.base.events import Done
from localrun.base.request import LoadOptions, Request, Sampling
from localrun.base.resources import resource
from localrun.client.local import LocalClient
from localrun.ops.interface import SequenceInput, StepInput

BUILTIN = resource("localrun/builtin/localrun-tiny.gguf")
GREEDY, USUAL = Sampling(temperature=0.0), Sampling(temperature=0.8, top_k=40, top_p=0.95, seed=3)
CHANGES: tuple[dict[str, Any], ...] = (
    {"length": 71},
    {"table": ([4, 6],)},
    {"first": (1,)},
    {"sink": (2,)},
    {"ring": ([8],)},
    {"ring_first": 1},
    {"ring_sink": (3,)},
    {"state": (5,)},
    {"write_from": (64,)},
    {"n_bulk": 64},
)


def request(sampling: Sampling, words: str = "one two three", n: int = 20, **more: object) -> Request:
    messages = ({"role": "user", "content": words},)
    return Request(messages=messages, max_tokens=n, sampling=sampling, **more)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(EMULATE, "1")


@contextmanager
def emulated_client() -> Iterator[tuple[LocalClient, StepsAhead]]:
    with LocalClient(LoadOptions(BUILTIN, backend="cuda", kv="f16", ctx=512)) as client:
        executor = client.model.engine.runner.executor
        assert isinstance(executor, GpuExecutor)
        yield client, executor.program.ahead


def answer(client: LocalClient, one: Request) -> Sequence[int]:
    [done] = [event for event in client.generate(one) if isinstance(event, Done)]
    return done.completion.token_ids


def answers(requests: Sequence[Request], at_once: bool = False) -> tuple[list[Sequence[int]], int, int]:
    """And how many steps that were begun ahead were used, and how many were not."""
    with emulated_client() as (client, ahead), ThreadPoolExecutor(len(requests) if at_once else 1) as pool:
        found = list(pool.map(lambda one: answer(client, one), requests))
        return found, ahead.n_used, ahead.n_unused


def without(requests: Sequence[Request], monkeypatch: pytest.MonkeyPatch) -> list[Sequence[int]]:
    with monkeypatch.context() as patch:
        patch.setattr(StepsAhead, "begin", lambda *_: None)
        return answers(requests)[0]


def test_answers_are_those_of_one_step_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    requests = [
        request(GREEDY, n=5),
        request(USUAL, n=6),
        Request(messages=NEAR_A_BLOCK_END, max_tokens=14, sampling=USUAL),
    ]
    found, n_used, n_unused = answers(requests)
    assert found == without(requests, monkeypatch)
    assert n_used >= sum(len(one) - 2 for one in found), "all between the first and the last of an answer"
    assert n_unused <= 2 * len(requests)


def test_chats_at_once_answer_as_each_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    requests = [request(GREEDY, "one", 3), request(USUAL, "two words", 8), request(USUAL, "three more words", 5)]
    found, n_used, _ = answers(requests, at_once=True)
    assert found == without(requests, monkeypatch)
    assert n_used > 0


def test_the_host_chooses_where_the_device_has_drawn_another(monkeypatch: pytest.MonkeyPatch) -> None:
    requests = [request(Sampling(temperature=1.5, top_k=40, seed=1), n=9)]
    expected = without(requests, monkeypatch)

    def unlikely(host: np.ndarray, _: object) -> None:
        host[:] = (40, 1.0, 1.0, 0.0, 1 - 2**-53)

    monkeypatch.setattr(step_tensors, "fill_draws", unlikely)
    found, _, n_unused = answers(requests)
    assert found == expected
    assert n_unused > 5


def test_what_needs_the_host_is_not_begun_ahead() -> None:
    requests = [
        request(Sampling(temperature=0.0, repeat_penalty=1.2), n=4),
        request(Sampling(temperature=0.0, logit_bias={5: 1.0}), n=4),
        request(Sampling(temperature=1.0, top_k=0, seed=1), n=4),
        request(GREEDY, n=4, logprobs=2),
    ]
    _, n_used, n_unused = answers(requests)
    assert (n_used, n_unused) == (0, 0)


def test_steps_that_were_begun_for_nothing_leave_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """What they write to the cache is written again."""
    requests = [request(GREEDY, n=8)]
    expected = without(requests, monkeypatch)
    monkeypatch.setattr(StepsAhead, "is_same", lambda *_: False)
    found, n_used, n_unused = answers(requests)
    assert (found, n_used) == (expected, 0)
    assert n_unused > 5


def test_an_answer_says_how_many_of_its_steps_were_begun_ahead() -> None:
    """Each its own: the last step of one answer, which the next one finds begun, is not the other's."""
    with emulated_client() as (client, ahead):
        done = [event for n in (9, 1, 12) for event in client.generate(request(USUAL, n=n)) if isinstance(event, Done)]
        figures = [one.completion.device for one in done]
        assert [one.steps_ahead > 0 for one in figures] == [True, False, True]
        assert sum(one.steps_ahead for one in figures) == ahead.n_begun
        assert sum(one.steps_ahead_used for one in figures) == ahead.n_used


def test_a_step_that_reads_anything_else_is_another() -> None:
    """Tables are the cache's own: one that changes after the step was begun is another one, too."""
    table = [4, 5]
    one = SequenceInput(70, (table,), first=(0,), ring=([7],))
    step = StepInput([3], positions=[69], row_sequence=[0], sequences=[one], logits_rows=[0])
    others = [
        replace(step, positions=[68]),
        replace(step, row_sequence=[1]),
        replace(step, logits_rows=[1]),
        replace(step, sequences=[one, one]),
        *(replace(step, sequences=[replace(one, **change)]) for change in CHANGES),
    ]
    read = read_by(step)
    names = {field.name for field in fields(SequenceInput)}
    assert {name for change in CHANGES for name in change} == names
    assert read_by(replace(step, token_ids=[9])) == read
    assert all(read_by(other) != read for other in others)
    table[1] = 6
    assert read_by(step) != read
