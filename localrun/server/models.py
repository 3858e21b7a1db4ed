"""The model that answers: loaded when it is asked for, changed for another, unloaded when idle."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from localrun.base.dataclass import dataclass
from localrun.base.errors import LocalrunError, NotFoundError
from localrun.client.choice import ModelChoice
from localrun.client.interface import EngineClient
from localrun.client.model_slot import LoadGivenUpError, ModelSlot
from localrun.hub.disk.library import scan
from localrun.hub.disk.stored import StoredModel
from localrun.hub.resolve import resolve_listed
from localrun.server.options import ServerOptions
from localrun.server.refusal import Refusal

PATIENCE_SECONDS = 30.0  # that requests for the loaded model may overtake one for another


def model_id(stored: StoredModel, listed: list[StoredModel]) -> str:
    """The name of a model in every protocol: as `localrun list` shows it, with the precision where it has several."""
    several = sum(one.name == stored.name for one in listed) > 1
    return f"{stored.name}:{stored.precision}" if several and stored.precision else stored.name


def names_of(choice: ModelChoice) -> set[str]:
    """Names that mean a loaded model whatever else is on disk, in lower case."""
    stored = choice.stored
    own = [stored.name, f"{stored.name}:{choice.precision}"] if isinstance(stored, StoredModel) else [stored.model]
    return {spelled.lower() for one in own for spelled in (one, f"{one}:latest")}


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    wanted: ModelChoice
    since: float  # on the monotonic clock


class ModelHost:
    """At most one loaded model, shared by any number of requests; one for another model waits until they are done."""

    def __init__(
        self,
        slot: ModelSlot,
        first: ModelChoice,
        options: ServerOptions,
        check: Callable[[ModelChoice, int], None] = lambda choice, freed: None,
    ) -> None:
        """`check` raises LocalrunError for a model that could not be loaded although `freed` more bytes were free."""
        self.slot, self._first, self._usual, self._options = slot, first, first, options
        self._check = check
        self._free = asyncio.Condition()
        self._waiting: list[_Waiting] = []
        self._n_users = 0
        self._loading: tuple[ModelChoice, asyncio.Task[None]] | None = None
        self._unload: asyncio.TimerHandle | None = None
        self.unload_at: float | None = None  # on the clock of time.time
        self.n_attached: Callable[[], int] = lambda: 0  # other programs that use the engine, and keep it loaded

    @property
    def choice(self) -> ModelChoice:
        """The model for requests without a name."""
        return self._usual

    @asynccontextmanager
    async def use(self, name: str, keep_alive: float | None = None) -> AsyncIterator[EngineClient]:
        """Keep the model of a name loaded for a `with` block. Raises Refusal for an unknown name, and LocalrunError."""
        if (wanted := self._loaded_as(name)) is None:
            wanted = await asyncio.to_thread(self.find, name)
        client = await self._acquire(wanted)
        try:
            yield client
        finally:
            await asyncio.shield(self._release(self._options.keep_alive if keep_alive is None else keep_alive))

    async def unload(self, name: str) -> None:
        """Unload a model by name as soon as it is idle; do nothing where it is not loaded."""
        if self._is_loaded(await asyncio.to_thread(self.find, name)):
            async with self.use(name, 0):
                pass

    def find(self, name: str) -> ModelChoice:
        """The model of a name; the loaded one for an empty name. Reads the disk. Raises Refusal."""
        if (meant := self._loaded_as(name)) is not None:
            return meant
        name = self._without_alias(name)
        try:
            stored = resolve_listed(name)
        except NotFoundError as error:
            raise Refusal(404, f"{error.message} ({error.hint})", "model_not_found", "model") from None
        for known in (self.choice, self._first):  # with its adapters
            if isinstance(known.stored, StoredModel) and stored.path == known.stored.path:
                return known
        if self._options.no_swap:
            what = f"{name} is not loaded, and --no-swap keeps it so"
            raise Refusal(404, what, "model_not_found", "model")
        return ModelChoice(stored, stored.precision)

    def _loaded_as(self, name: str) -> ModelChoice | None:
        """The loaded model, where it is meant: most requests cost no look at the disk."""
        name = self._without_alias(name)
        is_meant = not name or self._options.any_model or name.lower() in names_of(self.choice)
        return self.choice if is_meant else None

    def _without_alias(self, name: str) -> str:
        return self._options.aliases.get(name.lower().removesuffix(":latest"), name)

    def listed(self) -> list[StoredModel]:
        """The models that can be requested; first the one for requests without a name, as many clients ask the first.
        Reads the disk."""
        usual = self.choice.stored
        if self._options.no_swap:
            return [usual] if isinstance(usual, StoredModel) else []
        return sorted(scan(), key=lambda one: not isinstance(usual, StoredModel) or one.path != usual.path)

    def aliases(self) -> dict[str, StoredModel]:
        """Aliases, with their models. Reads the disk."""
        found = {}
        for name in self._options.aliases:
            with suppress(Refusal):
                if isinstance(stored := self.find(name).stored, StoredModel):
                    found[name] = stored
        return found

    async def load(self, progress: Callable[[int, int], None] = lambda done, total: None) -> None:
        """Load the first model ahead of requests."""
        await self.slot.load(self._usual, progress)

    async def close(self) -> None:
        """Free the model."""
        self._keep()
        await asyncio.to_thread(self.slot.close)

    async def _acquire(self, wanted: ModelChoice) -> EngineClient:
        waiting = _Waiting(wanted, time.monotonic())
        async with self._free:
            self._waiting.append(waiting)
            try:
                await self._free.wait_for(lambda: self._is_ready_for(waiting))
                self._keep()
                if not self._is_loaded(wanted):
                    await self._bring(wanted)
                    self._keep()
                assert self.slot.client is not None
                self._n_users += 1
                return self.slot.client
            finally:
                self._waiting.remove(waiting)
                self._free.notify_all()

    def _is_loaded(self, choice: ModelChoice) -> bool:
        return self.slot.client is not None and self.slot.choice == choice

    def _is_ready_for(self, waiting: "_Waiting") -> bool:
        """Whether a request may use the loaded model now: not past one for another model that has waited too long; from
        then on the order is that of arrival."""
        if not self._is_loaded(waiting.wanted):
            return self._n_users == 0 and waiting is self._waiting[0]
        longest = time.monotonic() - PATIENCE_SECONDS
        return not any(
            other.since < min(waiting.since, longest) and not self._is_loaded(other.wanted) for other in self._waiting
        )

    async def _bring(self, wanted: ModelChoice) -> None:
        """Wait for a load. It continues when its client leaves: one with a timeout shorter than the load would restart
        it each time it comes back."""
        if self._loading is None or self._loading[0] != wanted:
            if self._loading is not None:
                self._loading[1].cancel()  # nobody waits for it any more
            self._loading = wanted, asyncio.ensure_future(self._change(wanted))
            self._loading[1].add_done_callback(self._loaded)
        await asyncio.shield(self._loading[1])

    def _loaded(self, load: "asyncio.Task[None]") -> None:
        """Forget a load that has ended, and its error: its client may have left. Whatever is loaded now is idle."""
        if self._loading is not None and self._loading[1] is load:
            self._loading = None
        if not load.cancelled():
            load.exception()  # or asyncio complains that nobody asked
            if self._n_users == 0 and self.slot.client is not None:
                self._unload_after(self._options.keep_alive)

    async def _change(self, wanted: ModelChoice) -> None:
        """Load another model. One that cannot be loaded leaves the previous one as it is, with its cache; a load that
        fails on the way has it loaded again, and it stays the default."""
        before = self.slot.choice if self.slot.client is not None else None
        if before is not None:
            await asyncio.to_thread(self._check, wanted, self.slot.held_bytes())
            if self._n_users:  # who waited for it has left, and others use the one that is there
                return
        try:
            await self.slot.load(wanted, lambda done, total: None)
        except LoadGivenUpError:
            raise Refusal(503, "another model is being loaded", "model_changed", retry_after=1) from None
        except LocalrunError:
            if before is not None:
                with suppress(LocalrunError, LoadGivenUpError):
                    await self.slot.load(before, lambda done, total: None)
            raise
        self._usual = wanted

    async def _release(self, keep_alive: float | None) -> None:
        async with self._free:
            self._n_users -= 1
            self._free.notify_all()
            if self._n_users == 0:
                self._unload_after(keep_alive)

    def _unload_after(self, keep_alive: float | None) -> None:
        self._keep()
        if keep_alive is not None and math.isfinite(keep_alive):
            self.unload_at = time.time() + keep_alive
            loop = asyncio.get_running_loop()
            self._unload = loop.call_later(keep_alive, lambda: asyncio.ensure_future(self._unload_idle(keep_alive)))

    def _keep(self) -> None:
        """Cancel the timer that unloads the model."""
        if self._unload is not None:
            self._unload.cancel()
        self._unload = self.unload_at = None

    async def _unload_idle(self, after: float) -> None:
        """Unload, unless in use. Attached programs keep the model loaded, except from an explicit unload."""
        async with self._free:
            if self._n_users == 0 and after and self.n_attached():
                self._unload_after(after)
            elif self._n_users == 0:
                self._keep()
                await asyncio.to_thread(self.slot.close)
                self._free.notify_all()
