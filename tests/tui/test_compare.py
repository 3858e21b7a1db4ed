"""Versions of an answer side by side, and one of them taken, by keys."""

from dataclasses import replace
from typing import Any

import pytest
from localrun_testing.chat_app import CHOICE, ask, chat_app, chat_screen, notice, ready, sources, type_text
from localrun_testing.pilots import LARGE, SMALL, drive, screen_text, until, until_text
from localrun_testing.scripted_client import COMPLETION, INFO, Script, ScriptedClient
from textual.content import Content
from textual.pilot import Pilot

from localrun.base.errors import LocalrunError
from localrun.chat.journal import ChatStore
from localrun.client.choice import ModelChoice, builtin
from localrun_tui.app import LocalrunApp
from localrun_tui.screens.dialogs.differences import MARK, with_marks
from localrun_tui.screens.models.models_screen import ModelsScreen


async def command(pilot: Pilot[Any], text: str) -> None:
    await type_text(pilot, text)
    chat_screen(pilot).composer.submit()
    await pilot.pause()


def marked_words(lines: list[Content]) -> list[str]:
    return [line.plain[span.start : span.end] for line in lines for span in line.spans if span.style == MARK]


def test_words_that_differ_are_marked_unless_nearly_all_do() -> None:
    left = [Content("Tides come"), Content("twice a day, mostly.")]
    right = [Content("Tides come once"), Content("a day, mostly.")]
    ours, theirs = with_marks(left, right)
    assert (marked_words(ours), marked_words(theirs)) == (["twice"], ["once"])
    assert [line.plain for line in ours] == [line.plain for line in left]
    for lines in with_marks(left, [Content("Gravity does, and nothing else.")]):
        assert not marked_words(lines)
    assert with_marks(left, left) == (left, left)


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_versions_stand_side_by_side_and_one_is_taken(size: tuple[int, int]) -> None:
    app, _ = chat_app(Script("The **moon** pulls."), Script("Gravity does."), Script("Tides come twice."))

    async def steps(pilot: Pilot[Any]) -> None:
        screen = chat_screen(pilot)
        await ready(pilot)
        await ask(pilot, "why tides?")
        await command(pilot, "/compare")
        await until(pilot, lambda: "one version of each" in notice(pilot))
        for n in (2, 3):
            await pilot.press("ctrl+r")
            await until_text(pilot, f"‹ {n}/{n} ›")
            await until(pilot, lambda: screen.path.live is None)
        await command(pilot, "/compare")
        await until_text(pilot, "Versions side by side")
        line = next(line for line in screen_text(app).splitlines() if "Tides come twice." in line)
        assert "The moon pulls." in line
        assert all(len(each) <= size[0] for each in screen_text(app).splitlines())
        await pilot.press("right")
        await until_text(pilot, "Gravity does.")
        await pilot.press("right")  # over the one on the left
        await until_text(pilot, "The moon pulls.")
        await pilot.press("left", "enter")
        await until(pilot, lambda: sources(pilot) == ["why tides?", "Gravity does."])
        await command(pilot, "/compare")
        await until_text(pilot, "Versions side by side")
        await pilot.press("escape")
        await until(pilot, lambda: sources(pilot) == ["why tides?", "Gravity does."])

    drive(app, steps, size)


def two_models(fails: bool = False) -> LocalrunApp:
    """The app with the usual model, and with the built-in one, which may fail to load."""
    usual = ScriptedClient([Script("By the large one.")] * 3)
    small = replace(COMPLETION, model="builtin", precision="Q8_0")
    other = ScriptedClient([Script("By the small one.", completion=small)], info=replace(INFO, name="builtin"))

    def open_client(choice: ModelChoice, progress: object) -> ScriptedClient:
        if choice.stored.name == "builtin" and fails:
            raise LocalrunError("there is no memory for it")
        return other if choice.stored.name == "builtin" else usual

    return LocalrunApp(open_client, lambda: ChatStore(None), lambda: CHOICE)


@pytest.mark.parametrize("named", [True, False])
def test_another_model_answers_again_beside_the_first(named: bool) -> None:
    app = two_models()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "why tides?")
        await command(pilot, "/retry-with builtin" if named else "/retry-with")
        if not named:
            await until(pilot, lambda: isinstance(app.screen, ModelsScreen))
            app.screen.dismiss(builtin())
        await until(pilot, lambda: sources(pilot) == ["why tides?", "By the small one."])
        await until(pilot, lambda: chat_screen(pilot).path.live is None)
        assert app.session.chat is not None
        assert app.session.chat.model == "builtin"
        await command(pilot, "/compare")
        await until_text(pilot, "Versions side by side")
        titles = next(line for line in screen_text(app).splitlines() if "1/2" in line)
        assert titles.index("2/2 · builtin Q8_0") < titles.index("1/2 · Qwen3 4B Q4_K_M")

    drive(app, steps, LARGE)


def test_where_the_other_model_fails_the_first_comes_back() -> None:
    app = two_models(fails=True)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await ask(pilot, "why tides?")
        await command(pilot, "/retry-with builtin")
        await until_text(pilot, "there is no memory for it")
        await until(pilot, lambda: app.session.info and not app.session.model.loading)
        editor = chat_screen(pilot).composer.editor
        await until(pilot, lambda: editor.text == "/retry-with builtin")  # it can be mended
        editor.clear()
        await ask(pilot, "and on?")
        assert sources(pilot) == ["why tides?", "By the large one.", "and on?", "By the large one."]

    drive(app, steps, LARGE)
