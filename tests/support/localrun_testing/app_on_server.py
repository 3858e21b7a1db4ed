"""The app in front of a server: a chat of two turns, and an answer that is changed and gone on with."""

from typing import Any

from textual.pilot import Pilot

from localrun.chat.journal import ChatStore
from localrun.client.choice import ModelChoice
from localrun.client.remote.endpoint import Endpoint
from localrun_testing.chat_app import ask, chat_screen, notice, ready, views
from localrun_testing.pilots import LARGE, Steps, drive, until, until_text
from localrun_tui import start
from localrun_tui.app import LocalrunApp


def two_turns(server: Endpoint) -> str:
    """`yes`, else the error of a turn."""
    errors: list[str] = []

    async def steps(pilot: Pilot[Any]) -> None:
        for question in ("Hello", "And then?"):
            await ask(pilot, question)
            turn = chat_screen(pilot).session.turn
            assert turn
            errors.extend([str(turn.error)] if turn.error else [])
        assert len(views(pilot)) == 4

    _drive(server, steps)
    return "; ".join(errors) or "yes"


def changed_and_gone_on_with(server: Endpoint) -> str:
    """`yes`; `said` where the app says that it cannot be done."""
    told: list[str] = []

    async def steps(pilot: Pilot[Any]) -> None:
        await ask(pilot, "Count.")
        await pilot.press("ctrl+up", "e")
        await until_text(pilot, "keeps it as another version")
        screen = chat_screen(pilot)
        screen.composer.write("One, two,")
        await pilot.press("enter")
        await until(pilot, lambda: views(pilot)[-1].source == "One, two,")
        screen.set_focus(views(pilot)[-1])
        before = screen.session.turn
        await pilot.press("g")
        await until(pilot, lambda: screen.session.turn is not before or "cannot be gone on with" in notice(pilot))
        await until(pilot, lambda: not screen.session.answering)
        turn = screen.session.turn
        error = str(turn.error) if turn and turn is not before and turn.error else ""
        if "cannot be gone on with" in notice(pilot) + error:
            told.append("said")
        elif error:
            told.append(error)

    _drive(server, steps)
    return "; ".join(told) or "yes"


def _drive(server: Endpoint, steps: Steps) -> None:
    app = LocalrunApp(start.open_client, lambda: ChatStore(None), lambda: ModelChoice(server))

    async def when_it_is_open(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await steps(pilot)

    drive(app, when_it_is_open, LARGE)
