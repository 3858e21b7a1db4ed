"""Commands typed behind a slash: the menu above the editor, and what each does."""

from pathlib import Path
from typing import Any

import pytest
from localrun_testing.chat_app import ask, chat_app, chat_screen, notice, ready, sources, type_text
from localrun_testing.pilots import SMALL, drive, screen_text, until, until_text
from localrun_testing.scripted_client import Script
from textual.pilot import Pilot

from localrun.chat.commands import commands_of
from localrun.chat.versions import compared, version_title
from localrun_tui.screens.chat.argument_menu import suggested_arguments, takes_argument
from localrun_tui.screens.chat.composer import Composer
from localrun_tui.screens.chat.suggestions import suggested_commands


def composer(pilot: Pilot[Any]) -> Composer:
    return chat_screen(pilot).composer


def test_the_menu_narrows_as_one_types() -> None:
    def names(text: str) -> list[str]:
        return [one.value for one in suggested_commands(text)]

    assert names("/") == list(commands_of("app"))
    assert names("/se")[:4] == ["/search", "/sees", "/serve", "/settings"]
    assert names("/hlp") == ["/help"]
    assert (names("/mcp"), names("/hugging"), names("/exit")) == (["/tools"], ["/token"], ["/quit"]), "as described"
    assert [names(text) for text in ("", "a/", "/usr/", "/save x", "//", "/zzz")] == [[]] * 6


def test_values_of_an_argument_are_offered_and_run() -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await type_text(pilot, "/policy r")
        await until(pilot, lambda: [one.argument for one in composer(pilot).menu.shown] == ["roll", "drop"])
        await pilot.press("o")
        await until(pilot, lambda: [one.argument for one in composer(pilot).menu.shown] == ["roll", "drop"])
        await pilot.press("l", "tab")
        await until(pilot, lambda: composer(pilot).editor.text == "/policy roll")
        assert "When the context is full" not in screen_text(app)  # Tab completes, as in a shell
        await pilot.press("enter")
        await until_text(pilot, "When the context is full: roll on")
        assert composer(pilot).editor.text == ""

    drive(app, steps)


def test_a_click_in_the_menu_takes_what_is_there() -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await type_text(pilot, "/policy ")
        await until(pilot, lambda: [one.argument for one in composer(pilot).menu.shown] == ["stop", "drop", "roll"])
        await pilot.click("#suggestions-list", offset=(5, 2))
        await until_text(pilot, "When the context is full: roll on")
        assert composer(pilot).editor.text == ""

    drive(app, steps)


def test_values_of_an_argument_begin_with_what_was_typed_or_have_it() -> None:
    assert takes_argument("/policy ")
    assert not any(map(takes_argument, ("/policy", "/title x", "a /policy ", "/policy x\ny")))
    assert [one.argument for one in suggested_arguments("/policy ")] == ["stop", "drop", "roll"]
    assert [one.argument for one in suggested_arguments("/policy OP")] == ["stop", "drop"]
    assert suggested_arguments("/explain zzz") == []
    assert "builtin" in [one.argument for one in suggested_arguments("/retry-with ")]


def test_tab_goes_on_with_the_path_of_an_adapter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("adapters/pirate/adapter_config.json", "adapters/old pirate.gguf", "adapters/notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert [one.argument for one in suggested_arguments("/lora adapters/")] == [
        "'adapters/old pirate.gguf'",
        "adapters/pirate",
    ]
    for nothing in ("/lora ", "/lora none", "/lora adapters/pirate a", "/lora ~nobody-here/", "/lora \0/"):
        assert suggested_arguments(nothing) == []
    app, _ = chat_app()

    async def complete(pilot: Pilot[Any], typed: str, text: str) -> None:
        await type_text(pilot, typed)
        await pilot.press("tab")
        await until(pilot, lambda: composer(pilot).editor.text == text)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await complete(pilot, "/lora ad", "/lora adapters/")
        await complete(pilot, "p", "/lora adapters/pirate/")

    drive(app, steps)


def test_the_app_does_what_the_list_promises() -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        assert set(chat_screen(pilot).slash.handlers) == set(commands_of("app"))

    drive(app, steps)


def test_a_command_is_chosen_in_the_menu_by_keys() -> None:
    app, client = chat_app(Script("One."), Script("Two."))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "hello")
        await pilot.press("slash")
        await until_text(pilot, "/retry")
        lines = screen_text(app).splitlines()
        assert len(lines) <= SMALL[1]
        await pilot.press(*"titl")
        await until_text(pilot, "Rename this chat")
        await pilot.press("escape")
        assert composer(pilot).editor.text == "/titl"
        assert not composer(pilot).menu.is_open
        await pilot.press("backspace")
        assert composer(pilot).menu.is_open
        await pilot.press("ctrl+u", "slash", *"sea", "tab")
        assert composer(pilot).editor.text == "/search "
        await pilot.press("ctrl+u", "slash", *"und", "tab", "tab")
        assert composer(pilot).editor.text == "/undo"
        await pilot.press("ctrl+u", "slash", *"retr", "enter")
        await until(pilot, lambda: sources(pilot) == ["hello", "Two."])
        assert composer(pilot).editor.text == ""

    drive(app, steps)
    assert [request.messages[-1]["content"] for request in client.requests].count("hello") == 2


def test_what_is_no_command_stays_in_the_editor() -> None:
    app, client = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await type_text(pilot, "/retyr")
        await pilot.press("enter")
        await until(pilot, lambda: "did you mean /retry?" in notice(pilot))
        assert composer(pilot).editor.text == "/retyr"
        await pilot.press("ctrl+u")
        await ask(pilot, "//retry is what?")
        assert sources(pilot)[0] == "/retry is what?"

    drive(app, steps)
    assert client.requests[0].messages[0]["content"] == "/retry is what?"


def test_commands_change_the_chat(tmp_path: Path) -> None:
    app, client = chat_app(Script("One."), Script("Two."))

    async def command(pilot: Pilot[Any], text: str) -> None:
        await type_text(pilot, text)
        composer(pilot).submit()
        await pilot.pause()

    async def steps(pilot: Pilot[Any]) -> None:
        session = chat_screen(pilot).session
        await ready(pilot)
        await command(pilot, "/undo")
        await until(pilot, lambda: "has no messages" in notice(pilot))
        await command(pilot, "/system be kind")
        await until(pilot, lambda: session.chat and session.chat.system == "be kind")
        await ask(pilot, "hello")
        assert session.chat is not None
        await command(pilot, "/title My chat")
        await until(pilot, lambda: session.chat and session.chat.title == "My chat")
        await command(pilot, "/edit hello again")
        await until(pilot, lambda: sources(pilot) == ["hello again", "Two."])
        await command(pilot, "/branch 1")
        await until(pilot, lambda: sources(pilot) == ["hello", "One."])
        await command(pilot, "/copy all")
        await until(pilot, lambda: "all cannot be copied" in notice(pilot))
        composer(pilot).write("")
        await command(pilot, "/copy")
        await until(pilot, lambda: app.clipboard == "One.")
        await command(pilot, f"/save {tmp_path / 'chat.md'}")
        await until(pilot, lambda: (tmp_path / "chat.md").exists())
        await command(pilot, "/undo")
        await until(pilot, lambda: sources(pilot) == [])
        (tmp_path / "notes.txt").write_text("words")
        await command(pilot, f"/attach {tmp_path / 'notes.txt'}")
        await until(pilot, lambda: composer(pilot).attachments)

    drive(app, steps)
    assert client.requests[0].messages[0] == {"role": "system", "content": "be kind"}


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("models", "On disk"),
        ("models coder", "has the words “coder”"),
        ("help", "Models and settings"),
        ("list", "Search all chats"),
    ],
)
def test_commands_open_screens(keys: str, words: str) -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("slash", *keys, "enter")
        await until_text(pilot, words)

    drive(app, steps)


def test_a_command_that_fails_stands_in_the_editor_again() -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await type_text(pilot, "/attach docs/no-such-file.txt")
        await pilot.press("enter")
        await until(pilot, lambda: notice(pilot))
        assert composer(pilot).editor.text == "/attach docs/no-such-file.txt"

    drive(app, steps)


def test_another_answer_at_another_temperature() -> None:
    app, client = chat_app(Script("One."), Script("Two."), Script("Three."))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "hello")
        for text, answer in (("/retry 0.3", "Two."), ("/retry", "Three.")):
            await type_text(pilot, text)
            composer(pilot).submit()
            await until(pilot, lambda answer=answer: sources(pilot) == ["hello", answer])  # type: ignore[misc]
            await until(pilot, lambda: chat_screen(pilot).path.live is None)
        chat = app.session.chat
        assert chat is not None
        found, _ = compared(chat)
        assert ["temperature 0.3" in version_title(one, 1, 3) for one in found] == [False, True, False]

    drive(app, steps)
    usual, once, again = [request.sampling.temperature for request in client.requests]
    assert (once, again) == (0.3, usual)
