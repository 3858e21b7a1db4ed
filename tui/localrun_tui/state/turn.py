"""One answer under way: a thread reads its events, and the screen draws from the state."""

import threading
import time
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from typing import TYPE_CHECKING

from localrun.base.errors import LocalrunError, unexpected
from localrun.base.request import Request
from localrun.chat.turn import Answer
from localrun.client.interface import EngineClient, Generation
from localrun_tui.state.chat_tools import AppTools
from localrun_tui.state.store_thread import StoreThread

if TYPE_CHECKING:
    from localrun.chat.journal import Chat
    from localrun.chat.tree import Message
    from localrun.tools.loop import ToolLoop


_BETWEEN_HALVES = 2.0  # seconds of an answer that a crash may cost


class Turn(Answer):
    """An answer that fetches its own events, and is kept on the disk's thread: from time to time while it grows, and
    when it is over."""

    def __init__(
        self,
        chat: "Chat",
        question: str,
        request: Request,
        client: EngineClient,
        disk: StoreThread,
        tools: AppTools,
        begun: "Message | None" = None,
        unseen: str = "",
    ) -> None:
        super().__init__(chat, question, request, client.info, begun)
        self.unseen = unseen  # a sentence about images of the chat that the model does not get
        self._disk = disk
        self._tools = tools
        self._half_kept = self.began
        self.ended: Future[None] = Future()  # once it is over and was kept
        self._generation: Generation | ToolLoop | None = None
        self._is_cancelled = False
        threading.Thread(target=self._run, args=(client, request), name="turn", daemon=True).start()

    @property
    def over(self) -> bool:
        """Whether it ended and was kept."""
        return self.ended.done()

    def cancel(self) -> None:
        """End it, from any thread; what has come is kept."""
        self._is_cancelled = True
        if self._generation is not None:
            self._generation.cancel()
        self._tools.give_up()

    def wait(self, seconds: float) -> bool:
        """Whether it is over after at most so long."""
        return bool(wait_for((self.ended,), seconds).done)

    def _run(self, client: EngineClient, request: Request) -> None:
        try:
            self._generation = self._tools.generate(client, request)
            if self._is_cancelled:  # before there was anything to cancel
                self._generation.cancel()
            for event in self._generation:
                self.take(event)
                self._keep_from_time_to_time()
        except LocalrunError as error:
            self.error = error
        except Exception as error:  # the app survives any error of an engine
            self.error = unexpected(error)
        try:
            self._disk.submit(self.keep).result()
        except LocalrunError as error:
            self.error = self.error or error
        except Exception as error:
            self.error = self.error or unexpected(error)
        finally:
            self.ended.set_result(None)

    def _keep_from_time_to_time(self) -> None:
        now = time.monotonic()
        if self.n_tokens and now - self._half_kept >= _BETWEEN_HALVES:
            self._half_kept = now
            self._disk.submit(self.keep_half)
