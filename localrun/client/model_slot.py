"""The slot of the one model that is loaded or being loaded."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from localrun.base.errors import LocalrunError, unexpected
from localrun.base.events import ModelInfo
from localrun.base.request import ProgressCallback
from localrun.base.views import CacheView, ServerLoad
from localrun.client.interface import EngineClient

if TYPE_CHECKING:
    from localrun.client.choice import ModelChoice

T = TypeVar("T")
_BETWEEN_REPORTS = 0.1  # seconds


class OpenClient(Protocol):
    """Blocks until the model is loaded, on a thread of its own; `progress` raises when the load is given up."""

    def __call__(self, choice: "ModelChoice", progress: ProgressCallback) -> EngineClient: ...


class LoadGivenUpError(Exception):
    """The load was given up."""


class ModelSlot:
    """Holds at most one client; a new load closes the one before, since both may not fit."""

    def __init__(self, open_client: OpenClient) -> None:
        self._open_client = open_client
        self._load: _Load | None = None
        self.client: EngineClient | None = None
        self.choice: ModelChoice | None = None
        self.refused: ModelChoice | None = None  # that could not be loaded
        self._info: ModelInfo | None = None
        self.on_freed: Callable[[str], None] = lambda what: None  # called with the reason before the model is freed

    @property
    def loading(self) -> bool:
        return self._load is not None

    @property
    def info(self) -> ModelInfo | None:
        """The loaded model as it is now: an engine that died is loaded again, maybe from another file. After it is
        freed, as it was last; None before the first load and during one."""
        if self.client is not None:
            self._info = self.client.info
        return self._info

    def path_in_use(self) -> str:
        """The file or folder of the model that is loaded or being loaded; empty without one, and for a server."""
        from localrun.hub.disk.stored import StoredModel

        if self.loading and self.choice is not None:
            return str(self.choice.stored.path) if isinstance(self.choice.stored, StoredModel) else ""
        return self.info.path if self.info else ""

    async def load(self, choice: "ModelChoice", progress: ProgressCallback) -> ModelInfo:
        """Load; LoadGivenUpError after `give_up` or another load. `progress` is called on the event loop."""
        self.give_up()
        before, self.client, self._info, self.choice = self.client, None, None, choice
        self.refused = None
        if before is not None:
            self.on_freed("has loaded another model")
        load = self._load = _Load(self._open_client, choice, before, progress)
        try:
            client = await load.result()
        except asyncio.CancelledError:  # this load is not wanted any more
            load.give_up()
            raise
        except LocalrunError:
            self.refused = choice
            raise
        finally:
            if self._load is load:
                self._load = None
        self.client = client
        return client.info

    async def view(self) -> CacheView | ServerLoad | None:
        """Contents of the KV cache; of a server its load."""
        from localrun.client.remote.client import RemoteClient

        if isinstance(self.client, RemoteClient):
            return await asyncio.to_thread(self.client.load)
        return await asyncio.to_thread(self.client.view) if self.client else None

    def held_bytes(self) -> int:
        """Main memory that freeing the loaded model would give to the next one. Thread-safe."""
        from localrun.client.attach.client import AttachedClient
        from localrun.client.worker.client import WorkerClient

        client, info = self.client, self.info
        if isinstance(client, AttachedClient):
            if client.own is None:  # another program has it, and keeps it
                return 0
            client = client.own
        held = client.held_bytes() if isinstance(client, WorkerClient) else 0
        return max(held, info.weights_bytes - info.mapped_bytes if info else 0)

    def give_up(self) -> None:
        """Cancel a load under way; its `load` call raises at once, and its thread cleans up later."""
        if self._load is not None:
            self._load.give_up()
            self._load = None

    def close(self) -> None:
        """Free the model; blocks a little."""
        self.give_up()
        client, self._info, self.client = self.client, self.info, None
        if client is not None:
            self.on_freed("has unloaded its model")
            client.close()


class _Load:
    def __init__(
        self, open_client: OpenClient, choice: "ModelChoice", before: EngineClient | None, progress: ProgressCallback
    ) -> None:
        self._open_client = open_client
        self._choice = choice
        self._before = before
        self._progress = progress
        self._loop = asyncio.get_running_loop()
        self._client: asyncio.Future[EngineClient] = self._loop.create_future()
        self._given_up = False
        self._reported = 0.0

    async def result(self) -> EngineClient:
        threading.Thread(target=self._run, name="load", daemon=True).start()
        return await self._client

    def give_up(self) -> None:
        self._given_up = True
        if not self._client.done():
            self._client.set_exception(LoadGivenUpError())

    def _run(self) -> None:
        try:
            if self._before is not None:
                self._before.close()
            client = self._open_client(self._choice, self._report)
        except LoadGivenUpError:
            return
        except LocalrunError as error:
            self._tell(self._fail, error)
        except Exception as error:
            self._tell(self._fail, unexpected(error))
        else:
            if self._given_up:
                client.close()
            else:
                self._tell(self._finish, client)

    def _report(self, done: int, total: int) -> None:
        if self._given_up:
            raise LoadGivenUpError
        now = time.monotonic()
        if now - self._reported >= _BETWEEN_REPORTS or done >= total:
            self._reported = now
            self._tell(self._progress, done, total)

    def _tell(self, call: Callable[..., Any], *arguments: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(call, *arguments)
        except RuntimeError:  # the app has ended
            return

    def _finish(self, client: EngineClient) -> None:
        if self._client.done():  # given up in between
            threading.Thread(target=client.close, daemon=True).start()
        else:
            self._client.set_result(client)

    def _fail(self, error: LocalrunError) -> None:
        if not self._client.done():
            self._client.set_exception(error)
