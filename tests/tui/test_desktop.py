"""The window has a title and gets its own back; the desktop hears of a long answer, and of nothing else."""

from typing import Any

import pytest
from localrun_testing.chat_app import ask, chat_app, ready
from localrun_testing.pilots import drive, until
from textual import events
from textual.pilot import Pilot

from localrun_tui.state import desktop
from localrun_tui.state.desktop import Desktop, may_notify, notification_codes, title_codes


def test_a_title_cannot_steer_the_terminal() -> None:
    assert title_codes("a\x07b\x1b]0;c\x07 d" + "x" * 500) == "\x1b]2;ab d" + "x" * 116 + "\x07"
    assert notification_codes("a;b", "c\x1b[2Jd;e") == "\x1b]777;notify;a,b;cd,e\x07\x1b]9;a,b: cd,e\x07"


def test_the_window_gets_its_own_title_back() -> None:
    written: list[str] = []
    window = Desktop(written.append)
    window.leave()
    for title in ("one", "one", "two"):
        window.name(title)
    window.leave()
    assert written == ["\x1b[22;0t\x1b]2;one\x07", "\x1b]2;two\x07", "\x1b[23;0t"]


@pytest.mark.parametrize(
    ("setting", "environ", "may"),
    [
        (None, {}, True),
        (None, {"TMUX": "x"}, False),
        (None, {"STY": "x"}, False),
        (True, {"TMUX": "x"}, True),
        (False, {}, False),
    ],
)
def test_where_the_desktop_is_told(setting: bool | None, environ: dict[str, str], may: bool) -> None:
    assert may_notify(setting, environ) is may


@pytest.mark.parametrize(("away", "seconds", "told"), [(True, 20, 1), (None, 20, 1), (False, 20, 0), (True, 3, 0)])
def test_only_long_work_is_told_of_to_those_who_look_elsewhere(
    away: bool | None, seconds: float, told: int, monkeypatch: pytest.MonkeyPatch, home: object
) -> None:
    for name in ("TMUX", "STY"):
        monkeypatch.delenv(name, raising=False)
    written: list[str] = []
    window = Desktop(written.append)
    window.is_away = away
    window.tell("chat", "done", seconds)
    assert len(written) == told


def test_the_app_names_its_window_and_tells_of_a_long_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TMUX", "STY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(desktop, "LONG_SECONDS", 0.0)
    app, _ = chat_app()
    written: list[str] = []
    monkeypatch.setattr(app, "_write", written.append)
    app.desktop._write = written.append

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        app.post_message(events.AppBlur())
        await ask(pilot, "why tides?")
        await until(pilot, lambda: any("why tides? · localrun" in codes for codes in written))

    drive(app, steps)
    assert any(codes.startswith("\x1b]777;notify;why tides?;the answer is ready") for codes in written)
    assert "\x1b[23;0t" in written
