"""Prompts of the library are chosen by keys: a system prompt holds, a template comes filled into the editor."""

from typing import Any

from localrun_testing.chat_app import ask, chat_app, chat_screen, notice, ready, type_text
from localrun_testing.pilots import SMALL, drive, screen_text, until, until_text
from textual.pilot import Pilot

from localrun.chat.prompts import find_prompt, read_prompts


def test_a_template_is_filled_in_and_edited_before_it_is_sent() -> None:
    app, client = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        editor = chat_screen(pilot).composer.editor
        await ready(pilot)
        await pilot.press("slash", *"prompt")
        await until_text(pilot, "/prompt")
        await pilot.press("enter")
        await until_text(pilot, "Careful thinker")
        assert len(screen_text(app).splitlines()) <= SMALL[1]
        await pilot.press("escape")
        await type_text(pilot, "/prompt translate")
        await pilot.press("enter")
        await until_text(pilot, "Translate: language")
        await pilot.press("ctrl+u", *"Latin", "enter")
        await until_text(pilot, "Translate: text")
        await pilot.press("enter")
        await until(pilot, lambda: editor.text.endswith("{{text}}"))
        assert editor.text.startswith("Translate the following text into Latin.")
        await ask(pilot, "")

    drive(app, steps)
    assert client.requests[0].messages[-1]["content"].endswith("{{text}}")


def test_a_system_prompt_holds_from_then_on_and_a_message_is_kept() -> None:
    app, client = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await type_text(pilot, "/prompt tutor")
        await pilot.press("enter")
        session = chat_screen(pilot).session
        await until(pilot, lambda: session.chat and session.chat.system)
        await ask(pilot, "what is {{thing}}?")
        await type_text(pilot, "/keep what-is")
        await pilot.press("enter")
        await until(pilot, lambda: any(one.name == "what-is" for one in read_prompts()))
        await type_text(pilot, "/prompt nonsense")
        await pilot.press("enter")
        await until(pilot, lambda: "there is no prompt nonsense" in notice(pilot))

    drive(app, steps)
    assert client.requests[0].messages[0] == {"role": "system", "content": find_prompt("tutor").text}
    assert find_prompt("what-is").variables == {"thing": ""}
