"""The engine's process is killed and stopped at random moments of an answer: the app goes on, and so does the chat."""

import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest
from localrun_testing.chat_app import ask, chat_screen, notice, send, text_of, views
from localrun_testing.pilots import drive, until
from textual.pilot import Pilot

from localrun.base.errors import EngineDiedError
from localrun.chat.journal import ChatStore
from localrun.chat.tree import Message
from localrun.client.choice import builtin
from localrun.client.worker import watchdog
from localrun.client.worker.client import WorkerClient
from localrun_tui import start
from localrun_tui.app import LocalrunApp
from localrun_tui.state.turn import Turn

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL and no SIGSTOP on Windows"),
]
KILLS = int(os.environ.get("LOCALRUN_KILLS", "12"))
STORY = "Tell me a story about a fox."
STORY_TOKENS = 110  # about
LOADING = 90.0  # seconds; other tests may run beside it
ALIVE = 2.0  # seconds for a key to show


def test_the_app_outlives_its_engine_wherever_that_dies(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "STOPPED_SECONDS", 0.5)
    rng = random.Random(KILLS)
    ends: Counter[str] = Counter()
    app = LocalrunApp(start.open_client, lambda: ChatStore(home / "chats"), builtin)

    async def steps(pilot: Pilot[Any]) -> None:
        await until(pilot, lambda: app.session.info, LOADING)
        await ask(pilot, STORY)
        for number in range(KILLS):
            hurt = signal.SIGSTOP if number % 2 else signal.SIGKILL
            ends[await round_of(pilot, app, hurt, rng.uniform(0.0, 2 * whole_answer(app)))] += 1
            assert app.session.chat is not None
            check_kept(ChatStore(home / "chats").open(app.session.chat.id).tree.messages(), app.session.turn)

    drive(app, steps)
    print(dict(ends))  # for those who run many, with -s
    assert ends.total() == KILLS
    assert ends["half"] >= KILLS // 6, f"many die while they talk: {ends}"


async def round_of(pilot: Pilot[Any], app: LocalrunApp, hurt: signal.Signals, delay: float) -> str:
    """Ask in a new chat, hurt the engine after `delay`, and see the app go on. Gives what came of the answer."""
    session, screen = app.session, chat_screen(pilot)
    await pilot.press("ctrl+n")
    await until(pilot, lambda: not views(pilot))
    before, pid = session.turn, engine_of(app)
    hurting = threading.Thread(target=hurt_later, args=(app, pid, hurt, delay))
    hurting.start()
    await send(pilot, STORY)
    await until(pilot, lambda: session.turn is not before and not hurting.is_alive())
    turn = session.turn
    assert turn is not None
    await see_that_keys_work(pilot)
    await until(pilot, lambda: turn.over and screen.path.live is None)
    end = check_half(pilot, turn)
    await ask_again(pilot, app)
    assert not is_there(pid), "the one that was hurt is gone"
    return end


def hurt_later(app: LocalrunApp, pid: int, hurt: signal.Signals, delay: float) -> None:
    """On a thread of its own, since the screen takes its time."""
    before = app.session.turn
    while app.session.turn is before:
        time.sleep(0.001)
    time.sleep(delay)
    os.kill(pid, hurt)


def whole_answer(app: LocalrunApp) -> float:
    """Seconds that the story took, or would take, by the figures of the last answer."""
    turn = app.session.turn
    assert turn is not None
    assert turn.done is not None
    done = turn.done.completion
    return done.timings.ttft_ms / 1000 + STORY_TOKENS / (done.timings.decode_tps or 1.0)


def engine_of(app: LocalrunApp) -> int:
    client = app.session.model.client
    assert isinstance(client, WorkerClient)
    assert client._worker is not None
    assert client._worker.pid is not None
    return client._worker.pid


async def see_that_keys_work(pilot: Pilot[Any]) -> None:
    editor = chat_screen(pilot).composer.editor
    began = time.monotonic()
    await pilot.press("o", "k")
    assert editor.text == "ok"
    assert time.monotonic() - began < ALIVE
    await pilot.press("ctrl+u")
    assert editor.text == ""


def check_half(pilot: Pilot[Any], turn: Turn) -> str:
    """What the screen and the chat say of an answer whose engine was hurt."""
    if turn.done is not None:
        assert turn.error is None
        return "whole"
    assert isinstance(turn.error, EngineDiedError)
    if turn.kept is None:
        assert turn.text == ""
        assert turn.error.message in notice(pilot)
        return "nothing"
    assert turn.kept.interrupted
    assert turn.kept.text == turn.text != ""
    assert "⚠ cut off" in text_of(views(pilot)[-1])
    return "half"


async def ask_again(pilot: Pilot[Any], app: LocalrunApp) -> None:
    """The next message starts the engine again, and is answered whole."""
    before = app.session.turn
    await send(pilot, "Hello!")
    await until(pilot, lambda: app.session.turn is not before and not app.session.answering, LOADING)
    await until(pilot, lambda: chat_screen(pilot).path.live is None)
    turn = app.session.turn
    assert turn is not None
    assert turn.error is None
    assert turn.done is not None
    assert turn.text


def check_kept(messages: list[Message], last: Turn | None) -> None:
    """What another program reads in the chat: both questions, and of both answers all that was shown."""
    assert last is not None
    shown = last.chat.tree.messages()
    assert [(one.role, one.text, one.interrupted) for one in messages] == [
        (one.role, one.text, one.interrupted) for one in shown
    ]
    assert [one.text for one in messages if one.role == "user"] == [STORY, "Hello!"]


def is_there(pid: int) -> bool:
    """Whether it runs, or is stopped."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
