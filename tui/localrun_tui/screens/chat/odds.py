"""Showing how sure the model was of the last answer. Where that takes long, its price is asked for first; a server
tells it with an answer only."""

import asyncio
from typing import TYPE_CHECKING, Any

from textual.app import App

from localrun.base.errors import UsageError
from localrun.base.events import PromptLogprobs, TokenLogprob
from localrun.base.units import ms
from localrun.chat.long_text.reading_speed import reading_speed
from localrun.chat.token_odds import last_answer, odds_request
from localrun_tui.screens.dialogs.confirm import ConfirmScreen
from localrun_tui.screens.dialogs.odds_screen import OddsScreen
from localrun_tui.state.current_chat import nonempty_chat

if TYPE_CHECKING:
    from localrun.base.request import Request
    from localrun.client.interface import EngineClient
    from localrun_tui.state.session import Session

_SHORT, _FEW = 5.0, 1000  # seconds, or tokens where no speed is known, that nobody is asked about


async def show_odds(app: App[Any], session: "Session") -> None:
    """Read the chat once more for the probabilities of its last answer, and show them."""
    chat, client = nonempty_chat(session), session.model.client
    if client is None or session.answering:
        raise UsageError("the model is not free to read the answer again", "wait for it, or choose one by Ctrl+O")
    if client.info.engine == "remote":
        await app.push_screen(OddsScreen(_told_by_server(session)))
        return
    answer = last_answer(chat)
    request = odds_request(chat, answer)
    n_tokens, speed = len(request.prompt_ids), reading_speed([answer.stats], client.info, session.rates)
    seconds = speed.seconds(n_tokens, 0) if speed else None
    if seconds > _SHORT if seconds is not None else n_tokens > _FEW:
        facts = [("reads", f"{n_tokens:,} tokens" + (f", ≈{ms(1000 * seconds)}" if seconds else ""))]
        if not await app.push_screen_wait(ConfirmScreen("Read the chat once more for this?", facts, "Read", "Leave")):
            return
    tokens = await asyncio.to_thread(_logprobs, client, request)
    await app.push_screen(OddsScreen(tokens[-int(answer.stats["completion_tokens"]) :]))


def _told_by_server(session: "Session") -> list[TokenLogprob]:
    """The logprobs that came with the last answer. Raises UsageError where there are none; they are asked for then."""
    chat, turn = session.chat, session.turn
    is_last = chat is not None and turn is not None and turn.kept is not None and turn.kept.id == chat.tree.head
    if is_last and turn is not None and turn.logprobs:
        return turn.logprobs
    if is_last and session.wants_odds:
        raise UsageError("the server gave no logprobs with this answer", "choose a model on this machine")
    session.wants_odds = True
    what = "a server tells this with an answer only: from now on it is asked for it"
    raise UsageError(what, "Ctrl+R asks for another answer, then /odds shows it")


def _logprobs(client: "EngineClient", request: "Request") -> list[TokenLogprob]:
    found: list[TokenLogprob] = []
    for event in client.generate(request):
        if isinstance(event, PromptLogprobs):
            found += event.tokens
    return found
