"""Open the client of a choice: a server, an engine in a process of its own, or one in this process."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from localrun.base.request import LoadOptions, ProgressCallback
from localrun.base.settings import Settings
from localrun.client.attach.owner import running_server
from localrun.client.interface import EngineClient
from localrun.hub.disk.library import mark_used
from localrun.hub.disk.stored import StoredModel
from localrun.hub.downloads.unsynced import require_whole
from localrun.hub.load_options import load_options

if TYPE_CHECKING:
    from localrun.client.choice import ModelChoice
    from localrun.client.local import LocalClient
    from localrun.client.worker.client import WorkerClient


def open_client(
    choice: "ModelChoice",
    settings: Settings,
    progress: ProgressCallback = lambda done, total: None,
    *,
    apart: bool = False,
    prefix_cache: bool = True,
    disk_cache: bool = True,
    parallel: int | None = None,
    attach_as: str = "",
    tell: Callable[[str], None] = lambda line: None,
) -> EngineClient:
    """Block until the model is there. `apart` puts an engine of this machine into a process of its own, `parallel` says
    how many answers it computes at once at most.

    `attach_as` names this program to a running localrun that shares its engine, which is used if it is the same one;
    `tell` hears why it is not, in a line for the user.
    """
    stored = choice.stored
    if not isinstance(stored, StoredModel):
        from localrun.client.remote.client import RemoteClient

        return RemoteClient(stored)
    options = options_for(stored, choice, settings, prefix_cache=prefix_cache, disk_cache=disk_cache)
    options = replace(options, parallel=parallel)
    open_own = partial(open_apart if apart else open_local, stored, options)
    if attach_as and running_server() is not None:
        from localrun.client.attach.client import attach

        if (attached := attach(options, attach_as, open_own, progress, tell)) is not None:
            mark_used(stored.path)
            return attached
    return open_own(progress)


def check_ahead(choice: "ModelChoice", settings: Settings, freed: int) -> None:
    """Check that a choice can be loaded once `freed` more bytes are free, without loading it. Its files are read by a
    process of its own, as those of a load are. Raises LocalrunError."""
    if not isinstance(choice.stored, StoredModel):
        return
    from localrun.client.rpc.wire import CheckLoad, Failure, as_error
    from localrun.client.worker.process import WorkerProcess

    require_whole(choice.stored)
    worker = WorkerProcess("localrun.client.worker.main")
    try:
        answer = worker.receive(worker.call(CheckLoad(options_for(choice.stored, choice, settings), freed)))
    finally:
        worker.close()
    if isinstance(answer, Failure):
        raise as_error(answer)


def open_apart(
    stored: StoredModel, options: LoadOptions, progress: ProgressCallback = lambda done, total: None
) -> "WorkerClient":
    """An engine in a process of its own."""
    from localrun.client.worker.client import WorkerClient

    require_whole(stored)  # the list that it was chosen from may be out of date
    client = WorkerClient(options, progress)
    mark_used(stored.path)
    return client


def open_local(
    stored: StoredModel, options: LoadOptions, progress: ProgressCallback = lambda done, total: None
) -> "LocalClient":
    """An engine in this process. The process for templates starts beside the load."""
    from localrun.text.render_process import RENDERER

    RENDERER.warm_up()
    from localrun.client.local import LocalClient

    client = LocalClient(options, progress)
    mark_used(stored.path)
    return client


def options_for(
    stored: StoredModel,
    choice: "ModelChoice",
    settings: Settings,
    *,
    prefix_cache: bool = True,
    disk_cache: bool = True,
) -> LoadOptions:
    """Load options of a model on disk: those of the choice, else the settings."""
    held = replace(
        settings,
        kv=settings.kv if choice.kv == "auto" else choice.kv,
        ctx=settings.ctx if choice.ctx is None else choice.ctx,
        window=settings.window if choice.window is None else choice.window,
    )
    return load_options(
        stored,
        held,
        precision=choice.precision,
        prefix_cache=prefix_cache,
        disk_cache=disk_cache,
        chat_id=choice.chat_id,
        adapters=choice.adapters or (),
    )
