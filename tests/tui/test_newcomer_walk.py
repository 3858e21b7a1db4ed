"""A newcomer's first day, by keys alone, each of them named on the screen where it is pressed."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from localrun_testing.hub_process import REPO, model_files
from localrun_testing.hub_to_unplug import HubProcess
from localrun_testing.terminal import Terminal

from localrun.chat.journal import ChatStore
from localrun.hub.catalogue import BUILTIN
from localrun.hub.resolve import resolve

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux: not this OS (windows)"),
]
MIB = 1 << 20
FOREIGN = ("LOCALRUN_", "HF_", "HUGGING_FACE_", "XDG_", "OLLAMA_")


@pytest.fixture
def hub() -> Iterator[HubProcess]:
    process = HubProcess(resolve(BUILTIN).path)
    yield process
    process.close()


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """The home of somebody who never had localrun."""
    folder = tmp_path / "user"
    folder.mkdir()
    return folder


@pytest.fixture
def terminal(tmp_path: Path, user: Path, hub: HubProcess) -> Iterator[Terminal]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    terminal = Terminal(tmp_path, user, {**environment, "HOME": str(user), "HF_ENDPOINT": hub.url})
    yield terminal
    terminal.close()


def test_a_newcomers_walk(terminal: Terminal, hub: HubProcess, user: Path) -> None:
    terminal.start()
    find_a_model_and_begin_to_download(terminal, hub)
    lose_the_network_and_the_app(terminal, hub)
    finish_the_download(terminal, hub, user)
    chat_three_turns(terminal, user)
    edit_and_walk_branches(terminal, user)
    terminal.press("C-q", "^q Quit")
    terminal.until_ended()
    terminal.start()
    find_it_again(terminal)
    export(terminal, user)


def find_a_model_and_begin_to_download(terminal: Terminal, hub: HubProcess) -> None:
    terminal.see("Welcome to localrun")
    terminal.see("Choose a model")
    terminal.see("to download; the small model answers")  # "Get …" is above by now
    terminal.press("Down", "↑↓ Move")
    terminal.press("Enter", "⏎ Choose")
    terminal.press("Right", "←→ Section")
    terminal.see("Press / and type")
    terminal.press("/", "/ Filter")
    terminal.see("⏎ To the list")
    terminal.type("pocket")
    terminal.see(REPO)
    terminal.press("Enter", "⏎ To the list")
    terminal.press("Enter", "⏎ Choose")
    terminal.see("F16")
    hub.tell("rate 400000")
    terminal.press("Down")
    terminal.press("Enter", "⏎ Choose")
    terminal.see(f"Download {REPO} F16?")
    terminal.press("y", "(y)")
    terminal.see("pocket-chat-GGUF F16")


def lose_the_network_and_the_app(terminal: Terminal, hub: HubProcess) -> None:
    terminal.until(lambda: arrived(terminal) >= 1.0, "nothing arrives")
    hub.tell("cut")
    terminal.see("trying again")
    before = arrived(terminal)
    hub.tell("mend")
    terminal.until(lambda: arrived(terminal) >= before + 1.0, "it does not go on")
    terminal.kill()


def arrived(terminal: Terminal) -> float:
    """MiB, as the screen says."""
    found = re.search(r"([\d.]+) MiB of ", terminal.text())
    return float(found[1]) if found else 0.0


def finish_the_download(terminal: Terminal, hub: HubProcess, user: Path) -> None:
    hub.tell("rate 0")
    terminal.start()
    terminal.see("Go on with pocket-chat-GGUF F16")
    terminal.press("Home")  # on a busy machine it came above what was highlighted by then
    terminal.press("Enter", "⏎ Choose")
    terminal.see("Enter goes on where it stopped")
    terminal.press("Enter")
    terminal.see("done and checked")
    content = model_files(resolve(BUILTIN).path)["pocket-chat-F16.gguf"]
    assert [path.read_bytes() for path in user.rglob("pocket-chat-F16.gguf")] == [content]
    assert hub.sent() <= len(content) + 4 * MIB, "what had arrived is not fetched again"
    terminal.press("Enter", "Enter loads it")
    terminal.see("is ready")


def chat_three_turns(terminal: Terminal, user: Path) -> None:
    for turn, question in enumerate(("Hello!", "What is 3 plus 4?", "Tell me a story about a fox.")):
        terminal.type(question)
        terminal.press("Enter", "⏎ Send")
        until_said(terminal, user, 2 * turn + 2)
    terminal.see("tok/s")


def edit_and_walk_branches(terminal: Terminal, user: Path) -> None:
    terminal.press("C-Up", "↑ Messages")
    terminal.see("r Again")
    terminal.press("Up")
    terminal.press("e", "e Edit")
    terminal.see("Enter sends it as a new branch")
    for _ in "fox.":
        terminal.press("BSpace")
    terminal.type("bear.")
    terminal.press("Enter", "⏎ Send")
    until_said(terminal, user, 8)
    terminal.see("‹ 2/2 ›")
    terminal.press("C-Up", "↑ Messages")
    terminal.see("r Again")
    terminal.press("Up")
    terminal.press("Left", "←→ Branch")
    terminal.see("about a fox.")
    terminal.see("‹ 1/2 ›")
    terminal.press("Right", "←→ Branch")
    terminal.see("about a bear.")
    terminal.press("Down", "←→ Branch")
    terminal.until_gone("←→ Branch")  # down at the answer, of which there is one
    terminal.press("r", "r Again")
    until_said(terminal, user, 9)
    terminal.until(lambda: terminal.text().count("‹ 2/2 ›") == 2, "no second answer")


def until_said(terminal: Terminal, user: Path, n_messages: int) -> None:
    """Until so many messages are on disk, and the screen has nothing to stop any more."""

    def is_so() -> bool:
        found = ChatStore(chats_of(user)).summaries()
        return bool(found) and found[0].n_messages >= n_messages and "esc Stop" not in terminal.text()

    terminal.until(is_so, f"not {n_messages} messages")


def chats_of(user: Path) -> Path:
    return next((path.parent for path in user.rglob("*.jsonl") if path.parent.name == "chats"), user / "none")


def find_it_again(terminal: Terminal) -> None:
    terminal.see("Ask anything.")
    terminal.see("is ready")  # the model last used
    terminal.press("C-l", "^l Chats")
    terminal.press("/", "/ Find")
    terminal.see("⏎ Open the first")
    terminal.type("fox")
    terminal.see("1 found")
    terminal.press("Enter", "⏎ Open the first")
    terminal.see("about a fox.")  # on the branch that was left
    terminal.press("Escape", "esc Back")


def export(terminal: Terminal, user: Path) -> None:
    terminal.press("C-l", "^l Chats")
    terminal.press("x", "x Export")
    terminal.press("Enter", "Enter choose")
    terminal.press("Enter", "Enter accepts")
    terminal.see("Exported")
    text = (user / "hello.md").read_text("utf-8")
    store = ChatStore(chats_of(user))
    tree = store.open(store.summaries()[0].id).tree
    said = [message.text for message in tree.path(tree.head)]
    assert said[::2] == ["Hello!", "What is 3 plus 4?", "Tell me a story about a fox."]
    assert len(said) == text.count("\n## ") == 6
    assert all(one and one in text for one in said)
    assert "bear" not in text
