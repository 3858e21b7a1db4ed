"""The app in a process of its own, for tests that kill it: it tells on a pipe what it has shown as kept.

`python -m localrun_testing.app_to_kill FD MODEL CHAT`: MODEL is `builtin`, or `counting` for a worker without one; CHAT
is the chat to go on with, or empty. Each line is `ready CHAT`, `loaded CHAT` or `kept CHAT MESSAGE TEXT`.
"""

import os
import sys
from pathlib import Path

from textual.message import Message

import localrun_tui
from localrun.base.request import LoadOptions, ProgressCallback, Request
from localrun.chat.tree import Message as ChatMessage
from localrun.client.choice import ModelChoice, builtin
from localrun.client.interface import EngineClient, Generation
from localrun.client.worker.client import WorkerClient
from localrun.hub.disk.stored import StoredModel
from localrun_tui import start
from localrun_tui.app import LocalrunApp
from localrun_tui.state.messages import ChatChanged

ANSWER = Request(prompt="count 40 0.005")


class Counting(WorkerClient):
    """Answers everything with numbers, slowly enough to be killed meanwhile."""

    def generate(self, request: Request) -> Generation:
        return super().generate(ANSWER)


class TellingApp(LocalrunApp):
    """Tells of every message once the app takes it for kept."""

    CSS_PATH = [Path(localrun_tui.__path__[0]) / name for name in LocalrunApp.CSS_PATH]  # noqa: RUF012

    def __init__(self, fd: int, model: str, chat_id: str) -> None:
        real = model == "builtin"
        choice = ModelChoice(StoredModel(model, "", Path(model), 1, "gguf", "path"))
        super().__init__(
            start.open_client if real else open_counting, start.open_store, builtin if real else lambda: choice
        )
        self._fd = fd
        self._chat_id = chat_id
        self._told: set[str] = set()
        self._is_loaded = False

    async def on_ready(self) -> None:
        if self._chat_id:
            await self.session.open_chat(self._chat_id)
        else:
            await self.session.new_chat()
        assert self.session.chat is not None
        self._say(f"ready {self.session.chat.id}")
        self.set_interval(0.01, self._look)

    def _tell(self, message: Message) -> None:
        """After a ChatChanged the user's message is on the screen."""
        chat = self.session.chat
        if isinstance(message, ChatChanged) and chat is not None and chat.tree.head is not None:
            self._say_kept(chat.tree[chat.tree.head])
        super()._tell(message)

    def _look(self) -> None:
        chat = self.session.chat
        if self.session.info is not None and chat is not None and not self._is_loaded:
            self._is_loaded = True
            self._say(f"loaded {chat.id}")
        turn = self.session.turn
        if turn is not None and turn.over and turn.kept is not None:
            self._say_kept(turn.kept)

    def _say_kept(self, message: ChatMessage) -> None:
        if message.id not in self._told and self.session.chat is not None:
            self._told.add(message.id)
            self._say(f"kept {self.session.chat.id} {message.id} {message.text!r}")

    def _say(self, line: str) -> None:
        os.write(self._fd, f"{line}\n".encode())


def open_counting(choice: ModelChoice, progress: ProgressCallback) -> EngineClient:
    return Counting(LoadOptions(Path("x"), name=choice.stored.name), progress, "localrun_testing.fake_worker")


if __name__ == "__main__":
    TellingApp(int(sys.argv[1]), sys.argv[2], sys.argv[3]).run()
