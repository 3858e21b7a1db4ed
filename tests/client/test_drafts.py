"""A client whose engine drafts: the same events, answers and figures as from one that does not."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from localrun_testing.drafts import Deepest, Guesses, for_all

from localrun.backends.cpu.library import load_library
from localrun.base.draft_figures import DraftFigures
from localrun.base.events import Done, Token
from localrun.base.request import LoadOptions, Request, Sampling
from localrun.base.resources import resource
from localrun.client.local import LocalClient
from localrun.engine.speculation.lookup import Lookup
from localrun.engine.speculation.speculation import Speculation

pytestmark = pytest.mark.skipif(load_library() is None, reason="no native library")
PATH = Path(str(resource("localrun/builtin/localrun-tiny.gguf")))
ASK = Request(({"role": "user", "content": "What is a KV cache?"},), max_tokens=60)
GREEDY, HOT = Sampling(temperature=0.0), Sampling(temperature=0.8, seed=3)


@pytest.fixture(scope="module")
def clients() -> Iterator[tuple[LocalClient, LocalClient]]:
    """One without drafts, and one that verifies all of them."""
    plain, drafting = LoadOptions(PATH, ctx=1024, draft="off"), LoadOptions(PATH, ctx=1024, draft="lookup")
    with LocalClient(plain) as without, LocalClient(drafting) as with_drafts:
        assert without.model.engine.scheduler.speculation is None
        speculation_of(with_drafts).depths = Deepest()
        yield without, with_drafts


def speculation_of(client: LocalClient) -> Speculation:
    found = client.model.engine.scheduler.speculation
    assert found is not None
    return found


def answer(client: LocalClient, request: Request) -> tuple[Done, list[int]]:
    """The end, and the ids that were told before."""
    told: list[int] = []
    for event in client.generate(request):
        if isinstance(event, Token) and event.token_id is not None:
            told.append(event.token_id)
        if isinstance(event, Done):
            return event, told
    raise AssertionError("no end")


@pytest.mark.parametrize("sampling", [GREEDY, HOT])
def test_answers_and_what_is_told_are_the_same(clients: tuple[LocalClient, LocalClient], sampling: Sampling) -> None:
    request = replace(ASK, sampling=sampling)
    plain, told = answer(clients[0], request)
    text = [*plain.prompt_ids, *plain.completion.token_ids]
    for new_drafter in (Lookup, partial(Guesses, [text], 0.8)):
        speculation_of(clients[1]).new_drafter = for_all(new_drafter)
        drafted, told_then = answer(clients[1], request)
        assert (drafted.completion.text, told_then) == (plain.completion.text, told)
        assert list(drafted.completion.token_ids) == told
    assert plain.completion.drafts == DraftFigures(drafts_off="drafts are off")
    figures = drafted.completion.drafts
    assert 0 < figures.accepted_tokens < figures.drafted_tokens
    assert drafted.completion.n_steps == len(told) - 1 - figures.accepted_tokens
    assert figures.draft_gain is not None
    assert not figures.drafts_off


def test_a_stop_string_within_a_draft_ends_the_answer_there(clients: tuple[LocalClient, LocalClient]) -> None:
    request = replace(ASK, sampling=GREEDY)
    plain, _ = answer(clients[0], request)
    text, ids = plain.completion.text, [*plain.prompt_ids, *plain.completion.token_ids]
    speculation_of(clients[1]).new_drafter = for_all(partial(Guesses, [ids], 1.0))
    for start in range(20, len(text) - 5, len(text) // 6):
        stopped = replace(request, stop=(text[start : start + 5],))
        (plain, told), (drafted, told_then) = (answer(client, stopped) for client in clients)
        assert drafted.completion.text == plain.completion.text == text[: text.index(stopped.stop[0])]
        assert list(drafted.completion.token_ids) == list(plain.completion.token_ids) == told == told_then


def test_an_answer_that_is_asked_for_again_is_drafted_from_the_other_branch() -> None:
    with LocalClient(LoadOptions(PATH, ctx=1024)) as client:
        speculation_of(client).depths = Deepest()
        request = replace(ASK, sampling=GREEDY, chat_id="0" * 32)
        first, again = (answer(client, request)[0].completion for _ in range(2))
        other, _ = answer(client, replace(request, chat_id="1" * 32))
    assert first.token_ids == again.token_ids == other.completion.token_ids
    assert again.drafts.accepted_tokens > 0.7 * len(again.token_ids)
    assert first.drafts.accepted_tokens == other.completion.drafts.accepted_tokens < again.drafts.accepted_tokens
