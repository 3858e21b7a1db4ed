"""The app's model answers other programs, their requests are seen, and quitting asks first."""

import asyncio
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
import pytest
from localrun_testing.chat_app import ENDS, chat_app, ready, send
from localrun_testing.fake_client import FakeClient
from localrun_testing.pilots import drive, screen_text, until, until_text
from localrun_testing.served import serving
from textual.app import App
from textual.pilot import Pilot

from localrun.base.request import LoadOptions
from localrun.base.settings import write_setting
from localrun.cli.app import run_command_line
from localrun.client.attach.owner import running_server
from localrun.server.monitor.client import MonitorClient
from localrun.server.monitor.rows import RequestRow
from localrun_tui.app import LocalrunApp
from localrun_tui.screens.dialogs.confirm import ConfirmScreen
from localrun_tui.screens.requests.requests_screen import RequestsScreen
from localrun_tui.themes import LIGHT
from localrun_tui.top_app import TopApp
from localrun_tui.widgets.model_list import ModelList

QUESTION = {"messages": [{"role": "user", "content": "Hi"}]}


def address(app: Any) -> str:
    assert isinstance(app, LocalrunApp)
    return app.session.server.url


async def ask(url: str, **more: Any) -> httpx.Response:
    async with httpx.AsyncClient(timeout=60) as client:
        return await client.post(f"{url}/v1/chat/completions", json={**QUESTION, **more})


def test_other_programs_ask_the_model_of_the_app() -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await send(pilot, "/serve 0")
        await until_text(pilot, "This model is served")
        url = address(pilot.app)
        owner = await asyncio.to_thread(running_server)
        assert owner
        assert owner.url == url
        answer = await ask(url)
        assert (answer.status_code, answer.json()["model"]) == (200, "qwen3-4b")
        assert (await ask(url, model="qwen3-4b:Q4_K_M")).status_code == 200
        other = await ask(url, model="builtin")
        assert (other.status_code, other.json()["error"]["code"]) == (404, "model_not_found")
        await send(pilot, "/serve stop")
        await until(pilot, lambda: not address(pilot.app))
        assert await asyncio.to_thread(running_server) is None

    drive(app, steps)


def test_requests_are_seen_and_ended() -> None:
    app, _ = chat_app(ENDS)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await send(pilot, "/serve 0")
        await until(pilot, lambda: address(pilot.app))
        asked = asyncio.ensure_future(ask(address(pilot.app)))
        await send(pilot, "/requests")
        await until_text(pilot, "python-ht")
        await until_text(pilot, "writing")
        (live,) = app.session.server.requests
        raised: list[int] = []
        live.raise_priority = lambda: raised.append(live.number)
        await pilot.press("r")
        await until(pilot, lambda: raised == [live.number])
        await pilot.press("x")
        assert (await asked).json()["choices"][0]["finish_reason"] == "stop"
        await until_text(pilot, "No request is under way")
        await pilot.press("escape")

    drive(app, steps)


def test_the_first_line_says_that_a_model_is_served_and_how_many_ask() -> None:
    app, _ = chat_app(ENDS)

    async def steps(pilot: Pilot[Any]) -> None:
        def first_line() -> str:
            app.clear_notifications()  # which stand over it
            return screen_text(app).splitlines()[0]

        await ready(pilot)
        assert "served" not in first_line()
        await send(pilot, "/serve 0")
        await until(pilot, lambda: first_line().endswith(f"served :{address(app).rpartition(':')[2]}"))
        asked = asyncio.ensure_future(ask(address(app)))
        await until(pilot, lambda: first_line().endswith("· 1 asking"))
        await pilot.click("ServerBadge")
        await until_text(pilot, "Requests")
        await pilot.press("x")
        await asked
        await pilot.press("escape")
        await until(pilot, lambda: not first_line().endswith("asking"))
        await send(pilot, "/serve stop")
        await until(pilot, lambda: "served" not in first_line())

    drive(app, steps)


def test_quitting_while_others_are_answered_asks_first() -> None:
    app, _ = chat_app(ENDS)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await send(pilot, "/serve 0")
        await until(pilot, lambda: address(pilot.app))
        asked = asyncio.ensure_future(ask(address(pilot.app)))
        await until(pilot, lambda: app.session.server.requests)
        await pilot.press("ctrl+q")
        await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen))
        assert f"{app.session.server.url}, 1 request under way" in screen_text(pilot.app)
        await pilot.press("n")
        assert address(pilot.app)
        await pilot.press("ctrl+q")
        await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen))
        await pilot.press("y")
        asked.cancel()

    drive(app, steps)
    assert not app.session.server.url


def test_what_is_no_port_is_said() -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await send(pilot, "/serve soon")
        await until_text(pilot, "soon is no port")
        assert not address(pilot.app)

    drive(app, steps)


def test_top_shows_a_server_that_runs_elsewhere() -> None:
    fake = FakeClient(LoadOptions(Path()), lambda request: "ab…")
    with serving(lambda choice: fake) as served:
        app = TopApp(MonitorClient(served.url))

        async def steps(pilot: Pilot[Any]) -> None:
            await until_text(pilot, "No request is under way")
            assert served.url in screen_text(pilot.app)
            asked = asyncio.ensure_future(ask(served.url))
            await until_text(pilot, "python-ht")
            await pilot.press("x")
            assert (await asked).status_code == 200
            await until_text(pilot, "No request is under way")

        drive(app, steps)


def test_top_has_the_theme_of_the_app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    themes: list[str] = []
    monkeypatch.setenv("LOCALRUN_HOME", str(tmp_path))
    monkeypatch.setattr("localrun.cli.top.at_terminal", lambda: True)
    monkeypatch.setattr("localrun.cli.top.is_plain", lambda: False)

    def run(app: TopApp) -> int:
        themes.append(app.theme)
        return 0

    monkeypatch.setattr(TopApp, "run_on_terminal", run)
    with serving(lambda choice: FakeClient(LoadOptions(Path()), lambda request: "")) as served:
        for theme in ("light", "nord"):
            write_setting("theme", theme)
            assert run_command_line(["top", "--server", served.url]) == 0
    assert themes == [LIGHT.name, "nord"]


def test_requests_that_stay_the_same_are_drawn_once() -> None:
    """`top` often stands open beside an answer, which needs the processor."""
    looks: list[int] = []
    drawn: list[int] = []

    class Nobody:
        address, attached = "http://127.0.0.1:1", ()

        async def rows(self) -> list[RequestRow]:
            looks.append(1)
            return []

        async def cancel(self, number: int) -> None: ...

        async def raise_priority(self, number: int) -> None: ...

    screen = RequestsScreen(Nobody())

    async def steps(pilot: Pilot[Any]) -> None:
        await pilot.app.push_screen(screen)
        with patch.object(ModelList, "show", lambda *_: drawn.append(1)):
            await screen._refresh()
            await until(pilot, lambda: len(looks) > 3)
        assert not drawn
        await until_text(pilot, "No request is under way")

    drive(App(), steps)


@pytest.mark.parametrize("key", ["q", "ctrl+c", "ctrl+q", "escape"])
def test_top_ends_at_any_key_that_ends_such_a_program(key: str) -> None:
    with serving(lambda choice: FakeClient(LoadOptions(Path()), lambda request: "")) as served:
        app = TopApp(MonitorClient(served.url))

        async def steps(pilot: Pilot[Any]) -> None:
            await until_text(pilot, "q Quit")
            await pilot.press(key)
            await until(pilot, lambda: not app.is_running)

        drive(app, steps)
