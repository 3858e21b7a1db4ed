"""Chats of models with states on the emulated GPU: what is kept and gone back to is what a cold start gives."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from localrun_testing.cache_engine import packed_model
from localrun_testing.emulated_cuda import emulated_device
from localrun_testing.small_model import CONV, DELTA, FULL, MAMBA, NETWORK, finish, greedy, small_model, text

from localrun.backends.cuda.translator import CudaTranslator
from localrun.backends.executor import CachePlan, ExecutorRequest
from localrun.backends.gpu.executor import GpuExecutor
from localrun.backends.gpu.layouts import GpuLayout
from localrun.cache.store import CacheStore
from localrun.engine.engine import Engine
from localrun.engine.generation import GenerationState
from localrun.engine.runner import Runner, cache_layers
from localrun.model.config import group_layers
from localrun.ops.kv import KV_CODECS, KVPlan

LAYERS = (DELTA, replace(FULL, head_dim=16), MAMBA, CONV, NETWORK)
N_BLOCKS = 12


def engine(keep_prefixes: bool) -> Engine:
    model = packed_model(small_model(LAYERS), GpuLayout())
    plan = KVPlan(tuple(spec.cache.codec(KV_CODECS["f16"]) for spec in model.config.layers))
    groups = group_layers(model.config.layers, plan.codecs)
    counts, rings = [N_BLOCKS] * len(groups), [0] * len(groups)
    cache = CachePlan(cache_layers(model.config, plan.codecs), plan, counts, rings)
    executor = GpuExecutor(CudaTranslator, emulated_device(), ExecutorRequest.of(model.forward, cache), span=64)
    assert not executor.program.by_torch
    assert not executor.bulk_span
    runner = Runner(model.config, executor, plan.codecs)
    one = Engine(runner, CacheStore(groups, counts, rings, runner.copy, keep_prefixes), 256)
    one.scheduler.cost.rows_per_second = 200.0  # chunks of some rows
    return one


@pytest.fixture
def engines() -> Iterator[tuple[Engine, Engine]]:
    both = engine(keep_prefixes=True), engine(keep_prefixes=False)
    yield both
    for one in both:
        one.close()


def test_a_chat_that_goes_on_is_edited_and_asked_again(engines: tuple[Engine, Engine]) -> None:
    """The ids of all answers, which wander; turns go on from the state that the one before left."""
    reusing, fresh = engines
    saved = 0

    def ask(prompt: list[int], n: int) -> list[int]:
        nonlocal saved
        done, cold = (finish(one.submit(greedy(prompt, n))) for one in (reusing, fresh))
        saved += done.figures.n_cached
        assert done.token_ids == cold.token_ids
        return list(done.token_ids)

    first = ask(text(70), 12)
    second = ask([*first, *text(9, 1)], 5)
    ask(second, 4)
    ask([*first[:75], *text(4, 2)], 6)  # an answer that is cut short
    ask(text(70), 3)
    assert saved > 200


def test_chats_beside_each_other_answer_as_each_alone(engines: tuple[Engine, Engine]) -> None:
    together, alone = engines
    prompts = [text(n, n) for n in (5, 64, 37)]
    handles = [together.submit(greedy(prompt, 8)) for prompt in prompts]
    found: list[GenerationState] = [finish(handle) for handle in handles]
    expected = [finish(alone.submit(greedy(prompt, 8))) for prompt in prompts]
    assert [one.token_ids for one in found] == [one.token_ids for one in expected]
