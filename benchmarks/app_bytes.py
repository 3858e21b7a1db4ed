"""What an answer costs on the line to a terminal: bytes that the app draws for each byte of text that streams in.

    python -m benchmarks.app_bytes [--rate 100] [--seconds 10] [--columns 120] [--lines 40]

An answer of plain paragraphs arrives at --rate tokens a second in the app on a terminal of its own, of that size. What
is drawn while it streams, from its second second on, is counted and held against the text that came. Over ssh every
byte counts.
"""

import argparse
import fcntl
import os
import pty
import random
import re
import struct
import termios
import threading
import time
from pathlib import Path

TEXT = """the keys and values of every token that was read stay in a cache so new ones only have to be compared with
them nothing is computed twice unless some text before it was changed what no longer matters makes room for others"""
WORDS = TEXT.split()
PARAGRAPH_WORDS = 70
_MARK = re.compile(rb"\x1b\]9999;(\d+)\x07")  # ours, which no terminal obeys: characters that had come by then
_SETTLED_SECONDS = 1.0  # of the answer: what is drawn when it begins is drawn once, however long it is


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", type=float, default=100.0, help="tokens a second")
    parser.add_argument("--seconds", type=float, default=10.0, help="that the answer streams")
    parser.add_argument("--columns", type=int, default=120)
    parser.add_argument("--lines", type=int, default=40)
    options = parser.parse_args()
    text = text_for(options.rate, options.seconds)
    drawn, came = drawn_bytes(text, options.rate, options.columns, options.lines)
    print(f"{drawn:,} bytes drawn for {came:,} bytes of text: {drawn / came:.2f} a byte")


def text_for(rate: float, seconds: float) -> str:
    """So much text in tokens of four characters."""
    choose, n_characters, words = random.Random(0), int(rate * seconds) * 4, []
    while sum(map(len, words)) < n_characters:
        words.append(choose.choice(WORDS) + ("\n\n" if len(words) % PARAGRAPH_WORDS == PARAGRAPH_WORDS - 1 else " "))
    return "".join(words)[:n_characters]


def drawn_bytes(text: str, rate: float, columns: int, lines: int) -> tuple[int, int]:
    """Bytes that the app draws while `text` streams in, on a terminal of this size, and bytes of it that came."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ |= {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
        run_app(text, rate)
        os._exit(0)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    drawn = bytearray()
    try:
        while data := os.read(terminal, 1 << 16):
            drawn += data
    except OSError:  # it has ended
        pass
    os.waitpid(pid, 0)
    os.close(terminal)
    marks = list(_MARK.finditer(drawn))
    if len(marks) != 2:
        raise SystemExit(f"the app did not stream: {bytes(drawn[-500:])!r}")
    began, ended = marks
    return ended.start() - began.end(), int(ended[1]) - int(began[1])


def run_app(text: str, rate: float) -> None:
    """The app with an answer that streams in at this rate, until that is over."""
    from localrun_testing.scripted_client import Script, ScriptedClient, opener

    from localrun.base.content import as_content
    from localrun.chat.journal import ChatStore
    from localrun.client.choice import ModelChoice
    from localrun.hub.disk.stored import StoredModel
    from localrun_tui.app import LocalrunApp

    client = ScriptedClient([Script(text, delay=1 / rate)])
    choice = ModelChoice(StoredModel("m", "", Path(), 1, "gguf", "hub"))
    app = LocalrunApp(opener(client), lambda: ChatStore(None), lambda: choice)

    def play() -> None:
        while app.session.info is None:
            time.sleep(0.05)
        app.call_from_thread(app.session.send, as_content("How does the cache work?"))
        while (turn := app.session.turn) is None or not turn.n_tokens:
            time.sleep(0.005)
        time.sleep(_SETTLED_SECONDS)
        mark(len(turn.text))
        while len(turn.text) < len(text) - rate:  # its end is drawn once, too
            time.sleep(0.02)
        mark(len(turn.text))
        app.call_from_thread(app.exit)

    def mark(n_characters: int) -> None:
        driver = app._driver
        assert driver is not None
        driver.write(f"\x1b]9999;{n_characters}\x07")

    threading.Thread(target=play, daemon=True).start()
    app.run()


if __name__ == "__main__":
    main()
