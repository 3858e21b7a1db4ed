"""A model on its way: typed for meanwhile, given up, or not to be had."""

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.chat_app import CHOICE, chat_app, chat_screen, notice, ready, send, type_text, views
from localrun_testing.pilots import drive, screen_text, until, until_text
from localrun_testing.waiting import PATIENCE
from textual.pilot import Pilot
from textual.screen import Screen

from localrun.base.errors import DoesNotFitError, UsageError
from localrun.base.request import ProgressCallback
from localrun.chat.journal import ChatStore
from localrun.client.choice import ModelChoice
from localrun.client.interface import EngineClient
from localrun.hub.disk.stored import StoredModel
from localrun.hub.precision_offer import Subject
from localrun_tui.screens.models import load_again
from localrun_tui.state import session
from localrun_tui.state.messages import LoadBegan

TOO_LARGE = ModelChoice(StoredModel("too-large", "F16", Path("/models/too-large.gguf"), 1, "gguf", "models"), "F16")


def test_typing_while_the_model_loads_is_answered_afterwards(tmp_path: Path) -> None:
    loaded = threading.Event()
    app, client = chat_app(gate=loaded, folder=tmp_path)

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "loading")
        await send(pilot, "are you there?")
        await until(pilot, lambda: views(pilot))
        assert client.requests == []
        assert len(ChatStore(tmp_path).summaries()) == 1  # on disk before there is a model
        loaded.set()
        await until_text(pilot, "Hello!")

    drive(app, steps)


def test_a_message_without_a_model_says_how_to_choose_one_and_is_answered_then(home: Path) -> None:
    chosen = chat_app()[1]
    app, _ = chat_app(client=chosen, choose=lambda: None, folder=home)

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "Welcome to localrun")
        await pilot.press("escape")
        await until_text(pilot, "Ask anything. Enter sends.")
        await send(pilot, "are you there?")
        await until_text(pilot, "Choose a model for your message")
        await until_text(pilot, "builtin")
        await pilot.press("escape")
        await until_text(pilot, "waits for a model: Ctrl+O chooses a model")
        chat_screen(pilot).run_guarded(app.session.load(CHOICE))
        await until_text(pilot, "Hello!")
        assert app.session.chat is not None
        assert app.session.model.choice == replace(CHOICE, chat_id=app.session.chat.id)
        assert "◌" not in screen_text(app)

    drive(app, steps)


def test_a_load_can_be_given_up() -> None:
    loaded = threading.Event()
    app, client = chat_app(gate=loaded)

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "loading")
        await pilot.press("escape")
        await until_text(pilot, "no model: Ctrl+O")
        assert notice(pilot) == f"The load of {CHOICE.stored.name} was stopped.  Ctrl+O loads it again, or another"
        loaded.set()

    drive(app, steps)
    assert client.requests == []


def test_a_load_that_fails_says_why_and_leaves_the_app_usable() -> None:
    app, _ = chat_app(fails=DoesNotFitError("it needs 6 GiB, and 3 are free", "choose a smaller precision"))

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "choose a smaller precision")
        assert "it needs 6 GiB" in notice(pilot)
        await type_text(pilot, "still typing")
        assert "still typing" in screen_text(app)

    drive(app, steps)


class Chosen(Screen[ModelChoice | None]):
    """A list of models in which somebody chose TOO_LARGE."""

    answer: ModelChoice | None = TOO_LARGE

    def on_mount(self) -> None:
        self.call_after_refresh(self.choose)

    def choose(self) -> None:
        self.dismiss(self.answer)


def test_a_chosen_model_that_does_not_fit_leaves_the_present_one_and_f7_shows_its_other_forms(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app, client = chat_app()
    menus: list[str] = []

    class Menu(Chosen):
        answer = None

        def __init__(self, subject: Subject, free: object) -> None:
            super().__init__()
            menus.append(subject.name)

    def open_client(choice: ModelChoice, progress: ProgressCallback) -> EngineClient:
        if choice.stored == TOO_LARGE.stored:
            raise DoesNotFitError("it needs 600 GiB, and 3 are free", "`localrun fit` lists what does")
        return client

    monkeypatch.setattr(load_again, "PrecisionMenu", Menu)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        monkeypatch.setattr(app.session.model, "_open_client", open_client)
        chat_screen(pilot).run_guarded(app._load_from(Chosen()))
        await until_text(pilot, "F7 lists what does")
        assert app.session.info is not None
        assert app.session.present is not None
        assert app.session.present.stored == CHOICE.stored
        for _ in range(2):
            await pilot.press("f7")
            await until(pilot, lambda: chat_screen(pilot).is_current)
        assert menus == ["too-large", CHOICE.stored.name]
        await send(pilot, "are you there?")
        await until_text(pilot, "Hello!")

    drive(app, steps)


def test_f7_shows_the_other_forms_of_a_first_model_that_was_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    menus: list[str] = []

    class Menu(Chosen):
        answer = None

        def __init__(self, subject: Subject, free: object) -> None:
            super().__init__()
            menus.append(subject.name)

    monkeypatch.setattr(load_again, "PrecisionMenu", Menu)
    app, _ = chat_app(fails=UsageError("a context of 4,096 tokens is too much", "try --ctx 2048"))

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "try F7: ctx 2048")
        for _ in range(2):
            await pilot.press("f7")
            await until(pilot, lambda: chat_screen(pilot).is_current)
        assert menus == [CHOICE.stored.name] * 2

    drive(app, steps)


def test_what_a_failed_load_told_outlives_late_news_of_the_load_after_it() -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        screen = chat_screen(pilot)
        screen.pane.notice.say_error(DoesNotFitError("it needs 6 GiB, and 3 are free"))
        screen.on_load_began(LoadBegan(CHOICE))
        screen.on_load_ended()
        assert "it needs 6 GiB" in notice(pilot)

    drive(app, steps)


def test_a_message_that_waited_for_the_model_is_never_called_unanswered(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded, may_answer = threading.Event(), threading.Event()
    monkeypatch.setattr(session, "_known_rates", lambda: may_answer.wait(PATIENCE) and None)
    app, _ = chat_app(gate=loaded)

    async def steps(pilot: Pilot[Any]) -> None:
        await send(pilot, "are you there?")
        await until_text(pilot, "waits until the model is loaded")
        loaded.set()
        await until(pilot, lambda: "waits until the model" not in screen_text(app))
        assert "not answered" not in screen_text(app)
        may_answer.set()
        await until_text(pilot, "Hello!")

    drive(app, steps)
