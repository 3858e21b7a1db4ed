"""What holds for one chat reaches the engine, and is not lost by a key."""

from typing import Any

from localrun_testing.chat_app import ask, chat_app, ready
from localrun_testing.pilots import drive, until, until_text
from textual.pilot import Pilot
from textual.widgets import TextArea


def test_a_system_prompt_that_was_typed_is_not_lost_by_escape() -> None:
    app, client = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: app.screen.query("#system"))
        await pilot.press("escape")  # nothing was changed
        await until_text(pilot, "Ask anything. Enter sends.")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: app.screen.query("#system"))
        await pilot.press(*"Be brief", "escape")
        await until_text(pilot, "Save the changes to this chat?")
        await pilot.press("escape")
        await until(pilot, lambda: app.screen.query("#system"))
        assert app.screen.query_one("#system", TextArea).text == "Be brief"
        await pilot.press("escape")
        await until_text(pilot, "Save the changes to this chat?")
        await pilot.press("enter")
        await until_text(pilot, "Ask anything. Enter sends.")
        await ask(pilot, "ahoy")

    drive(app, steps)
    assert client.requests[0].messages[0]["content"] == "Be brief"


def test_settings_of_the_chat_reach_the_engine() -> None:
    app, client = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: app.screen.query("#system"))
        app.screen.query_one("#system", TextArea).text = "Answer like a pirate."
        await pilot.press("tab", "down", "enter", "tab", "down", "down", "enter", "tab", "down", "down", "enter")
        await pilot.press("ctrl+s")
        await ask(pilot, "ahoy")

    drive(app, steps)
    (request,) = client.requests
    assert request.messages[0] == {"role": "system", "content": "Answer like a pirate."}
    assert request.sampling.temperature == 0.0  # exact
    assert request.overflow == "roll"
    assert request.think == "off"
