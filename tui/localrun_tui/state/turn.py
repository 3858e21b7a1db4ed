"""One answer on its way: the engine talks on a thread of its own, the screen looks at what has come when it likes."""

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from localrun.base.errors import LocalrunError, unexpected
from localrun.base.events import ModelInfo
from localrun.base.request import Request
from localrun.chat.turn import Answer
from localrun.client.interface import EngineClient, Generation

if TYPE_CHECKING:
    from localrun.chat.draft import Draft
    from localrun.chat.journal import Chat
    from localrun.chat.tree import Message


_BETWEEN_HALVES = 2.0  # seconds of an answer that a crash may cost


class Turn(Answer):
    """The answer to `parent_id` in `chat`. On the turn's thread `keep_half` is called from time to time while it
    grows, and must not wait; `keep` is called once, when it is over."""

    def __init__(
        self,
        chat: "Chat",
        parent_id: str,
        info: ModelInfo,
        keep: Callable[["Turn"], None],
        keep_half: Callable[["Turn"], object],
        begun: "Message | None" = None,
    ) -> None:
        super().__init__(info, begun)
        self.chat = chat
        self.parent_id = parent_id
        self.answer_id: str | None = None  # set by `keep`
        self.draft: Draft | None = None  # set by `keep_half`
        self.error: LocalrunError | None = None
        self.began = time.monotonic()
        self._keep = keep
        self._keep_half = keep_half
        self._kept = self.began
        self._over = threading.Event()
        self._generation: Generation | None = None
        self._is_cancelled = False

    @property
    def ttft(self) -> float | None:
        """Seconds that the user waited for the first token."""
        return None if self.first_token is None else self.first_token - self.began

    @property
    def over(self) -> bool:
        """Whether it ended and was kept."""
        return self._over.is_set()

    def start(self, client: EngineClient, request: Request) -> None:
        self.temperature = request.sampling.temperature
        threading.Thread(target=self._run, args=(client, request), name="turn", daemon=True).start()

    def cancel(self) -> None:
        """End it, from any thread; what has come is kept."""
        self._is_cancelled = True
        if self._generation is not None:
            self._generation.cancel()

    def wait(self, seconds: float) -> bool:
        """Whether it is over after at most so long."""
        return self._over.wait(seconds)

    def _run(self, client: EngineClient, request: Request) -> None:
        try:
            self._generation = client.generate(request)
            if self._is_cancelled:  # before there was anything to cancel
                self._generation.cancel()
            for event in self._generation:
                self.take(event)
                self._keep_from_time_to_time()
        except LocalrunError as error:
            self.error = error
        except Exception as error:  # the app goes on, whatever an engine raises
            self.error = unexpected(error)
        try:
            self._keep(self)
        except LocalrunError as error:
            self.error = self.error or error
        finally:
            self._over.set()

    def _keep_from_time_to_time(self) -> None:
        now = time.monotonic()
        if self.n_tokens and now - self._kept >= _BETWEEN_HALVES:
            self._kept = now
            self._keep_half(self)
