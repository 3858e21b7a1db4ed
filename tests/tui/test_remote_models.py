"""Models on servers, from the app: added, chosen, spoken to; and servers that die or want another key."""

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.chat_app import ask, chat_screen, notice, send, sources, text_of, views
from localrun_testing.fake_chat_server import DONE, FakeChatServer, Reply, delta, failure, fake_chat_server
from localrun_testing.pilots import LARGE, SMALL, drive, screen_text, until, until_text
from localrun_testing.waiting import PATIENCE
from textual.pilot import Pilot
from textual.widgets import Input

from localrun.base.errors import EngineDiedError, LocalrunError
from localrun.chat.journal import ChatStore
from localrun.client.remote import endpoints
from localrun.client.remote import models as remote_models
from localrun.client.remote.endpoint import Endpoint
from localrun.client.remote.endpoints import read_endpoints, write_endpoints
from localrun_tui import start
from localrun_tui.app import LocalrunApp
from localrun_tui.screens import first_run
from localrun_tui.screens.models import catalogue_section
from localrun_tui.screens.settings import endpoint_form

KEY = "sk-canary-123456"


@pytest.fixture
def server() -> Iterator[FakeChatServer]:
    with fake_chat_server() as server:
        server.key = KEY
        server.models = [{"id": "big-model", "max_model_len": 4096}]
        yield server


@pytest.fixture(autouse=True)
def empty_catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    """What fits of its models takes seconds to find out, and none of them is chosen here."""
    monkeypatch.setattr(first_run, "_find_first", lambda task: None)
    monkeypatch.setattr(catalogue_section, "catalogue_rows", lambda budget, stored: [])


def new_app() -> LocalrunApp:
    return LocalrunApp(start.open_client, lambda: ChatStore(None))


async def to_servers(pilot: Pilot[Any]) -> None:
    """From the first screen to the list of servers."""
    await until_text(pilot, "Look around first")
    await pilot.press("escape", "ctrl+o")
    await until_text(pilot, "On disk")
    await pilot.press("left")


async def fill_in(pilot: Pilot[Any], name: str, url: str, key: str, model: str = "") -> None:
    """The form, line by line."""
    await until_text(pilot, "A server that speaks the OpenAI protocol")
    for value in (name, url, key, model):
        assert isinstance(pilot.app.focused, Input)
        pilot.app.focused.value = value
        await pilot.press("enter")


async def choose(pilot: Pilot[Any], model: str) -> None:
    await until_text(pilot, model)
    await pilot.press("enter")
    await until(pilot, lambda: chat_screen(pilot).session.info)


async def with_model(pilot: Pilot[Any], server: FakeChatServer) -> None:
    """The chat with the model of a server that is known already."""
    write_endpoints([Endpoint("lab", server.url, KEY)])
    await to_servers(pilot)
    await choose(pilot, "big-model")


def test_a_server_is_added_and_its_model_answers(server: FakeChatServer) -> None:
    app = new_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await to_servers(pilot)
        await until_text(pilot, "Press a to add one")
        await pilot.press("a")
        await fill_in(pilot, "lab", server.url, KEY)
        await choose(pilot, "big-model")
        assert "big-model" in screen_text(app).splitlines()[0]
        for question in ("Hi", "And again"):
            await ask(pilot, question)
            assert views(pilot)[-1].source == "Hello, wörld"
        assert "4,096" in screen_text(app)
        assert not re.search(r"KV|KiB|-bound", screen_text(app)), "nothing that the server did not say"
        await pilot.press("ctrl+g")
        await until_text(pilot, "It runs on a server, which says")
        await until_text(pilot, "tokens in the answer")
        assert "Nothing yet" not in screen_text(app)
        assert "canary" not in screen_text(app)
        await pilot.press("ctrl+o")
        await until_text(pilot, "runs on lab: what you write is sent to")
        assert "an engine that does not say its name · not said: tools" in screen_text(app)

    drive(app, steps, LARGE)
    assert read_endpoints() == [Endpoint("lab", server.url, KEY)]
    said = [seen for seen in server.seen if seen.method == "POST"]
    assert {(one.key, one.body["model"]) for one in said} == {(KEY, "big-model")}
    assert [message["content"] for message in said[-1].body["messages"]] == ["Hi", "Hello, wörld", "And again"]


def test_a_key_goes_to_the_keyring_where_there_is_one(
    server: FakeChatServer, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: dict[str, str] = {}
    monkeypatch.setattr(endpoint_form, "has_keyring", lambda: True)
    monkeypatch.setattr(endpoints, "store_key", kept.__setitem__)
    monkeypatch.setattr(endpoints, "stored_key", kept.__getitem__)
    app = new_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await to_servers(pilot)
        await pilot.press("a")
        await fill_in(pilot, "lab", server.url, KEY)
        await choose(pilot, "big-model")

    drive(app, steps, LARGE)
    assert kept == {"lab": KEY}
    assert read_endpoints() == [Endpoint("lab", server.url, KEY, in_keyring=True)]
    assert KEY not in (home / endpoints.FILE_NAME).read_text()


def test_a_server_is_added_in_the_settings(server: FakeChatServer) -> None:
    app = new_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "Look around first")
        await pilot.press("escape", "ctrl+p", *"settings")
        await until_text(pilot, "everything in config.toml")
        await pilot.press("enter")
        await until_text(pilot, "+ add a server")
        await pilot.press("end", "enter")
        await fill_in(pilot, "lab", server.url, KEY)
        await until_text(pilot, server.url)
        await pilot.press("escape", "ctrl+o")
        await until_text(pilot, "On disk")
        await pilot.press("left")
        await choose(pilot, "big-model")
        await ask(pilot, "Hi")
        assert views(pilot)[-1].source == "Hello, wörld"

    drive(app, steps, LARGE)


def test_enter_does_nothing_while_a_server_is_asked(server: FakeChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = threading.Event()
    ask_really = remote_models.list_models
    monkeypatch.setattr(remote_models, "list_models", lambda endpoint: answers.wait(PATIENCE) and ask_really(endpoint))
    app = new_app()
    write_endpoints([Endpoint("lab", server.url, KEY)])

    async def steps(pilot: Pilot[Any]) -> None:
        await to_servers(pilot)
        await until_text(pilot, "asking…")
        await pilot.press("enter", "enter")
        assert "A server that speaks" not in screen_text(app)
        answers.set()
        await choose(pilot, "big-model")

    drive(app, steps, LARGE)


@pytest.mark.parametrize("end", ["reset", "close", "cut chunk"])
def test_a_server_that_dies_leaves_the_half_and_the_next_message_works(server: FakeChatServer, end: str) -> None:
    app = new_app()
    half = (delta(role="assistant", content=""), delta(content="It was a "), delta(content="dark"))
    server.replies = [Reply(half, end=end), Reply((*half, delta(content=" night."), delta("stop"), DONE))]

    async def steps(pilot: Pilot[Any]) -> None:
        await with_model(pilot, server)
        await ask(pilot, "a story")
        assert isinstance(app.session.turn and app.session.turn.error, EngineDiedError)
        shown = text_of(views(pilot)[-1])
        assert "It was a dark" in shown
        assert "⚠ cut off" in shown
        chat = app.session.chat
        assert chat is not None
        assert chat.tree[chat.tree.head or ""].interrupted
        assert "engine" not in shown.partition("⚠")[2]
        await ask(pilot, "once more")
        assert views(pilot)[-1].source == "It was a dark night."

    drive(app, steps, LARGE)
    assert [message["role"] for message in server.seen[-1].body["messages"]] == ["user", "assistant", "user"]


def test_a_server_that_stalls_is_stopped(server: FakeChatServer) -> None:
    app = new_app()
    server.replies = [Reply((delta(content="Well"),), end="stall")]

    async def steps(pilot: Pilot[Any]) -> None:
        await with_model(pilot, server)
        await send(pilot, "a story")
        await until_text(pilot, "Well")
        await pilot.press("escape")
        await until(pilot, lambda: not app.session.answering)
        await until_text(pilot, "◼ stopped")

    drive(app, steps, LARGE)
    assert server.hung_up.wait(PATIENCE)


def test_a_wrong_key_is_said_and_corrected_where_it_is_said(server: FakeChatServer) -> None:
    app = new_app()
    write_endpoints([Endpoint("lab", server.url, "sk-mistyped-99999", "tiny")])

    async def steps(pilot: Pilot[Any]) -> None:
        await to_servers(pilot)
        await until_text(pilot, "does not accept the key")
        assert "mistyped" not in screen_text(app)
        await pilot.press("enter")
        await until_text(pilot, "A server that speaks the OpenAI protocol")
        assert "mistyped" not in screen_text(app)
        await fill_in(pilot, "lab", server.url, KEY, "tiny")
        await choose(pilot, "big-model")

    drive(app, steps, LARGE)
    assert read_endpoints() == [Endpoint("lab", server.url, KEY, "tiny")]


def test_a_model_that_its_server_does_not_list_is_named_by_hand(server: FakeChatServer) -> None:
    app = new_app()
    server.models = failure(500, "no cache folder")
    write_endpoints([Endpoint("lab", server.url, KEY)])

    async def steps(pilot: Pilot[Any]) -> None:
        await to_servers(pilot)
        await until_text(pilot, "an error of its own")
        await pilot.press("enter")
        await fill_in(pilot, "lab", server.url, KEY, "mine")
        await choose(pilot, "mine")
        await ask(pilot, "Hi")
        assert views(pilot)[-1].source == "Hello, wörld"

    drive(app, steps, LARGE)
    assert read_endpoints() == [Endpoint("lab", server.url, KEY, "mine")]


@pytest.mark.parametrize(
    ("reply", "words"),
    [(failure(401, f"no such key: {KEY}"), "does not accept the key"), (failure(503, "busy"), "an error of its own")],
)
def test_a_refusal_keeps_the_question(server: FakeChatServer, reply: Reply, words: str) -> None:
    app = new_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await with_model(pilot, server)
        server.replies = [reply]
        await ask(pilot, "Hi")
        await until(pilot, lambda: words in notice(pilot))
        assert "canary" not in screen_text(app)
        assert isinstance(app.session.turn and app.session.turn.error, LocalrunError)
        assert sources(pilot) == ["Hi"]

    drive(app, steps, LARGE)


def test_a_server_that_went_away_is_said(server: FakeChatServer) -> None:
    app = new_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await with_model(pilot, server)
        server.http.shutdown()
        server.http.server_close()
        await ask(pilot, "Hi")
        await until(pilot, lambda: "nothing listens" in notice(pilot) or "cannot be reached" in notice(pilot))
        assert sources(pilot) == ["Hi"]

    drive(app, steps, LARGE)


def test_a_server_is_forgotten_and_an_empty_list_offers_no_change(server: FakeChatServer) -> None:
    write_endpoints([Endpoint("lab", server.url, KEY)])
    app = new_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await to_servers(pilot)
        await until_text(pilot, "big-model")
        await until_text(pilot, "Change")
        await pilot.resize_terminal(*SMALL)
        await until_text(pilot, "a Add server e Change del Delete f1 Help")
        await pilot.press("delete")
        await until_text(pilot, "Forget the server lab?")
        await pilot.press("y")
        await until_text(pilot, "No server is set up.")
        await until(pilot, lambda: "e Change" not in screen_text(app))

    drive(app, steps, LARGE)
    assert read_endpoints() == []
