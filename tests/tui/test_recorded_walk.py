"""From the first start to the second by keys alone, in a small and in a larger terminal. Every screen is kept as text:
`screens.txt` in the folder of the test.
"""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from localrun_testing.hub_to_unplug import HubProcess
from localrun_testing.terminal import Terminal

from localrun.chat.journal import ChatStore
from localrun.hub.catalogue import BUILTIN
from localrun.hub.resolve import resolve

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux: not this OS (windows)"),
]
FOREIGN = ("LOCALRUN_", "HF_", "HUGGING_FACE_", "XDG_", "OLLAMA_")
LONGEST_ANSWER = 16  # tokens: a story is longer
SIZES = {"80x24": (80, 24), "120x40": (120, 40)}


@pytest.fixture
def hub() -> Iterator[HubProcess]:
    process = HubProcess(resolve(BUILTIN).path)
    yield process
    process.close()


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """The home of somebody who never had localrun, with a file to attach."""
    folder = tmp_path / "user"
    folder.mkdir()
    (folder / "notes.md").write_text("The fox is called Ada.\n")
    return folder


@pytest.fixture(params=SIZES)
def terminal(request: pytest.FixtureRequest, tmp_path: Path, user: Path, hub: HubProcess) -> Iterator[Terminal]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    environment |= {"HOME": str(user), "HF_ENDPOINT": hub.url, "HF_HUB_OFFLINE": "0"}
    terminal = Terminal(tmp_path, user, environment, size=SIZES[request.param])
    yield terminal
    terminal.close()


def test_the_walk(terminal: Terminal, hub: HubProcess, user: Path) -> None:
    terminal.start()
    model = get_the_recommended_model(terminal, hub, user)
    chat(terminal, user)
    set_numbers(terminal)
    attach(terminal, user)
    edit(terminal, user)
    compare(terminal)
    go_on(terminal, user)
    rename(terminal)
    find(terminal)
    settings_and_help(terminal)
    terminal.press("C-q")
    terminal.until_ended()
    terminal.start()
    reopen(terminal, model)
    remembered(user)


def get_the_recommended_model(terminal: Terminal, hub: HubProcess, user: Path) -> str:
    """By one key; the built-in model answers meanwhile. Gives its title."""
    terminal.see("Get ")
    terminal.see("to download; the small model answers")
    title = next(line.split("Get ")[1].strip() for line in terminal.text().splitlines() if "Get " in line)
    hub.tell("rate 300000")
    terminal.press("Home")  # what was highlighted before stays so
    terminal.press("Enter", "⏎ Choose")
    terminal.see("builtin Q8_0")
    terminal.see("F8")
    say(terminal, user, "Hello!")
    terminal.press("F8")
    terminal.see("space Pause/resume")
    terminal.press("Space")
    terminal.see("paused")
    hub.tell("rate 0")
    terminal.press("Space")
    terminal.see("done and checked")
    terminal.press("Escape", "esc Back")
    terminal.until_gone("done and checked")
    terminal.see(f"{title} Q4_K_M")
    return title


def chat(terminal: Terminal, user: Path) -> None:
    terminal.press("C-n")
    terminal.see("Ask anything.")
    say(terminal, user, "What is 3 plus 4?")


def set_numbers(terminal: Terminal) -> None:
    """Numbers of the chat's own, and one out of range."""
    terminal.press("C-s")
    terminal.see("Longest answer")
    terminal.press("Tab")
    terminal.press("Tab")
    terminal.see("a number from 0 to 2")
    terminal.type("5")
    terminal.see("a number from 0 to 2 is needed")
    terminal.press("BSpace")
    terminal.type("0.2")
    terminal.press("Tab")
    terminal.see("likeliest tokens of this mass")
    terminal.press("Tab")
    terminal.see("longest answer in tokens")
    terminal.type(str(LONGEST_ANSWER))
    terminal.press("C-s")
    terminal.until_gone("Longest answer")


def attach(terminal: Terminal, user: Path) -> None:
    terminal.press("C-t")
    terminal.see("Attach")
    terminal.type("notes.md")
    terminal.press("Enter")
    terminal.see("▤ notes.md")
    say(terminal, user, "Tell me a story about a fox.")


def edit(terminal: Terminal, user: Path) -> None:
    """Another question, as a branch."""
    terminal.type("/edit ")
    terminal.press("Enter")
    terminal.see("Enter sends it as a new branch")
    for _ in "fox.":
        terminal.press("BSpace")
    with one_more_answer(terminal, user):
        terminal.type("bear.")
        terminal.press("Enter", "⏎ Send")
    terminal.see("‹ 2/2 ›")


def compare(terminal: Terminal) -> None:
    """Both branches side by side, of which the first is taken."""
    terminal.type("/compare ")
    terminal.press("Enter")
    terminal.see("Versions side by side")
    terminal.see("story about a fox.")  # that of the bear is below, in the chat
    assert any("bear." in line and "fox." in line for line in terminal.text().splitlines())
    terminal.press("Enter", "Enter: the one on the right")
    terminal.until_gone("Versions side by side")
    terminal.see("‹ 1/2 ›")


def go_on(terminal: Terminal, user: Path) -> None:
    """An answer that was cut is gone on with, as a version beside it."""
    terminal.see("◼ ended at the longest answer")
    with one_more_answer(terminal, user):
        terminal.type("/continue")
        terminal.press("Enter")
    terminal.until(lambda: terminal.text().count("/2 ›") == 2, "no second version of the answer")


def rename(terminal: Terminal) -> None:
    terminal.press("F2")
    terminal.see("Title of this chat")
    terminal.press("C-u")
    terminal.type("Foxes and sums")
    terminal.press("Enter", "Enter accepts")
    terminal.see("◆ Foxes and sums")


def find(terminal: Terminal) -> None:
    terminal.press("C-f")
    terminal.see("Find in this chat")
    terminal.type("plus")
    terminal.see("1 of 1")
    terminal.see("What is 3 plus 4?")
    terminal.press("Escape", "esc Done")
    terminal.until_gone("esc Done")


def settings_and_help(terminal: Terminal) -> None:
    """Screens that a newcomer looks at once."""
    for key, words in (("F1", "Keys and commands"), ("F3", "/ search"), ("C-o", "On disk"), ("C-g", "Last answer")):
        terminal.press(key)
        terminal.see(words)
        terminal.press("C-g" if key == "C-g" else "Escape")
        terminal.until_gone(words)


def reopen(terminal: Terminal, title: str) -> None:
    """The last model is there, the chat is found, and both go on."""
    terminal.see("is ready")
    terminal.see(f"{title} Q4_K_M")
    terminal.press("C-l", "^l Chats")
    terminal.see("Today")
    terminal.see("Foxes and sums")
    terminal.press("/", "/ Find")
    terminal.type("sums")
    terminal.see("1 found")
    terminal.press("Enter")
    terminal.see("◆ Foxes and sums")
    terminal.see("about a fox.")


def remembered(user: Path) -> None:
    store = ChatStore(chats_of(user))
    named = next(one for one in store.summaries() if one.title == "Foxes and sums")
    own, tree = store.open(named.id).own, store.open(named.id).tree
    assert own["precision"] == "Q4_K_M"
    assert own["temperature"] == 0.2
    about_fox = next(one for one in tree.messages() if "about a fox." in one.text)
    cut, longer = (one for one in tree.messages() if one.parent == about_fox.id)
    assert cut.stats["stop_reason"] == "length"
    assert longer.text.startswith(cut.text)
    assert len(longer.text) > len(cut.text)


def say(terminal: Terminal, user: Path, text: str) -> None:
    with one_more_answer(terminal, user):
        terminal.type(text)
        terminal.press("Enter", "⏎ Send")
        terminal.see(text)


@contextmanager
def one_more_answer(terminal: Terminal, user: Path) -> Iterator[None]:
    """Does what is asked for, and waits until its answer is kept."""
    before = n_answers(user)
    yield
    terminal.until(lambda: n_answers(user) > before, "no end of the answer")
    terminal.until(lambda: "esc Stop" not in terminal.text() and "tok/s" in terminal.text(), "no figures of the answer")


def n_answers(user: Path) -> int:
    """How many are on disk, in all chats."""
    records = (
        json.loads(line) for file in user.rglob("chats/*.jsonl") for line in file.read_text().splitlines() if line
    )
    return sum(record["kind"] == "message" and record["role"] == "assistant" for record in records)


def chats_of(user: Path) -> Path:
    return next(path.parent for path in user.rglob("chats/*.jsonl"))
