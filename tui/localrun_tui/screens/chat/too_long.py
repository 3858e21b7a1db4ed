"""A prompt that is longer than the context: what does not fit, and the user's choice of what would work."""

from typing import TYPE_CHECKING, Any

from textual.app import App

from localrun.base.errors import PromptTooLongError
from localrun.base.events import ModelInfo
from localrun.base.settings import read_settings
from localrun.base.units import ms
from localrun.chat.journal import Chat, Policy
from localrun.chat.overflow import POLICIES, OverflowPlan, adopt, drop_turn, plan_for, reserve_of, turn_sizes
from localrun_tui.screens.dialogs.ask import AskOne

if TYPE_CHECKING:
    from localrun_tui.state.session import Session
    from localrun_tui.state.turn import Turn


async def mend_too_long(app: App[Any], session: "Session", turn: "Turn", error: PromptTooLongError) -> bool:
    """A prompt was too long: go on as the chat's policy says, or as the user chooses. Gives whether the user wants to
    shorten the message."""
    chat, question = turn.chat, turn.parent_id
    if chat.policy == "drop" and await session.disk.run(drop_turn, chat, question):
        await session.answer(chat, question)
        return False
    title, text, plans = await session.disk.run(_describe, chat, question, session.info, error)
    rows = [("edit", "Shorten the message", "it comes back into the editor")]
    for way, plan in plans.items():
        cost = reading_cost(chat, question, plan, way)
        rows.append((way, POLICIES[way][0], "; ".join(filter(None, [str(plan) or POLICIES[way][1], cost]))))
    rows += [("stop", "Leave it as it is", "the message stays without an answer")]
    choice = await app.push_screen_wait(AskOne(title, rows, text, unasked=True))
    policy = next((policy for policy in plans if policy == choice), None)
    if policy:
        await session.disk.run(adopt, chat, policy, plans[policy])
        await session.answer(chat, question)
    return choice == "edit"


def reading_cost(chat: Chat, question: str, plan: OverflowPlan, policy: Policy) -> str:
    """What going on so has the model read, and how long that takes at the speed of the last answer; empty where nobody
    has counted. After a drop all that is left is read again; a window that rolls on keeps what was read."""
    path = chat.tree.path(question)
    known = sum(turn_sizes(chat.visible(question))[:-1]) if policy == "roll" else plan.n_hidden
    n_tokens = max(plan.total - known, 0)
    rate = next((float(rate) for message in reversed(path) if (rate := message.stats.get("prefill_tps"))), 0.0)
    if not plan.total:
        return ""
    return f"{n_tokens:,} tokens to read" + (f", ≈{ms(1000 * n_tokens / rate)}" if rate else "")


def _describe(
    chat: Chat, question: str, info: ModelInfo | None, error: PromptTooLongError
) -> tuple[str, str, dict[Policy, OverflowPlan]]:
    """What does not fit, in how many tokens, and the ways to go on that would work."""
    ctx, total = info.ctx if info else 0, error.n_tokens
    if not total or not ctx:  # a server that does not count
        begun = len(chat.visible(question)) > 1
        return "This is too long for the model", error.message, {"drop": OverflowPlan(False, 0)} if begun else {}
    ways: tuple[Policy, ...] = ("drop", "roll") if info and info.can_roll else ("drop",)
    reserve = reserve_of(ctx, read_settings().max_tokens)
    plans = {way: plan_for(chat, question, ctx, way, reserve, total) for way in ways}
    holds = f"the context holds {ctx:,}, the answer included"
    larger = "Ctrl+O loads the model with a larger context, where memory has room for it."
    before = sum(turn_sizes(chat.visible(question))[:-1])
    if not plans["drop"].fits:
        prompt = " with the system prompt" if chat.system and not before else ""
        title, text = "This message does not fit", f"It has {total - before:,} tokens{prompt}; {holds}."
    else:
        title = "This chat no longer fits"
        text = f"{before:,} tokens so far and {total - before:,} of this message make {total:,}; {holds}."
    works = {way: plan for way, plan in plans.items() if plan.fits and plan.n_hidden}
    return title, f"{text}\n{larger}", works
