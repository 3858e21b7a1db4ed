"""Conversations with edits, branches and thoughts that are dropped: a warm engine says what a cold one says."""

from pathlib import Path

import pytest

from benchmarks.chat_player import Played
from benchmarks.conversations import CODECS, MODELS, model_path, played
from benchmarks.tiny_architectures import TINY
from localrun.backends.cpu.library import load_library, why_no_library
from localrun.base.request import KVCodecName
from localrun.cache.kinds.recurrent import CHECKPOINT_TOKENS
from localrun.chat.tree import common_length
from localrun.engine.runner import Runner
from localrun.formats.detect import open_model_file
from localrun.model.headers import read_config
from localrun.ops.kv import BLOCK_TOKENS

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


@pytest.mark.parametrize(("model", "kv"), [("qwen3.5", "k8v4"), ("gpt-oss", "q4"), ("lfm2-moe", "f32")])
def test_so_do_models_with_states_and_with_experts(model: str, kv: KVCodecName, folder: Path) -> None:
    turns = played(model_path(model, folder), kv, seed=2, turns=10)
    assert all(turn.equal for turn in turns)
    assert share_reused(turns) > 0.4


@pytest.mark.slow
@pytest.mark.parametrize("kv", CODECS)
@pytest.mark.parametrize("model", TINY)
def test_every_architecture_in_every_codec(model: str, kv: KVCodecName, folder: Path) -> None:
    """Of what is not new at most a block is computed again; where layers keep states, at most what lies between two."""
    path = model_path(model, folder)
    has_states = any(layer.mixer for layer in read_config(open_model_file(path)).layers)
    most_again = BLOCK_TOKENS + (CHECKPOINT_TOKENS if has_states else 0)
    turns = played(path, kv, seed=3, turns=20)
    assert all(turn.equal for turn in turns)
    known: list[tuple[int, ...]] = []
    for turn in turns:
        shared = max((common_length(ids, turn.prompt_ids) for ids in known), default=0)
        assert turn.computed <= len(turn.prompt_ids) - shared + most_again
        known.append(turn.prompt_ids + turn.answer_ids)


@pytest.mark.slow
@pytest.mark.parametrize("kv", CODECS)
@pytest.mark.parametrize("model", MODELS)
def test_forty_turns(model: str, kv: KVCodecName, folder: Path) -> None:
    turns = played(model_path(model, folder), kv, seed=1, turns=40)
    assert all(turn.equal for turn in turns)
    assert share_reused(turns) > 0.5
