"""A loaded model with a cache of its own, so that measurements evict nothing from stored chats."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from localrun.backends.executor import Executor
from localrun.base.machine import memory, resident
from localrun.cache.store import CacheStore
from localrun.engine.engine import Engine
from localrun.engine.load import LoadedModel, start_executor
from localrun.engine.runner import Runner
from localrun.fit.plan import LoadRequest, plan_load
from localrun.model.config import ModelConfig
from localrun.ops.interface import StepInput
from localrun.ops.kv import KVCodec
from localrun.ops.program import Handle

CONTEXT = 1024  # tokens; a small cache, for all that is measured


class WatchedRunner(Runner):
    """A runner that calls `watch` before every step; an exception of it ends the measurement."""

    def __init__(
        self, config: ModelConfig, executor: Executor, codecs: Sequence[KVCodec], watch: Callable[[], None]
    ) -> None:
        super().__init__(config, executor, codecs)
        self._watch = watch

    def begin(self, step: StepInput) -> Handle:
        self._watch()
        return super().begin(step)


@contextmanager
def isolated_engine(model: LoadedModel, watch: Callable[[], None]) -> Iterator[LoadedModel]:
    """The same weights behind another engine, closed at the end. Raises DoesNotFitError."""
    request = LoadRequest(
        model.plan.config,
        0,  # they are resident already
        model.backend.memory(memory()).available,
        model.backend,
        ctx=min(CONTEXT, model.plan.ctx),
        kv=model.plan.codec.name,
        resident=resident() if model.backend.in_main_memory else 0,
        threads=model.threads,
    )
    plan = plan_load(request)
    executor = start_executor(model.backend, model.model, plan, model.threads)
    runner = WatchedRunner(model.plan.config, executor, plan.codecs, watch)
    store = CacheStore(runner.groups, plan.blocks, plan.ring_blocks, runner.copy)
    engine = Engine(runner, store, plan.ctx)
    try:
        yield replace(model, engine=engine, plan=replace(plan, weights_bytes=model.plan.weights_bytes))
    finally:
        engine.close()
