"""How fast the app is: the first frame, a key while an answer streams into a long chat, and what drawing costs.

    python -m benchmarks.app_speed [--rounds 5] [--messages 300] [--rate 100] [--seconds 10] [--model FILE]

`first frame`: from starting `localrun` on a terminal of its own to its first words on the screen. `key`: from a key
press to the frame that shows it, while an answer arrives at --rate tokens a second in a chat of --messages messages.
`drawing`: the processor time that the app takes meanwhile, as a share of one core, with a drawing every so often.

With --model, also `beside run`: the same answer by `localrun run` and in the app, in turn; what the app costs the
engine is the median over pairs. `the app`: its own processor time while that answer comes, without the engine's.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from localrun_testing.scripted_client import ANSWER, Script, ScriptedClient, opener

from benchmarks.app_terminal import AppTerminal, environ
from localrun.base.content import as_content
from localrun.chat.journal import ChatStore
from localrun.client.choice import ModelChoice
from localrun.hub.disk.stored import StoredModel
from localrun_tui.app import LocalrunApp
from localrun_tui.screens.chat.editor import Editor
from localrun_tui.screens.chat.live_answer import LiveAnswer

PARAGRAPHS = ANSWER + "\n"
FIRST_WORDS = b"Ask anything"
FIRST_RUN = b"Welcome to"  # where there was none yet
ANSWER_TOKENS = 200
PROMPT = "Tell me about number {}."
SETTLED_SECONDS = 3.0  # after the start and before the first message: the model is loaded by then


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--messages", type=int, default=300)
    parser.add_argument("--rate", type=float, default=100.0, help="tokens a second")
    parser.add_argument("--seconds", type=float, default=10.0, help="that the answer streams, more than 2")
    parser.add_argument("--model", type=Path, help="a GGUF file, for `beside run`")
    options = parser.parse_args()
    if options.seconds <= 2:
        parser.error("keys are pressed for --seconds less 2: give more")
    first_frame()  # compiles what is not compiled yet
    frames = sorted(first_frame() for _ in range(options.rounds))
    took, cpu = statistics.median(frame[0] for frame in frames), statistics.median(frame[1] for frame in frames)
    print(f"first frame     {took:6.2f} s median of {options.rounds}, best {frames[0][0]:.2f} s; {cpu:.2f} s of a core")
    asyncio.run(stream(options.messages, options.rate, options.seconds))
    if options.model:
        beside_run(options.model, options.rounds)


def first_frame() -> tuple[float, float]:
    """Seconds from the start of a process to the first words of the app on its terminal, and those it computed."""
    with tempfile.TemporaryDirectory() as home:
        began = time.monotonic()
        terminal = AppTerminal(Path(home))
        terminal.wait_for(FIRST_RUN)
        return time.monotonic() - began, terminal.kill()


class Streamed(NamedTuple):
    """One answer in the app."""

    tps: float
    share: float  # of a core that the app took while it came
    idle: float  # and before


def beside_run(model: Path, rounds: int) -> None:
    """The same prompts by `localrun run` and in the app, each first in every other round."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        for setting in (("max_tokens", str(ANSWER_TOKENS)), ("temperature", "0")):
            localrun(home, "config", *setting)
        plain: list[float] = []
        answers: list[Streamed] = []
        for number in range(rounds):
            prompt = PROMPT.format(number)
            if number % 2:
                plain.append(by_run(home, model, prompt))
            answers.append(in_the_app(home, model, prompt))
            if not number % 2:
                plain.append(by_run(home, model, prompt))
    slower = statistics.median(1 - answer.tps / tps for tps, answer in zip(plain, answers, strict=True))
    app = statistics.median(answer.tps for answer in answers)
    print(f"beside run      {app:6.1f} tok/s against {statistics.median(plain):.1f}: {slower:.1%} slower, of {rounds}")
    share, idle = (statistics.median(column) for column in list(zip(*answers, strict=True))[1:])
    print(f"the app         {share:6.1%} of a core while an answer comes, {idle:.1%} idle")


def localrun(home: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "localrun", *arguments]
    return subprocess.run(command, env=environ(home), capture_output=True, text=True, check=True).stdout


def by_run(home: Path, model: Path, prompt: str) -> float:
    """Tokens a second."""
    return float(json.loads(localrun(home, "run", "--no-stdin", "--json", "-m", str(model), prompt))["decode_tps"])


def in_the_app(home: Path, model: Path, prompt: str) -> Streamed:
    """In an app of its own; which tokens came when is taken from the chat that it wrote."""
    terminal = AppTerminal(home, "tui", "-m", str(model))
    terminal.wait_for(FIRST_WORDS)
    time.sleep(SETTLED_SECONDS)
    began = terminal.processor_seconds()
    time.sleep(1.0)
    idle = terminal.processor_seconds() - began
    terminal.press(prompt)
    time.sleep(0.3)
    terminal.press("\r")
    seen: list[tuple[float, float]] = []
    chats = ChatStore(home / "chats")
    while True:
        seen.append((time.time(), terminal.processor_seconds()))
        time.sleep(0.25)  # often enough; looking takes a core from the engine, too
        newest = chats.summaries()[:1]
        if newest and newest[0].n_messages == 2:
            break
    terminal.kill()
    chat = chats.open(newest[0].id)
    answer = chat.tree[chat.tree.head or ""]
    chats.erase(chat.id)
    first = answer.created - answer.stats["decode_ms"] / 1000
    during = [sample for sample in seen if first < sample[0] < answer.created]
    (t0, cpu0), (t1, cpu1) = during[0], during[-1]
    return Streamed(answer.stats["decode_tps"], (cpu1 - cpu0) / (t1 - t0), idle)


async def stream(n_messages: int, rate: float, seconds: float) -> None:
    """Keys and processor time while an answer streams."""
    text = PARAGRAPHS * (int(rate * seconds * 4 / len(PARAGRAPHS)) + 2)
    client = ScriptedClient([Script(text, delay=1 / rate)])
    app = LocalrunApp(
        opener(client), lambda: ChatStore(None), lambda: ModelChoice(StoredModel("m", "", Path(), 1, "gguf", "hub"))
    )
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.5)
        chat = await app.session.new_chat()
        for n in range(n_messages // 2):
            chat.add_answer(chat.add_user(f"question {n}").id, PARAGRAPHS)
        began = time.monotonic()
        await app.session.open_chat(chat.id)
        await pilot.pause()
        print(f"open a chat     {(time.monotonic() - began) * 1000:6.0f} ms with {n_messages} messages")
        await app.session.send(as_content("and now?"))
        await pilot.pause(1.0)
        editor = app.screen.query_one(Editor)
        keys: list[float] = []
        tokens = app.session.turn.n_tokens if app.session.turn else 0
        drawings = count_drawings()
        cpu, wall = time.process_time(), time.monotonic()
        while time.monotonic() - wall < seconds - 2:
            keys.append(await press(app, editor, "x"))
            await asyncio.sleep(0.1)
        took = time.monotonic() - wall
        busy, drawn = (time.process_time() - cpu) / took, len(drawings) / took
        came = (app.session.turn.n_tokens - tokens) / took if app.session.turn else 0.0
        turn, app.session.turn = app.session.turn, None
        if turn is not None:
            turn.cancel()
    late = sorted(keys)[int(len(keys) * 0.95)]
    print(f"key to screen   {late * 1000:6.1f} ms p95, {statistics.median(keys) * 1000:.1f} ms median of {len(keys)}")
    print(f"drawing         {busy:6.0%} of a core for {drawn:.0f}/s; {came:.0f} of {rate:.0f} tokens/s arrived")


def count_drawings() -> list[float]:
    """Grows by one whenever an answer on its way is drawn."""
    drawings: list[float] = []
    draw = LiveAnswer.draw

    def counted(live: LiveAnswer) -> float:
        drawings.append(time.monotonic())
        return draw(live)

    LiveAnswer.draw = counted  # type: ignore[assignment, method-assign]
    return drawings


async def press(app: LocalrunApp, editor: Editor, key: str) -> float:
    """Seconds from a key event to the next frame after the editor has taken it."""
    from textual.events import Key

    began, before = time.monotonic(), len(editor.text)
    app.post_message(Key(key, key))
    while len(editor.text) == before:
        await asyncio.sleep(0)
    shown = asyncio.Event()
    app.screen.call_after_refresh(shown.set)
    await shown.wait()
    return time.monotonic() - began


if __name__ == "__main__":
    main()
