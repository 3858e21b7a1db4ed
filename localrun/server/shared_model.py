"""The model of an app that also serves it: the app loads and changes it, requests use the loaded one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from localrun.client.choice import ModelChoice
from localrun.client.interface import EngineClient
from localrun.client.model_slot import ModelSlot
from localrun.hub.disk.stored import StoredModel
from localrun.server.models import ModelHost, names_of
from localrun.server.options import ServerOptions
from localrun.server.refusal import Refusal

RETRY_SECONDS = 5


class SharedModel(ModelHost):
    """Never loads, changes or frees a model."""

    def __init__(self, slot: ModelSlot, options: ServerOptions) -> None:
        self.slot, self._options = slot, options
        self.unload_at, self.n_attached = None, lambda: 0

    @property
    def choice(self) -> ModelChoice:
        if self.slot.choice is None:
            raise Refusal(503, "the app has no model loaded", "no_model", retry_after=RETRY_SECONDS)
        return self.slot.choice

    @asynccontextmanager
    async def use(self, name: str, keep_alive: float | None = None) -> AsyncIterator[EngineClient]:
        self.find(name)
        if self.slot.client is None:
            raise Refusal(503, "the app is loading its model", "no_model", retry_after=RETRY_SECONDS)
        yield self.slot.client

    def find(self, name: str) -> ModelChoice:
        loaded = self.choice
        if name and not self._options.any_model and name.lower() not in names_of(loaded):
            raise Refusal(404, f"{name[:80]} is not what the app has loaded", "model_not_found", "model")
        return loaded

    def listed(self) -> list[StoredModel]:
        stored = None if self.slot.choice is None else self.slot.choice.stored
        return [stored] if isinstance(stored, StoredModel) else []

    async def close(self) -> None:
        """Do nothing: the model is the app's."""
