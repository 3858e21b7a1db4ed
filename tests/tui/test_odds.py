"""How sure the model was of each token of an answer, asked of the real engine."""

import math
from typing import Any

from localrun_testing.chat_app import ask, chat_app, chat_screen, notice, ready, type_text
from localrun_testing.fake_chat_server import DONE, Reply, delta, event, fake_chat_server
from localrun_testing.pilots import SMALL, drive, screen_text, until, until_text
from textual.pilot import Pilot

from localrun.base.events import TokenLogprob, TopLogprob
from localrun.base.request import Request, Sampling
from localrun.chat.journal import ChatStore
from localrun.chat.token_odds import N_OTHERS, last_answer, odds_request
from localrun.chat.turn import Answer
from localrun.client.choice import ModelChoice, builtin
from localrun.client.remote.endpoint import Endpoint
from localrun_tui.app import LocalrunApp
from localrun_tui.screens.dialogs.odds_screen import OddsScreen, odds_row
from localrun_tui.screens.dialogs.prompt_screen import TokenRows
from localrun_tui.start import open_client


def test_the_odds_of_an_answer_are_those_it_was_written_with() -> None:
    client = open_client(builtin(), lambda done, total: None)
    try:
        chat = ChatStore(None).create()
        question = chat.add_user("Hello!").id
        request = Request(
            messages=({"role": "user", "content": "Hello!"},),
            sampling=Sampling(temperature=0.0),
            max_tokens=12,
            logprobs=0,
        )
        answer = Answer(chat, question, request, client.info)
        written = []
        for event in client.generate(request):
            answer.take(event)
            written += [logprob] if (logprob := getattr(event, "logprob", None)) is not None else []
        answer.keep()
        asked = odds_request(chat, last_answer(chat))
        read = [token for event in client.generate(asked) for token in getattr(event, "tokens", ())][-12:]
    finally:
        client.close()
    assert [one.token_id for one in read] == [one.token_id for one in written][:12]
    for one, before in zip(read, written, strict=False):
        assert one.logprob is not None
        assert before.logprob is not None
        assert math.isclose(one.logprob, before.logprob, abs_tol=1e-3)
        assert len(one.top) == N_OTHERS


def test_a_row_has_the_token_its_probability_and_the_others() -> None:
    others = (TopLogprob(1, math.log(0.6), b" a\n"), TopLogprob(2, math.log(0.3), b"\x1b[2J"))
    token = TokenLogprob(1, math.log(0.6), others, b" a\n")
    row = odds_row(token, 60).plain
    assert "60 %  ·a⏎" in row
    assert "30 %" in row
    assert row.count("·a⏎") == 1
    assert "\x1b" not in row
    narrow = odds_row(token, 40).plain
    assert "30 %" not in narrow, "an alternative is shown whole or not at all"
    assert row.startswith(narrow)


def test_without_known_tokens_the_app_says_so() -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await type_text(pilot, "/odds")
        await pilot.press("enter")
        await until(pilot, lambda: notice(pilot))

    drive(app, steps)


def test_a_server_tells_them_with_the_next_answer() -> None:
    entry = {"token": "Yes", "logprob": -0.5, "top_logprobs": [{"token": "No", "logprob": -1.0}]}
    choice = {"index": 0, "delta": {"content": "Yes"}, "logprobs": {"content": [entry]}, "finish_reason": "stop"}
    with fake_chat_server() as server:
        server.replies = [Reply((delta(content="Yes"), delta("stop"), DONE)), Reply((event(choices=[choice]), DONE))]
        place = Endpoint("lab", server.url, model="tiny")
        app = LocalrunApp(open_client, lambda: ChatStore(None), lambda: ModelChoice(place))

        async def steps(pilot: Pilot[Any]) -> None:
            await ready(pilot)
            await ask(pilot, "Is it?")
            await _odds(pilot)
            await until_text(pilot, "tells this with an answer only")
            assert "logprobs" not in server.seen[-1].body
            await pilot.press("ctrl+r")
            await until(pilot, lambda: "logprobs" in server.seen[-1].body and not chat_screen(pilot).session.answering)
            await _odds(pilot)
            await until(pilot, lambda: isinstance(pilot.app.screen, OddsScreen))
            assert isinstance(screen := pilot.app.screen, OddsScreen)
            assert [one.piece for one in screen.tokens] == [b"Yes"]

        drive(app, steps)


async def _odds(pilot: Pilot[Any]) -> None:
    await type_text(pilot, "/odds")
    await pilot.press("enter")


def test_many_tokens_scroll_down_only() -> None:
    app, _ = chat_app()
    others = tuple(TopLogprob(n, math.log(0.1), b" another word") for n in range(1, 5))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await app.push_screen(OddsScreen([TokenLogprob(0, math.log(0.5), others, b" word")] * 60))
        rows = app.screen.query_one(TokenRows)
        await until(pilot, lambda: rows.show_vertical_scrollbar and "50 %" in screen_text(app))
        assert not rows.show_horizontal_scrollbar

    drive(app, steps, SMALL)
