"""The command line and the app go on with a chat in the same way."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localrun.base.events import Completion, Done, ModelInfo
from localrun.base.request import Request
from localrun.base.settings import Settings
from localrun.chat.conversation import Chat, Policy
from localrun.chat.journal import ChatStore
from localrun.chat.overflow import reserve_of
from localrun.cli.groups import AnswerOptions
from localrun.cli.session import Answering
from localrun.cli.turn import answer_in
from localrun_tui.state.answers import build_request

Turns = list[tuple[int, int]]  # tokens of each question and its answer
DONE = Done(Completion("m", "", "", "a", "", "stop", 1, 0, 1, (), "", 0, 0))


def conversation(turns: Turns, policy: Policy) -> tuple[Chat, str]:
    """A chat as an engine counted it, and its last question, which nobody has counted."""
    chat = ChatStore(None).create(system="be kind", policy=policy)
    prompt = 10
    for n, (asked, answered) in enumerate(turns[:-1]):
        question = chat.add_user(f"q{n}")
        prompt += asked
        stats = {"prompt_tokens": prompt, "completion_tokens": answered}
        chat.add_answer(question.id, f"a{n}", ids=tuple(range(prompt + answered)), stats=stats)
        prompt += answered
    return chat, chat.add_user("q" * 3 * turns[-1][0]).id


def asked_by_the_command_line(chat: Chat, question: str, ctx: int) -> Request:
    info = ModelInfo("m", "", "", "", "", "", ctx, 0, 0.0)
    requests: list[Request] = []

    def stream(_: object, request: Request, take: object) -> Done:
        requests.append(request)
        return DONE

    client: Any = SimpleNamespace(info=info)
    answer_in(chat, question, client, Answering(AnswerOptions()).options(chat), stream)
    return requests[0]


def asked_by_the_app(chat: Chat, question: str, ctx: int) -> Request:
    return build_request(chat, question, ctx)


@settings(max_examples=60, deadline=None)
@given(
    turns=st.lists(st.tuples(st.integers(1, 300), st.integers(1, 300)), min_size=1, max_size=12),
    ctx=st.integers(64, 4000),
    policy=st.sampled_from(["stop", "drop", "roll"]),
    max_tokens=st.none() | st.integers(1, 2000),
    stop_on_loop=st.booleans(),
)
def test_both_faces_ask_the_same(
    turns: Turns, ctx: int, policy: Policy, max_tokens: int | None, stop_on_loop: bool
) -> None:
    set_up = Settings(max_tokens=max_tokens, stop_on_loop=stop_on_loop, temperature=0.5)
    plans = []
    faces: tuple[Callable[[Chat, str, int], Request], ...] = (asked_by_the_command_line, asked_by_the_app)
    with (
        patch("localrun.cli.session.read_settings", lambda: set_up),
        patch("localrun_tui.state.answers.read_settings", lambda: set_up),
    ):
        for face in faces:
            chat, question = conversation(turns, policy)
            request = face(chat, question, ctx)
            places = [message.id for message in chat.tree.path(question)]
            horizon = places.index(chat.horizon) if chat.horizon else None
            plans.append((horizon, replace(request, now=None)))
    assert plans[0] == plans[1]


@pytest.mark.parametrize(
    ("ctx", "max_tokens", "reserve"),
    [
        (512, None, 128),
        (4096, None, 1024),
        (131_072, None, 8192),
        (4096, 200, 200),
        (4096, 3000, 1024),
        (131_072, 20_000, 20_000),
    ],
)
def test_an_answer_has_a_quarter_of_the_context_unless_it_needs_less(
    ctx: int, max_tokens: int | None, reserve: int
) -> None:
    assert reserve_of(ctx, max_tokens) == reserve
