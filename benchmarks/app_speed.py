"""How fast the app is: the first frame, a key while an answer streams into a long chat, and what drawing costs.

    python benchmarks/app_speed.py [--rounds 5] [--messages 300] [--rate 100] [--seconds 10]

`first frame`: from starting `localrun` on a terminal of its own to its first words on the screen. `key`: from a key
press to the frame that shows it, while an answer arrives at --rate tokens a second in a chat of --messages messages.
`drawing`: the processor time that the app takes meanwhile, as a share of one core.
"""

import argparse
import asyncio
import fcntl
import os
import pty
import select
import statistics
import struct
import sys
import tempfile
import termios
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tui"), str(ROOT / "tests" / "support")]

from localrun_testing.scripted_client import ANSWER, Script, ScriptedClient, opener  # noqa: E402
from localrun_tui.app import LocalrunApp  # noqa: E402
from localrun_tui.choice import Choice  # noqa: E402
from localrun_tui.composer import Editor  # noqa: E402

from localrun.chat.journal import ChatStore  # noqa: E402
from localrun.hub.stored import StoredModel  # noqa: E402

PARAGRAPHS = ANSWER + "\n"
FIRST_WORDS = b"Ask anything"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--messages", type=int, default=300)
    parser.add_argument("--rate", type=float, default=100.0, help="tokens a second")
    parser.add_argument("--seconds", type=float, default=10.0, help="that the answer streams")
    options = parser.parse_args()
    frames = sorted(first_frame() for _ in range(options.rounds))
    took, cpu = statistics.median(frame[0] for frame in frames), statistics.median(frame[1] for frame in frames)
    print(f"first frame     {took:6.2f} s median of {options.rounds}, best {frames[0][0]:.2f} s; {cpu:.2f} s of a core")
    asyncio.run(stream(options.messages, options.rate, options.seconds))


def first_frame() -> tuple[float, float]:
    """Seconds from the start of a process to the first words of the app on its terminal, and those it computed."""
    with tempfile.TemporaryDirectory() as home:
        environ = {
            **os.environ,
            "LOCALRUN_HOME": home,
            "TERM": "xterm-256color",
            "PYTHONPATH": f"{ROOT}:{ROOT / 'tui'}",
        }
        began = time.monotonic()
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(sys.executable, [sys.executable, "-m", "localrun"], environ)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        seen = b""
        while FIRST_WORDS not in seen:
            if not select.select([terminal], [], [], 30.0)[0]:
                raise SystemExit("the app did not come up")
            seen += os.read(terminal, 65536)
        took = time.monotonic() - began
        os.kill(pid, 9)
        os.close(terminal)
        used = os.wait4(pid, 0)[2]
    return took, used.ru_utime + used.ru_stime


async def stream(n_messages: int, rate: float, seconds: float) -> None:
    """Keys and processor time while an answer streams."""
    text = PARAGRAPHS * (int(rate * seconds * 4 / len(PARAGRAPHS)) + 2)
    client = ScriptedClient([Script(text, delay=1 / rate)])
    app = LocalrunApp(
        opener(client), lambda: ChatStore(None), lambda: Choice(StoredModel("m", "", Path(), 1, "gguf", "hub"))
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
        await app.session.send("and now?")
        await pilot.pause(1.0)
        editor = app.screen.query_one(Editor)
        keys: list[float] = []
        cpu, wall, tokens = time.process_time(), time.monotonic(), app.session.turn.n_tokens if app.session.turn else 0
        while time.monotonic() - wall < seconds - 2:
            keys.append(await press(app, editor, "x"))
            await asyncio.sleep(0.1)
        busy = (time.process_time() - cpu) / (time.monotonic() - wall)
        came = (app.session.turn.n_tokens - tokens) / (time.monotonic() - wall) if app.session.turn else 0.0
        app.session.turn = None
        client.cancel()
    late = sorted(keys)[int(len(keys) * 0.95)]
    print(f"key to screen   {late * 1000:6.1f} ms p95, {statistics.median(keys) * 1000:.1f} ms median of {len(keys)}")
    print(f"drawing         {busy:6.0%} of a core, {came:.0f} tokens/s arrived (asked for {rate:.0f})")


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
