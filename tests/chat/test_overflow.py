"""What the model still sees of a chat that outgrew its context, counted against a simulated conversation."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localrun.base.content import as_content
from localrun.chat.conversation import Policy
from localrun.chat.journal import Chat, ChatStore
from localrun.chat.overflow import SINK_TOKENS, horizon_of, make_room, plan_overflow, turn_sizes
from localrun.chat.requests import request_messages
from localrun.chat.tree import Message

SIZES = st.lists(st.integers(1, 300), min_size=1, max_size=40).map(lambda sizes: sizes[: len(sizes) | 1])


def branch(n: int) -> list[Message]:
    """Questions and answers in turn."""
    return [
        Message(str(i), str(i - 1) if i else None, "assistant" if i % 2 else "user", as_content("x")) for i in range(n)
    ]


@given(SIZES, st.integers(100, 2000), st.sampled_from(["stop", "drop", "roll"]), st.integers(0, 50), st.integers(1, 60))
def test_a_plan_counts_what_it_hides(sizes: list[int], ctx: int, policy: Policy, system: int, reserve: int) -> None:
    messages = branch(len(sizes))
    plan = plan_overflow(messages, sizes, ctx, policy, system=system, reserve=reserve)
    total = system + sum(sizes)
    if total + reserve <= ctx:
        assert (plan.fits, plan.n_hidden, plan.n_turns, plan.horizon, str(plan)) == (True, 0, 0, None, "")
        return
    if policy == "stop":
        assert (plan.fits, plan.n_hidden, plan.horizon) == (False, 0, None)
        return
    seen_from = next((i for i, message in enumerate(messages) if message.id == plan.horizon), len(messages))
    hidden_turns = sum(message.role == "user" for message in messages[:seen_from])
    if policy == "drop":
        kept = total - plan.n_hidden
        assert plan.fits == (kept <= ctx - reserve)
        if plan.horizon is not None:
            assert messages[seen_from].role == "user", "whole turns go"
            assert plan.n_hidden == sum(sizes[:seen_from])
            assert plan.n_turns == hidden_turns
            assert str(plan).startswith("the model no longer sees the ")
        if not plan.fits:
            last = max(i for i, message in enumerate(messages) if message.role == "user")
            assert seen_from == last or last == 0, "only the last turn is left"
    else:
        assert plan.fits
        assert plan.total == total
        assert plan.n_hidden == total + reserve - ctx
        assert ("a part of the last message" in str(plan)) == (plan.horizon is None)
        assert "oldest" not in str(plan), "of the oldest turn the beginning is still seen"
        visible_from = total - (ctx - reserve - SINK_TOKENS)
        begin = system + sum(sizes[:seen_from])
        assert begin >= visible_from or plan.horizon is None
        if seen_from:
            assert begin - sizes[seen_from - 1] < visible_from, "the message before is not wholly seen"


@settings(max_examples=20)
@given(st.lists(st.integers(2, 8), min_size=60, max_size=120), st.integers(200, 400))
def test_dropping_goes_in_steps(turns: list[int], ctx: int) -> None:
    """As a chat grows, the first message the model sees changes seldom: each change means reading the rest again."""
    sizes: list[int] = []
    horizons: list[str | None] = []
    for size in turns:
        sizes += [size]
        plan = plan_overflow(branch(len(sizes)), sizes, ctx, "drop", reserve=20)
        assert plan.fits
        assert plan.total - plan.n_hidden <= ctx - 20
        horizons.append(plan.horizon)
        sizes += [size]
    changes = sum(a != b for a, b in itertools.pairwise(horizons))
    assert changes <= sum(sizes) / ((ctx - 20) * 0.25) + 1


def conversation(rewrites: bool) -> tuple[Chat, list[int]]:
    """A chat as an engine counts it: 10 tokens of system text, questions of 20 + n, answers of 30 + n, of which a
    template that rewrites shows a half later. Gives what each message takes in the next prompt."""
    chat = ChatStore(None).create()
    prompt, sizes = 10, list[int]()
    for n in range(6):
        question = chat.add_user("q")
        prompt += 20 + n
        answer = 30 + 2 * n
        shown = answer // 2 if rewrites else answer
        thinking = "t" * (answer - shown)
        stats = {"prompt_tokens": prompt, "completion_tokens": answer}
        chat.add_answer(question.id, "a" * shown, thinking, stats=stats)
        sizes += [20 + n + (10 if n == 0 else 0), shown]
        prompt += shown
    return chat, sizes


@pytest.mark.parametrize("rewrites", [False, True])
def test_sizes_are_what_the_engine_counted(rewrites: bool) -> None:
    chat, sizes = conversation(rewrites)
    chat.add_user("the next")
    assert turn_sizes(chat.tree.path(chat.tree.head)) == [*sizes, 0]


def test_ids_of_a_prompt_that_began_elsewhere_are_not_known() -> None:
    chat = ChatStore(None).create()
    for n in range(3):
        question = chat.add_user(f"q{n}")
        chat.add_answer(question.id, "a", ids=(*chat.known_ids(), n))
    path = chat.tree.path(chat.tree.head)
    assert chat.known_ids() == (0, 1, 2)
    chat.set(horizon=path[2].id)
    assert chat.known_ids() == (), "the next prompt begins with another message"
    last = chat.add_user("q3")
    chat.add_answer(last.id, "a", ids=(1, 2, 3))
    assert chat.known_ids() == (1, 2, 3)
    assert chat.known_ids(path[1].id) == (0, 1)[:1], "before the horizon nothing changed"


def test_the_horizon_is_where_the_model_begins_to_see() -> None:
    chat, sizes = conversation(rewrites=False)
    assert horizon_of(chat, 10_000) is None
    assert horizon_of(chat, 200) is None, "nothing was dropped"
    chat.set(policy="roll")
    seen = horizon_of(chat, 200)
    path = chat.tree.path(chat.tree.head)
    at = next(i for i, message in enumerate(path) if message.id == seen)
    assert sum(sizes[at:]) <= 200 - SINK_TOKENS < sum(sizes[at - 1 :])
    chat.set(policy="drop", horizon=path[4].id)
    assert horizon_of(chat, 10_000) == path[4].id


def test_sizes_of_what_was_never_counted_are_none() -> None:
    assert turn_sizes(branch(4)) == [0, 0, 0, 0]
    odd = Message("a", None, "assistant", as_content("x"), stats={"prompt_tokens": "many", "completion_tokens": 3})
    assert turn_sizes([odd]) == [0]
    first = Message("a", None, "assistant", as_content("x"), stats={"prompt_tokens": 5, "completion_tokens": 3})
    assert turn_sizes([first]) == [3]


def test_room_is_made_once_and_said() -> None:
    chat, sizes = conversation(rewrites=False)
    question = chat.add_user("x" * 30)
    everything = request_messages(chat.visible(), chat.system)
    assert make_room(chat, question.id, 10_000, 20) is None
    assert make_room(chat, question.id, 200, 20) is None, "not unless the user chose to drop turns"
    chat.set(policy="drop")
    plan = make_room(chat, question.id, 200, 20)
    assert plan is not None
    assert plan.n_hidden == sum(sizes[: 2 * plan.n_turns])
    assert chat.horizon == plan.horizon
    assert request_messages(chat.visible(), chat.system) == everything[2 * plan.n_turns :]
    assert len(chat.tree.path(chat.tree.head)) == 13, "the history keeps everything"
    assert make_room(chat, question.id, 200, 20) is None, "there is room now"
    chat.select(chat.tree.path(chat.tree.head)[2].id)
    chat.edit(chat.tree.path(chat.tree.head)[2].id, "on a branch of its own")
    assert chat.visible()[0].parent is None, "that branch never was too long"
