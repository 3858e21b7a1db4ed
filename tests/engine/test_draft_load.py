"""Programs that draft beside a model: which are refused, the memory they are counted with, a smaller model."""

import random
from dataclasses import replace
from pathlib import Path

import pytest
from localrun_testing.drafts import Guessing
from localrun_testing.mtp import save_with_mtp
from localrun_testing.oracle import token_ids
from localrun_testing.small_model import finish, greedy
from localrun_testing.tiny_models import VOCAB_SIZE, save

from localrun.backends.cpu.library import load_library
from localrun.base.errors import UsageError
from localrun.base.request import LoadOptions
from localrun.base.resources import resource
from localrun.engine import load_plan
from localrun.engine.handle import NewToken
from localrun.engine.load import LoadedModel, load
from localrun.engine.speculation.model_drafts import ModelDrafts
from localrun.fit.estimate import FitRow
from localrun.hub.disk.stored import StoredModel
from localrun.hub.fits import fit_stored

pytestmark = pytest.mark.skipif(load_library() is None, reason="no native library")
BUILTIN = Path(str(resource("localrun/builtin/localrun-tiny.gguf")))


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save("llama", tmp_path_factory.mktemp("llama"))


@pytest.fixture(scope="module")
def drafting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("drafting")
    save_with_mtp("qwen3.5", folder)
    return folder


def guesses_of(model: LoadedModel) -> ModelDrafts:
    """What drafts for a model, three tokens a step."""
    speculation = model.engine.scheduler.speculation
    assert speculation is not None
    assert isinstance(speculation.model, ModelDrafts)
    speculation.depths, speculation.new_drafter = Guessing(), None
    return speculation.model


def opened(path: Path, draft: str | Path) -> LoadedModel:
    return load(LoadOptions(path, draft=str(draft), ctx=512, threads=1))


def fitted(path: Path, draft: str) -> FitRow:
    """The row of `fit` for the same load."""
    table = fit_stored([StoredModel(path.name, "F32", path, 0, "safetensors", "path")], 1 << 34, 512, draft=draft)
    return next(row for row in table.rows if row.precision == "F32" and row.kv_codec == "f16")


def test_a_model_without_the_layer_is_refused_by_name(llama: Path) -> None:
    with pytest.raises(UsageError, match="has no layer that drafts"):
        fitted(llama, "mtp")
    with pytest.raises(UsageError, match=f"{llama.name} has no layer that drafts"):
        opened(llama, "mtp")


def test_a_file_that_cannot_draft_is_refused(llama: Path, drafting: Path) -> None:
    for draft, told in ((BUILTIN, "has other tokens"), (drafting, "layers with a state")):
        with pytest.raises(UsageError, match=told):
            opened(llama, draft)
    with pytest.raises(UsageError, match="draft is "):
        opened(llama, llama / "nothing")


def test_where_rows_are_not_exact_a_note_says_that_nothing_is_drafted(drafting: Path) -> None:
    model = load(LoadOptions(drafting, draft="mtp", ctx=128, backend="reference"))
    try:
        assert any("--draft mtp drafts nothing here" in note for note in model.info.notes)
        assert model.plan.draft is None
    finally:
        model.close()


def test_a_layer_is_loaded_unasked_where_there_is_room(
    drafting: Path, llama: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the load is the same as without, and says so; nothing is said of models that have none."""
    told = []
    for path, share in ((drafting, 0.75), (drafting, 2.0), (llama, 2.0)):
        monkeypatch.setattr(load_plan, "LEAST_SHARE", share)
        model = opened(path, "auto")
        speculation = model.engine.scheduler.speculation
        assert speculation is not None
        assert speculation.new_drafter is not None
        told.append((speculation.model is not None, load_plan.NO_ROOM in model.info.notes, model.plan.draft is None))
        model.close()
    assert told == [(True, False, False), (False, True, True), (False, False, True)]


def test_its_memory_is_planned(drafting: Path) -> None:
    plain, with_layer = (opened(drafting, draft) for draft in ("off", "mtp"))
    try:
        plans = plain.plan, with_layer.plan
        assert plans[1].weights_bytes - plans[0].weights_bytes == with_layer.draft_bytes > 4 * 96 * 96
        weights = with_layer.memory(with_layer.engine.view())[0]
        assert weights.measured == weights.predicted
        assert plans[1].draft is not None
        assert plans[1].needed_kv_bytes > plans[0].needed_kv_bytes
        assert plans[1].scratch_bytes > plans[0].scratch_bytes
        found = [fitted(drafting, draft) for draft in ("auto", "mtp")]
        more = plans[1].weights_bytes - plans[0].weights_bytes
        assert found[1].weights_bytes - found[0].weights_bytes == more
        assert found[1].kv_bytes - found[0].kv_bytes == plans[1].needed_kv_bytes - plans[0].needed_kv_bytes
    finally:
        plain.close()
        with_layer.close()


def test_a_model_that_drafts_for_itself_is_right(llama: Path) -> None:
    """Prompts that it has to catch up with, turns that go on, and answers side by side."""
    answers = []
    for draft in ("off", llama):
        model = opened(llama, draft)
        if draft != "off":
            guesses_of(model)
        try:
            first = finish(model.engine.submit(greedy(token_ids(400, VOCAB_SIZE), 40)))
            again = finish(model.engine.submit(greedy([*first.token_ids, 5, 6], 30)))
            with model.engine.lock:  # they come together: beside a prompt nothing is drafted
                handles = [model.engine.submit(greedy(token_ids(20 + n, VOCAB_SIZE, n), 30)) for n in range(3)]
            ended = [first, again, *map(finish, handles)]
        finally:
            model.close()
        answers.append([one.token_ids for one in ended])
    assert answers[0] == answers[1]
    for one in ended:
        assert one.figures.n_drafted > 12
        assert one.figures.n_accepted >= 0.95 * one.figures.n_drafted


def test_how_deep_is_chosen_by_what_steps_take(llama: Path) -> None:
    """The controller as it is: a drafter as large as the model gains nothing, and answers stay the same."""
    answers = []
    for draft in ("off", llama):
        model = opened(llama, draft)
        try:
            answers.append([finish(model.engine.submit(greedy([n, 5, 6], 200))).token_ids for n in range(2)])
        finally:
            model.close()
    assert answers[0] == answers[1]


@pytest.mark.parametrize("drafter", ["layer", "file"])
def test_nothing_of_it_is_lost_however_answers_end(drafter: str, llama: Path, drafting: Path) -> None:
    """Answers side by side that are cancelled, limited and gone on with, until its cache is full, and beyond."""
    model, dice, prompt = opened(drafting, "mtp") if drafter == "layer" else opened(llama, llama), random.Random(1), [5]
    guesses = guesses_of(model)
    store, engine = guesses.program.store, model.engine
    try:
        for _ in range(40):
            ids = [*prompt[:250], *token_ids(dice.randint(1, 60), VOCAB_SIZE, dice.randint(0, 9))]
            request = greedy(ids, dice.randint(1, 40))
            handles = [engine.submit(replace(request, seed=seed)) for seed in range(dice.randint(1, 3))]
            if dice.random() < 0.3:
                next((event for event in handles[0] if isinstance(event, NewToken)), None)
                handles[0].cancel()
                handles = handles[1:]
            for handle in handles:
                prompt = finish(handle).token_ids
    finally:
        model.close()
    assert not guesses.texts
    assert store.tree.nodes()
    store.tree.clear()
    assert all(pool.n_free == pool.n_blocks for pool in store.pools)
