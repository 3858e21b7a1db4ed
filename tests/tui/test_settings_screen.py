"""Settings: which one wins and why, changes that are checked, and servers whose keys stay out of sight."""

import stat
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.chat_app import CHOICE, chat_app, ready
from localrun_testing.model_screens import ScreenApp
from localrun_testing.pilots import LARGE, SMALL, drive, screen_text, until, until_text
from localrun_testing.scripted_client import ScriptedClient
from localrun_testing.waiting import PATIENCE
from textual.pilot import Pilot
from textual.widgets import Input, OptionList, Static

from localrun.base.errors import UsageError
from localrun.base.request import DEFAULT_SAMPLING
from localrun.base.setting_rows import SETTINGS
from localrun.base.settings import read_settings, write_setting
from localrun.chat.journal import ChatStore
from localrun.client.choice import ModelChoice
from localrun.client.remote.endpoint import Endpoint
from localrun.client.remote.endpoints import (
    check_endpoint,
    masked,
    read_endpoints,
    travels_in_the_clear,
    write_endpoints,
)
from localrun_tui.app import LocalrunApp
from localrun_tui.screens.settings import theme_choice
from localrun_tui.screens.settings.settings_groups import CHOICES, UNITS, in_groups
from localrun_tui.screens.settings.settings_rows import edited, problem, setting_rows
from localrun_tui.screens.settings.settings_screen import SettingsScreen
from localrun_tui.widgets.key_bar import KeyBar
from localrun_tui.widgets.model_list import ModelList

KEY = "sk-canary-0123456789"


def line_of(app: Any, key: str) -> str:
    """What stands behind the title of a setting; empty until that is shown."""
    title = next((title for _, one, title in in_groups() if one == key), key)
    lines = screen_text(app).splitlines()
    return next((line.partition(title)[2].strip() for line in lines if f" {title} " in line), "")


def go_to(pilot: Pilot[Any], key: str) -> None:
    pilot.app.screen._list.highlight(key)  # type: ignore[attr-defined]


def test_what_wins_is_shown_and_changes_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    write_setting("temperature", "0.7")
    write_setting("threads", "2")
    monkeypatch.setenv("LOCALRUN_THREADS", "3")

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "Temperature")
        assert line_of(pilot.app, "temperature").split() == ["0.7", "config.toml"]
        assert line_of(pilot.app, "threads").split() == ["3", "LOCALRUN_THREADS"]
        assert line_of(pilot.app, "ctx").split() == ["8192", "command", "line"]
        assert line_of(pilot.app, "seed").endswith("default")
        go_to(pilot, "threads")
        await until_text(pilot, "LOCALRUN_THREADS goes before config.toml")

        go_to(pilot, "temperature")
        await pilot.press("enter")
        for wrong in ("-1", "5.0"):
            await pilot.press("ctrl+u", *wrong)
            await until_text(pilot, "a number from 0 to 2 is needed")
            await pilot.press("enter")  # nothing is written while it is wrong
            assert read_settings().temperature == 0.7
        await pilot.press("ctrl+u", *"0.2", "enter")
        await until(pilot, lambda: "0.2" in line_of(pilot.app, "temperature"))
        await until_text(pilot, "del Default")
        await pilot.press("delete")
        await until(pilot, lambda: line_of(pilot.app, "temperature").endswith("default"))

        go_to(pilot, "backend")
        await pilot.press("enter")
        await until_text(pilot, "what to compute on")
        await pilot.press("down", "enter")
        await until(pilot, lambda: "config.toml" in line_of(pilot.app, "backend"))
        go_to(pilot, "seed")
        await pilot.press("enter", "1", "escape")  # left as it was
        await pilot.press("escape")
        await until(pilot, lambda: app.closed)

    app = ScreenApp(SettingsScreen({"ctx": 8192, "kv": None}))
    drive(app, steps, LARGE)
    assert app.answer == {"temperature", "backend"}
    settings = read_settings()
    assert (settings.temperature, settings.backend, settings.seed) == (None, "reference", None)


def test_a_default_model_that_is_nowhere_is_refused() -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "Default model")
        await pilot.press("enter", *"nosuch", "enter")
        await until_text(pilot, "there is no model nosuch on disk")
        assert read_settings().model is None

    drive(ScreenApp(SettingsScreen()), steps)


def test_a_broken_file_is_reported_not_overwritten(home: Path) -> None:
    home.mkdir(parents=True)
    (home / "config.toml").write_text("ctx = maybe\n")

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "config.toml: ")
        await pilot.press("enter", "delete", "escape")
        await until(pilot, lambda: app.closed)

    app = ScreenApp(SettingsScreen())
    drive(app, steps, LARGE)
    assert app.answer == frozenset()
    assert (home / "config.toml").read_text() == "ctx = maybe\n"


def test_every_setting_is_described(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {row.key: row for row in setting_rows({})}
    assert set(rows) == set(SETTINGS)
    assert rows["temperature"].value == "0.8, or the model's own"
    assert rows["disk_cache"].value == "8 GiB"
    assert all(row.value == row.setting.unset for row in rows.values() if row.key not in (*DEFAULT_SAMPLING, *UNITS))
    assert all(CHOICES[key][choice] for key in CHOICES for choice in rows[key].setting.choices)
    own = {row.key: row.value for row in setting_rows({}, {"temperature": 0.6, "top_k": 20, "min_p": None})}
    assert (own["temperature"], own["top_k"]) == ("0.6, as the model says", "20, as the model says")
    assert own["min_p"] == "0.05", "a loaded model without one"
    write_setting("disk_cache", "2.5")
    changed = next(row for row in setting_rows({}) if row.key == "disk_cache")
    assert (changed.value, edited(changed)) == ("2.5 GiB", "2.5")
    assert rows["backend"].setting.choices[0] == "auto"
    for row in rows.values():
        assert all(problem(row.setting, choice) == "" for choice in row.setting.choices)
    assert problem(SETTINGS["ctx"], "auto") == ""
    assert problem(SETTINGS["ctx"], "many").startswith("a whole number from 1")


def test_drafts_are_chosen_by_a_word_or_a_path(tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()

    async def choose(pilot: Pilot[Any], *keys: str) -> None:
        go_to(pilot, "draft")
        await pilot.press("enter")
        await until_text(pilot, "answers stay the same")
        assert all(words in screen_text(pilot.app) for words in CHOICES["draft"].values())
        await pilot.press(*keys, "enter")

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "Drafts")
        await choose(pilot)
        await until(pilot, lambda: read_settings().draft == "auto")
        await until(pilot, lambda: line_of(pilot.app, "draft").split() == ["auto", "config.toml"])
        await choose(pilot, "up")  # from the first to the last
        await until_text(pilot, "path of a model")
        await pilot.press("ctrl+u", *str(tmp_path / "small"), "enter")
        await until(pilot, lambda: read_settings().draft == str(tmp_path / "small"))
        await until(pilot, lambda: "config.toml" in line_of(pilot.app, "draft"))
        await choose(pilot)
        await until_text(pilot, "path of a model")
        await until_text(pilot, "small")

    drive(ScreenApp(SettingsScreen({})), steps, LARGE)


def test_the_choice_that_counts_is_marked_where_nothing_is_set() -> None:
    counts = {row.key: row.choice for row in setting_rows({}) if row.setting.choices}
    assert counts == {
        **dict.fromkeys(("kv", "backend", "draft"), "auto"),
        **dict.fromkeys(("stop_on_loop", "titles", "notify"), "on"),
    }


def test_what_is_said_of_a_setting_is_whole_at_80_columns() -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "Temperature")
        detail = pilot.app.screen.query_one("#detail", Static)
        for key in SETTINGS:
            go_to(pilot, key)
            await until_text(pilot, f"{key}: ")
            width = detail.content_size.width
            wanted = detail.get_content_height(detail.size, pilot.app.size, width)
            await until(pilot, lambda wanted=wanted: detail.content_size.height >= wanted)  # type: ignore[misc]

    drive(ScreenApp(SettingsScreen()), steps, SMALL)


def test_servers_are_added_changed_and_forgotten(home: Path) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "+ add a server")
        await pilot.press("end", "enter")
        await until_text(pilot, "speaks the OpenAI protocol")
        form = pilot.app.screen
        for field, text in (("name", "lab"), ("url", "ftp://x"), ("key", KEY)):
            form.query_one(f"#{field}", Input).value = text
        await until_text(pilot, "is not the address of a server")
        await pilot.press("enter", "enter", "enter", "enter")
        assert not read_endpoints()
        form.query_one("#url", Input).value = "http://lab.example:8000/v1/"
        await until_text(pilot, "others on the network can")
        assert "canary" not in screen_text(pilot.app)
        await pilot.press("enter", "enter", "enter", "enter")
        await until_text(pilot, "http://lab.example:8000/v1")
        go_to(pilot, "server lab")
        await until_text(pilot, "••••6789")
        assert "canary" not in screen_text(pilot.app)
        await pilot.press("enter")
        await until_text(pilot, "speaks the OpenAI protocol")
        pilot.app.screen.query_one("#name", Input).value = "cellar"
        await pilot.press("enter", "enter", "enter", "enter")
        await until_text(pilot, "cellar")
        assert [one.name for one in read_endpoints()] == ["cellar"]
        go_to(pilot, "server cellar")
        await until_text(pilot, "del Forget")
        await pilot.press("delete")
        await until_text(pilot, "Forget the server cellar?")
        await pilot.press("y")
        await until(pilot, lambda: not read_endpoints())

    drive(ScreenApp(SettingsScreen()), steps, LARGE)


def test_servers_are_kept_for_their_owner_only(home: Path) -> None:
    written = [Endpoint("lab", "https://lab.example/v1", KEY, "m"), Endpoint('odd "name"', "http://localhost:1")]
    path = write_endpoints(written)
    assert read_endpoints() == written
    assert KEY not in repr(read_endpoints())
    if sys.platform != "win32":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [travels_in_the_clear(one) for one in written] == [False, False]
    assert [masked(key) for key in ("", "short", KEY)] == ["none", "••••", "••••6789"]
    for bad in ("no toml", "[lab]\nkey = 1", '[lab]\nurl = "file:///etc"', "lab = 3", '[lab]\nurl = "http://u:p@h/"'):
        path.write_text(bad)
        with pytest.raises(UsageError):
            read_endpoints()


@pytest.mark.parametrize(
    ("name", "url", "key"),
    [
        ("", "https://h", ""),
        ("x" * 41, "https://h", ""),
        ("a\x1b", "https://h", ""),
        ("taken", "https://h", ""),
        ("a", "h:80", ""),
        ("a", "https://", ""),
        ("a", "https://h:99999", ""),
        ("a", "https://user@h", ""),
        ("a", "https://h", "two words"),
        ("a", "https://h", "schlüssel"),
    ],
)
def test_what_is_no_server(name: str, url: str, key: str) -> None:
    with pytest.raises(ValueError, match=r"needed|called|key|address"):
        check_endpoint(name, url, key, ("taken",))


def test_keys_are_not_redrawn_while_the_screen_closes() -> None:
    """Which keys work depends on a list that may be gone already."""

    async def steps(pilot: Pilot[Any]) -> None:
        screen = pilot.app.screen
        await until(pilot, lambda: line_of(pilot.app, "ctx"))
        bar, listed = screen.query_one(KeyBar), screen.query_one(ModelList)
        await listed.query_one(OptionList).remove()
        assert listed.highlighted is None
        bar._pruning = True  # as Textual marks all of a screen before it removes the first
        bar.keys = ()
        bar.look()
        assert bar.keys == ()
        bar._pruning = False

    drive(ScreenApp(SettingsScreen()), steps, LARGE)


def test_every_setting_is_in_one_group_and_found_by_title_key_and_what_it_does() -> None:
    assert sorted(key for _, key, _ in in_groups()) == sorted(SETTINGS)

    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "Temperature")
        for words, title in (("longest", "Longest answer"), ("top_p", "Top-p"), ("always takes", "Temperature")):
            await pilot.press("slash", "ctrl+u", *words, "enter")
            await until_text(pilot, title)
            assert "CPU threads" not in screen_text(pilot.app)
        await until_text(pilot, "takes a number from 0 to 2")
        await until_text(pilot, "temperature:")  # its key

    drive(ScreenApp(SettingsScreen({})), steps, LARGE)


def test_a_theme_that_is_chosen_is_told_however_long_the_disk_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    disk_is_free = threading.Event()

    def write_late(key: str, value: str | None) -> None:
        disk_is_free.wait(PATIENCE)
        write_setting(key, value)

    app, _ = chat_app()
    monkeypatch.setattr(theme_choice, "write_setting", write_late)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("f3")
        await until_text(pilot, "Temperature")
        go_to(pilot, "theme")
        await pilot.press("enter")
        await until_text(pilot, "Theme (theme in config.toml)")
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(app.screen, SettingsScreen))
        await pilot.pause()
        disk_is_free.set()
        await until(pilot, lambda: line_of(app, "theme").split() == ["localrun-light", "config.toml"])

    drive(app, steps, LARGE)


def test_a_theme_is_shown_while_one_goes_through_them_and_taken_back() -> None:
    app, _ = chat_app()

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        before = app.theme
        app.action_change_theme()
        await until_text(pilot, "Theme (theme in config.toml)")
        await pilot.press("down")
        await until(pilot, lambda: app.theme != before)
        await pilot.press("escape")
        await until(pilot, lambda: app.theme == before)
        app.action_change_theme()
        await until_text(pilot, "Theme (theme in config.toml)")
        await pilot.press("down", "enter")
        await until(pilot, lambda: read_settings().theme == app.theme != before)

    drive(app, steps)


def test_what_counts_when_a_model_is_loaded_is_loaded_at_once_if_one_likes() -> None:
    loads: list[Any] = []
    client = ScriptedClient()
    go_on = threading.Event()

    def open_client(choice: ModelChoice, progress: Any) -> ScriptedClient:
        loads.append(choice)
        assert len(loads) < 2 or go_on.wait(60)
        return client

    app = LocalrunApp(open_client, lambda: ChatStore(None), lambda: replace(CHOICE, ctx=512, kv="q4"))

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        for key, keys, says in (
            ("kv", ["down"], "Load the model again now?"),
            ("seed", ["7"], "from the next message"),
            ("packed_weights", ["1"], "Load the model again now?"),
        ):
            await pilot.press("f3")
            await until_text(pilot, "KV cache")
            go_to(pilot, key)
            await pilot.press("enter", *keys)
            await until(pilot, lambda: "Search" not in screen_text(app))  # neither key nor words of the footer
            await pilot.press("enter")
            await until(pilot, lambda: "config.toml" in line_of(app, key))  # noqa: B023
            await pilot.press("escape")
            await until_text(pilot, says)
            await pilot.press("y")
            if not go_on.is_set():
                await until_text(pilot, "The model is being loaded")
                assert "was held with" not in screen_text(app)
                go_on.set()
        await until(pilot, lambda: len(loads) == 3)

    drive(app, steps, LARGE)
    assert loads == [replace(CHOICE, ctx=512, kv="q4"), CHOICE, CHOICE], "as the settings say now"
