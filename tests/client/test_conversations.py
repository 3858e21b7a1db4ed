"""Conversations with edits, branches and thoughts that are dropped: a warm engine says what a cold one says."""

from pathlib import Path

import pytest

from benchmarks.chat_player import Played
from benchmarks.conversations import CODECS, MODELS, model_path, played
from localrun.backends.cpu.library import load_library, why_no_library
from localrun.base.request import KVCodecName
from localrun.engine.runner import Runner

pytestmark = pytest.mark.skipif(load_library() is None, reason=f"no native library: {why_no_library()}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


def share_reused(turns: list[Played]) -> float:
    return sum(turn.cached for turn in turns) / sum(len(turn.prompt_ids) for turn in turns)


@pytest.mark.parametrize(("model", "kv"), [("builtin", "f16"), ("tiny-thinker", "q8"), ("tiny-windows", "q4")])
def test_a_warm_engine_says_what_a_cold_one_says(model: str, kv: KVCodecName, folder: Path) -> None:
    turns = played(model_path(model, folder), kv, seed=0, turns=14)
    assert all(turn.equal for turn in turns)
    assert share_reused(turns) > 0.4
    assert len({turn.answer_ids for turn in turns}) > 5, "the answers are not all alike"
    rewritten = [turn for turn in turns if "the template rewrote" in turn.note]
    assert bool(rewritten) == (model == "tiny-thinker")
    assert all(turn.computed + turn.cached == len(turn.prompt_ids) for turn in turns)
    assert all(turn.computed == 1 for turn in turns if turn.move == "regenerate")


def test_a_cache_that_is_wrong_is_noticed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Runner, "copy", lambda *_: None)
    assert not all(turn.equal for turn in played(model_path("tiny-thinker", folder), "f16", seed=0, turns=10))


@pytest.mark.slow
@pytest.mark.parametrize("kv", CODECS)
@pytest.mark.parametrize("model", MODELS)
def test_forty_turns(model: str, kv: KVCodecName, folder: Path) -> None:
    turns = played(model_path(model, folder), kv, seed=1, turns=40)
    assert all(turn.equal for turn in turns)
    assert share_reused(turns) > 0.5
