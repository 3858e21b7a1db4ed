"""A prompt that is longer than the context: its description, and the ways to continue. For every face."""

from dataclasses import field
from itertools import takewhile

from localrun.base.dataclass import dataclass
from localrun.base.errors import PromptTooLongError
from localrun.base.events import ModelInfo
from localrun.base.sentence import sentence
from localrun.base.units import ms
from localrun.chat.conversation import Chat, Policy
from localrun.chat.overflow import POLICIES, OverflowPlan, plan_for, reserve_of, turn_sizes


@dataclass(frozen=True, slots=True)
class TooLong:
    """`title` and `text` describe the problem, in tokens. `plans` are the ways to continue; there may be none.

    `costs` says for each what it drops, and what the model has to read.
    """

    title: str
    text: str
    plans: dict[Policy, OverflowPlan] = field(default_factory=dict)
    costs: dict[Policy, str] = field(default_factory=dict)


def describe_too_long(
    chat: Chat, question: str, info: ModelInfo | None, error: PromptTooLongError, max_tokens: int | None
) -> TooLong:
    """Describe the problem; `max_tokens` is the longest answer that is set."""
    ctx, total = info.ctx if info else 0, error.n_tokens
    if not total or not ctx:  # a server that does not count, or so long a text that nobody counted it to its end
        begun = len(chat.visible(question)) > 1
        plans: dict[Policy, OverflowPlan] = {"drop": OverflowPlan(False, 0)} if begun else {}
        title, words = "This is too long for the model", {way: POLICIES[way][1] for way in plans}
        return TooLong(title, sentence(error.message), plans, words)
    ways: tuple[Policy, ...] = ("drop", "roll") if info and info.can_roll else ("drop",)
    reserve = reserve_of(ctx, max_tokens)
    plans = {way: plan_for(chat, question, ctx, way, reserve, total) for way in ways}
    holds = f"the context holds {ctx:,}, the answer included"
    before = sum(turn_sizes(chat.visible(question))[:-1])
    if plans["drop"].fits:
        title = "This chat no longer fits"
        text = f"{before:,} tokens so far and {total - before:,} of this message make {total:,}; {holds}."
    elif first_unanswered(chat, question) != question:
        title = "These messages do not fit"
        text = f"Those without an answer have {total - before:,} tokens; {holds}."
    else:
        prompt = " with the system prompt" if chat.system and not before else ""
        title, text = "This message does not fit", f"It has {total - before:,} tokens{prompt}; {holds}."
    works = {way: plan for way, plan in plans.items() if plan.fits and plan.n_hidden}
    costs = {way: f"{plan}; {_reading_cost(chat, question, plan, way)}" for way, plan in works.items()}
    return TooLong(title, text, works, costs)


def first_unanswered(chat: Chat, question: str) -> str:
    """Id of the first of the user's messages up to this one that no answer parts."""
    asked = takewhile(lambda message: message.role == "user", reversed(chat.tree.path(question)))
    return list(asked)[-1].id


def _reading_cost(chat: Chat, question: str, plan: OverflowPlan, policy: Policy) -> str:
    """Tokens to read for this choice, and the time at the speed of the last answer.

    After a drop everything left is read again; a rolling window keeps what was read.
    """
    path = chat.tree.path(question)
    known = sum(turn_sizes(chat.visible(question))[:-1]) if policy == "roll" else plan.n_hidden
    n_tokens = max(plan.total - known, 0)
    rate = next((float(rate) for message in reversed(path) if (rate := message.stats.get("prefill_tps"))), 0.0)
    return f"{n_tokens:,} tokens to read" + (f", ≈{ms(1000 * n_tokens / rate)}" if rate else "")
