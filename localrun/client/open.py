"""Where an engine runs: in this process, or in one of its own."""

from collections.abc import Callable

from localrun.base.request import LoadOptions
from localrun.client.interface import EngineClient


def open_engine(
    options: LoadOptions, worker: bool, progress: Callable[[int, int], None] = lambda done, total: None
) -> EngineClient:
    """Load a model. With `worker`, this process never imports torch and outlives the engine; see WorkerClient."""
    if worker:
        from localrun.client.worker import WorkerClient

        return WorkerClient(options, progress)
    from localrun.client.local import LocalClient

    return LocalClient(options, progress)
