"""Conversations on an emulated GPU, whose decode steps are graphs: a warm engine says what a cold one says."""

from pathlib import Path

import pytest

from benchmarks.chat_player import MOVES, SHORT, Played, play
from benchmarks.conversations import CODECS, clients, model_path
from benchmarks.tiny_architectures import TINY
from localrun.backends.cuda.availability import EMULATE, why_unavailable
from localrun.backends.gpu.executor import GpuExecutor
from localrun.base.request import KVCodecName
from localrun.ops.kv import BLOCK_TOKENS

CONTEXT = 512  # so that the oldest turns are dropped now and then
PAIRWISE: tuple[tuple[str, KVCodecName], ...] = (  # every kind of layer, and every codec
    ("olmo3", "f32"),
    ("gemma3", "q8"),
    ("gpt-oss", "q4"),
    ("qwen3.5", "f16"),
    ("lfm2", "k8v4"),
)


@pytest.fixture(autouse=True)
def emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(EMULATE, "1")
    if why := why_unavailable():
        pytest.skip(f"CUDA: {why}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


def emulated_turns(model: str, kv: KVCodecName, folder: Path, seed: int, turns: int) -> list[Played]:
    """What was said; decode steps were graphs where torch has no part in them."""
    with clients(model_path(model, folder), kv, 1, "cuda", CONTEXT) as (warm, cold):
        found = list(play(warm, cold, seed, turns, SHORT))
        executor = warm.model.engine.runner.executor
        assert isinstance(executor, GpuExecutor)
        assert bool(executor.program.graphs.kept) != bool(executor.program.by_torch)
    return found


@pytest.mark.parametrize(("model", "kv"), PAIRWISE)
def test_a_warm_engine_says_what_a_cold_one_says(model: str, kv: KVCodecName, folder: Path) -> None:
    """In few turns, but with every move, and texts that end in the third block."""
    turns = emulated_turns(model, kv, folder, seed=3, turns=8)
    assert all(turn.equal for turn in turns)
    assert {turn.move for turn in turns} == MOVES.keys()
    assert max(len(turn.prompt_ids) for turn in turns) > 2 * BLOCK_TOKENS
    assert sum(turn.cached for turn in turns) > 0
    assert len({turn.answer_ids for turn in turns}) > 3, "the answers are not all alike"


@pytest.mark.slow
@pytest.mark.parametrize("kv", CODECS)
@pytest.mark.parametrize("model", TINY)
def test_forty_turns_of_every_architecture_in_every_codec(model: str, kv: KVCodecName, folder: Path) -> None:
    assert all(turn.equal for turn in emulated_turns(model, kv, folder, seed=5, turns=40))
