"""Chats of models with states on the emulated GPU: what is kept and gone back to is what a cold start gives."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import torch
from localrun_testing.cache_engine import packed_model
from localrun_testing.emulated_cuda import emulated_device
from localrun_testing.small_model import CONV, DELTA, FULL, MAMBA, NETWORK, finish, greedy, small_model, text

from localrun.backends.cuda.translator import CudaTranslator
from localrun.backends.executor import CachePlan, ExecutorRequest
from localrun.backends.gpu.ahead import StepsAhead
from localrun.backends.gpu.executor import GpuExecutor
from localrun.backends.gpu.layouts import GpuLayout
from localrun.cache.store import CacheStore
from localrun.engine.engine import Engine
from localrun.engine.generation import GenerationState
from localrun.engine.runner import Runner, cache_layers
from localrun.engine.scratch_runs import ScratchRuns
from localrun.engine.step_plan import StepPlan
from localrun.model.config import group_layers
from localrun.ops.interface import Logits, StepCancelled
from localrun.ops.kv import KV_CODECS, KVPlan

LAYERS = tuple(replace(one, ffn_size=64) for one in (DELTA, replace(FULL, head_dim=16), MAMBA, CONV, NETWORK))
N_BLOCKS, SPAN = 12, 64


def engine(keep_prefixes: bool = True, qtype: str = "F32", n_blocks: int = N_BLOCKS) -> Engine:
    model = packed_model(small_model(LAYERS), GpuLayout(), qtype)
    plan = KVPlan(tuple(spec.cache.codec(KV_CODECS["f16"]) for spec in model.config.layers))
    groups = group_layers(model.config.layers, plan.codecs)
    counts, rings = [n_blocks] * len(groups), [0] * len(groups)
    cache = CachePlan(cache_layers(model.config, plan.codecs), plan, counts, rings)
    executor = GpuExecutor(CudaTranslator, emulated_device(), ExecutorRequest.of(model.forward, cache), SPAN)
    assert not executor.program.by_torch
    assert executor.runs_ahead
    assert executor.bulk_span == (0 if qtype == "F32" else SPAN)
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


@pytest.fixture
def in_bulk() -> Iterator[Callable[[], Engine]]:
    """Makes engines that read prompts in bulk."""
    made: list[Engine] = []

    def make() -> Engine:
        made.append(engine(qtype="Q8_0"))
        return made[-1]

    yield make
    for one in made:
        one.close()


def ahead_of(one: Engine) -> StepsAhead:
    assert isinstance(one.runner.executor, GpuExecutor)
    return one.runner.executor.program.ahead


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


def test_steps_that_are_begun_ahead_write_a_third_state(
    engines: tuple[Engine, Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most are used, across the end of a block, too; where none is, they leave no trace."""
    used, never = engines
    found = finish(used.submit(greedy(text(50), 30)))
    assert ahead_of(used).n_used > 24
    monkeypatch.setattr(StepsAhead, "is_same", lambda *_: False)
    assert finish(never.submit(greedy(text(50), 30))).token_ids == found.token_ids
    assert (ahead_of(never).n_used, ahead_of(never).n_unused) == (0, ahead_of(used).n_used)
    monkeypatch.setattr(StepsAhead, "begin", lambda *_: None)
    assert finish(never.submit(greedy(text(50), 30))).token_ids == found.token_ids
    assert all(pool.n_free == pool.n_blocks for pool in never.store.pools), "no third state is left"


def test_a_step_whose_result_is_dropped_goes_on_from_the_same_state_again(
    engines: tuple[Engine, Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the one after it had been begun: cancelled is only what nobody has read."""
    one, usual = engines
    expected = finish(usual.submit(greedy(text(20), 12))).token_ids
    run, n_runs = one._run, 0

    def dropped(plan: StepPlan) -> Logits:
        nonlocal n_runs
        logits, n_runs = run(plan), n_runs + 1
        if n_runs % 3 == 2:
            raise StepCancelled
        return logits

    monkeypatch.setattr(one, "_run", dropped)
    assert finish(one.submit(greedy(text(20), 12))).token_ids == expected
    assert ahead_of(one).n_unused > 3


def test_where_no_third_state_finds_room_nothing_is_begun_ahead() -> None:
    small = engine(keep_prefixes=False, n_blocks=2)
    expected = finish(small.submit(greedy(text(40), 9))).token_ids
    assert ahead_of(small).n_begun == 0
    small.close()
    roomy = engine(keep_prefixes=False, n_blocks=3)
    assert finish(roomy.submit(greedy(text(40), 9))).token_ids == expected
    assert ahead_of(roomy).n_used > 5
    roomy.close()


def read(one: Engine, chunks: list[int], n_bulk: int) -> tuple[list[torch.Tensor], list[bytes]]:
    """Logits after every chunk of a text whose first tokens are read in bulk, and the state after the last."""
    ids, found, at = text(sum(chunks), 5), list[torch.Tensor](), 0
    with ScratchRuns(one.runner, one.store) as runs:
        for n in chunks:
            found.append(torch.as_tensor(runs.feed(ids[at : at + n], at, [n - 1], n_bulk).rows).clone())
            at += n
        tables = runs.caches[0].tables
        states = [one.runner.read(pool, table.before) for pool, table in enumerate(tables) if table.before >= 0]
    return found, states


def test_prompts_are_read_in_bulk_however_they_are_cut(in_bulk: Callable[[], Engine]) -> None:
    """Spans and what is left in one step, between whose passes states are handed on; or anywhere else."""
    whole, states = read(in_bulk(), [150], 2 * SPAN)
    assert states
    for chunks in ([128, 22], [30, 100, 19, 1], [1, 127, 22], [100, 50]):
        found, left = read(in_bulk(), chunks, 2 * SPAN)
        assert torch.equal(found[-1], whole[-1])
        assert left == states
    few = read(in_bulk(), [150], 0)[1]
    assert few != states, "it is another arithmetic"


def test_an_answer_after_a_prompt_in_bulk_is_that_of_a_cold_start(in_bulk: Callable[[], Engine]) -> None:
    reusing, prompt = in_bulk(), text(140)
    first = finish(reusing.submit(greedy(prompt, 5)))
    again = finish(reusing.submit(greedy([*prompt, *text(30, 1)], 5)))
    cold = finish(in_bulk().submit(greedy([*prompt, *text(30, 1)], 5)))
    assert first.n_bulk == again.n_bulk == 2 * SPAN
    assert again.figures.n_cached >= SPAN
    assert again.token_ids == cold.token_ids
