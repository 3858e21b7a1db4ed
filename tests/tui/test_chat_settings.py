"""What holds for one chat reaches the engine, and is not lost by a key."""

from typing import Any

from localrun_testing.chat_app import ask, chat_app, chat_screen, ready
from localrun_testing.pilots import drive, until, until_text
from textual.pilot import Pilot
from textual.widgets import Button, Input, TextArea

from localrun.base.settings import Settings
from localrun_tui.screens.chat.chat_settings import ChatSettings, ChatSettingsScreen
from localrun_tui.screens.chat.number_row import NumberRow
from localrun_tui.themes import DARK
from localrun_tui.widgets.fields import LineField


def test_the_button_that_enter_takes_is_the_brightest() -> None:
    """What has the focus is turned round: it stands on the colour of its words."""
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: app.screen.query("#save"))
        save, leave = (app.screen.query_one(name, Button) for name in ("#save", "#leave"))
        save.focus()
        await until(pilot, lambda: bool(save.styles.text_style.reverse))
        assert save.styles.color.hex.lower() == DARK.primary
        assert not leave.styles.text_style.reverse
        leave.focus()
        await until(pilot, lambda: bool(leave.styles.text_style.reverse))
        assert leave.styles.color.hex.lower() == DARK.primary
        assert not save.styles.text_style.reverse

    drive(app, steps)


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
        await pilot.press("tab", "right", "enter")  # exact
        await pilot.press("tab", "tab", "tab", *"300", "tab", *"7")
        await pilot.press("tab", "right", "right", "enter", "tab", "right", "right", "enter")
        await pilot.press("ctrl+s")
        await ask(pilot, "ahoy")

    drive(app, steps)
    (request,) = client.requests
    assert request.messages[0] == {"role": "system", "content": "Answer like a pirate."}
    assert request.sampling.temperature == 0.0  # exact
    assert (request.max_tokens, request.sampling.seed) == (300, 7)
    assert request.overflow == "roll"
    assert request.think == "off"


def test_an_empty_box_shows_the_number_that_counts() -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        nothing = ChatSettings("", "", "stop", "auto")
        app.push_screen(ChatSettingsScreen(nothing, Settings(top_p=0.7), {"temperature": 0.5, "top_p": 0.9}))
        await until(pilot, lambda: app.screen.query("#temperature"))
        shown = {box.id: box.placeholder for box in app.screen.query(LineField)}
        assert shown["temperature"] == "0.5, its own"
        assert shown["top_p"] == "0.7", "config.toml goes before the model"
        app.screen.query_one(NumberRow).show_usual(Settings(), "", {})
        assert app.screen.query_one("#temperature", LineField).placeholder == "0.8 or own"
        app.screen.query_one(NumberRow).show_usual(Settings(), "", {"temperature": None})
        assert app.screen.query_one("#temperature", LineField).placeholder == "0.8", "a loaded model without one"

    drive(app, steps)


def test_a_number_out_of_range_is_told_and_not_kept() -> None:
    app, client = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: app.screen.query("#system"))
        app.screen.query_one("#temperature", Input).focus()
        await until_text(pilot, "a number from 0 to 2")
        await pilot.press(*"5.0")
        await until_text(pilot, "✕ a number from 0 to 2 is needed")
        await pilot.press("ctrl+s")
        assert app.screen.query("#system"), "it stays open"
        await pilot.press("backspace", "backspace", "backspace", *"0.4", "ctrl+s")
        await until_text(pilot, "Ask anything. Enter sends.")
        await ask(pilot, "ahoy")
        await pilot.press("ctrl+s")
        await until_text(pilot, "0.4")

    drive(app, steps)
    assert client.requests[0].sampling.temperature == 0.4


def test_a_second_escape_asks_no_second_time() -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: isinstance(app.screen, ChatSettingsScreen))
        screen = app.screen
        assert isinstance(screen, ChatSettingsScreen)
        screen.query_one("#system", TextArea).text = "Be brief."
        screen.action_leave()
        screen.action_leave()
        await until_text(pilot, "Save the changes to this chat?")
        await pilot.press("enter")
        await until(pilot, lambda: app.screen_stack == [chat_screen(pilot)])

    drive(app, steps)
