"""What a real load takes against what its plan said: bytes of the cache exactly, working memory at most."""

import json
import random
import re
from itertools import product
from pathlib import Path

import pytest
import torch
from localrun_testing.cli import localrun
from localrun_testing.gguf_convert import convert
from localrun_testing.tiny_models import save

from localrun.backends.cpu.executor import CpuExecutor
from localrun.backends.cpu.library import load_library
from localrun.base.errors import DoesNotFitError
from localrun.base.machine import Memory
from localrun.base.request import KVCodecName, LoadOptions
from localrun.base.resources import resource
from localrun.base.units import gib
from localrun.cli.app import run_command_line
from localrun.engine.generation import GenerationRequest
from localrun.engine.load import LoadedModel, load
from localrun.engine.sampler import SamplerSettings
from localrun.hub.disk.stored import stored_at
from localrun.hub.fits import fit_stored
from localrun.model.weight_sizes import allocated_bytes
from localrun.ops.largest_step import MAX_ROWS, max_sequences

BUILTIN = resource("builtin/localrun-tiny.gguf")
CODECS: tuple[KVCodecName, ...] = ("f32", "f16", "q8", "k8v4", "q4")


def opened(**options: object) -> LoadedModel:
    return load(LoadOptions(path=BUILTIN, threads=1, **options))  # type: ignore[arg-type]


def check_working_memory(loaded: LoadedModel) -> None:
    """What the CPU backend has reserved is what was planned, rows of logits aside that are address space, no more."""
    plan, executor = loaded.plan, loaded.engine.runner.executor
    if isinstance(executor, CpuExecutor):
        arena = sum(n_bytes for _, n_bytes in executor.reserved)
        unused_logits = (MAX_ROWS - max_sequences(plan.ctx)) * 4 * plan.config.vocab_size
        assert 0.5 * plan.scratch_bytes < arena <= plan.scratch_bytes + unused_logits


@pytest.mark.parametrize(("kv", "window"), [*product(CODECS, [None, 128])])
def test_a_load_takes_what_its_plan_says(kv: KVCodecName, window: int | None) -> None:
    loaded = opened(ctx=700, kv=kv, window=window)
    executor = loaded.engine.runner.executor
    try:
        assert loaded.info.kv_codec == loaded.plan.codec.name == kv
        assert executor.kv_nbytes == loaded.plan.kv_bytes
        assert (loaded.info.backend == "cpu") == (load_library() is not None)
        check_working_memory(loaded)
    finally:
        loaded.engine.close()


@pytest.mark.parametrize(
    ("file_format", "kind"),
    [
        *product(
            ["safetensors", "gguf"],
            [
                "qwen3.5-moe",
                "lfm2",
                "lfm2-moe",
                "granite-hybrid",
                "nemotron-h",
                "nemotron-h-moe",
                "glm-4.7-flash",
                "gemma4",
                "gemma4-e2b",
                "gemma4-moe",
            ],
        )
    ],
)
def test_working_memory_of_layers_of_their_own_kind_is_planned(kind: str, file_format: str, tmp_path: Path) -> None:
    folder = save(kind, tmp_path)
    path = folder if file_format == "safetensors" else convert(folder, tmp_path / "model.gguf")
    loaded = load(LoadOptions(path, threads=1, ctx=128))
    try:
        executor = loaded.engine.runner.executor
        assert executor.kv_nbytes == loaded.plan.kv_bytes
        check_working_memory(loaded)
    finally:
        loaded.engine.close()


@pytest.mark.parametrize("kv", ["f16", "q4"])
def test_chats_with_states_take_what_is_told_of_them(kv: KVCodecName, tmp_path: Path) -> None:
    """Until the blocks of keys and values run out, and then no more states than there is room for chats."""
    path = save("qwen3.5", tmp_path)
    config = (path / "config.json").read_text()
    (path / "config.json").write_text(
        config.replace('"max_position_embeddings": 512', '"max_position_embeddings": 2048')
    )
    loaded = load(LoadOptions(path, threads=1, ctx=2048, kv=kv))
    engine, plan = loaded.engine, loaded.plan
    engine.scheduler.cost.rows_per_second = 1e12  # whole chunks
    chance = random.Random(0)
    try:
        for chats in range(1, 5):
            prompt = tuple(chance.randrange(60) for _ in range(2048 - 72))
            for _ in engine.submit(GenerationRequest(prompt, 70, frozenset(), SamplerSettings(0.0), seed=0)):
                pass
            pools = engine.store.pools[: len(plan.groups)]
            kept = min([float(chats), *(group.chats for group in plan.groups if group.is_whole)])
            told = [group.used(kept, 0) for group in plan.groups]
            taken = [pool.n_touched * group.block_bytes for pool, group in zip(pools, plan.groups, strict=True)]
            for one_told, one_taken, group in zip(told, taken, plan.groups, strict=True):
                assert one_taken <= one_told <= one_taken + group.block_bytes
    finally:
        engine.close()


def test_show_tells_the_heads_of_layers_that_have_some(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = convert(save("granite-hybrid", tmp_path), tmp_path / "model.gguf")
    run_command_line(["show", str(path), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert (told["n_heads"], told["n_kv_heads"], told["head_dim"]) == (6, 2, 16)
    assert told["state_bytes"] == 3 * 4 * (3 * 288 + 192 * 24), "inputs of the convolution, and the state proper"


PRECISIONS = ("bf16", "int2", "int4", "int8")
KINDS = (
    *("qwen3-moe", "phi3", "ministral-3", "gemma4-e2b"),
    *("qwen3-next", "lfm2-moe", "granite-hybrid-moe", "nemotron-h-moe", "deepseek-v3"),
)


@pytest.mark.parametrize("kind", KINDS)
def test_show_and_fit_and_a_load_say_the_same_of_weights(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also of matrices that are quantised while they are read, and of a file with more in it than is loaded."""
    folder = save(kind, tmp_path, dtype=torch.bfloat16)
    rows = fit_stored(stored_at(folder), 8 << 30, ctx=128).rows
    told = {row.precision: row.weights_bytes for row in rows}
    assert sorted(told) == sorted(PRECISIONS)
    assert not any(row.approximate for row in rows)
    for precision in PRECISIONS:
        run_command_line(["show", str(folder), "--precision", precision, "--json"])
        assert json.loads(capsys.readouterr().out)["held_bytes"] == {precision: told[precision]}
        loaded = load(LoadOptions(folder, precision=precision, ctx=128, threads=1))
        loaded.engine.close()
        found = (loaded.plan.weights_bytes, allocated_bytes(loaded.model.weights))
        assert found == (told[precision], told[precision]), precision


def test_a_load_that_does_not_fit_is_refused_before_anything_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = opened(ctx=256)
    loaded.engine.close()
    weights = re.escape(gib(loaded.plan.weights_bytes))
    monkeypatch.setattr("localrun.engine.load_plan.memory", lambda: Memory(1 << 30, 16 << 20))
    monkeypatch.setattr("localrun.engine.load.load_model", lambda *_: pytest.fail("weights were read"))
    with pytest.raises(DoesNotFitError, match=rf"16\.0 MiB are free; weights take {weights},") as refused:
        opened(ctx=1024)
    assert refused.value.hint == "choose a smaller model, or close other programs"


def test_a_run_says_how_its_cache_is_kept() -> None:
    ran = localrun("run", "--no-stdin", "--json", "--max-tokens", "3", "--kv", "q4", "hello")
    assert ran.code == 0, ran.err
    assert ran.json["kv_codec"] == "q4"
    assert any("4-bit keys break models of fewer than 3 billion parameters" in note for note in ran.json["notes"])


@pytest.mark.parametrize(("kv", "window"), [("f16", None), ("q8", None), ("q4", 256)])
def test_chats_take_the_memory_that_is_said_of_them(kv: KVCodecName, window: int | None) -> None:
    """Blocks that were ever used take memory: also those that left a window, and stay for going back."""
    loaded = opened(ctx=512, kv=kv, window=window)
    chance = random.Random(0)
    try:
        for chats in (1, 2, 3):
            prompt = tuple(chance.randrange(300) for _ in range(440))
            request = GenerationRequest(prompt, 70, frozenset(), SamplerSettings(temperature=0.0), seed=0)
            loaded.engine.scheduler.cost.rows_per_second = 1e12  # whole chunks, as on a faster machine
            list(loaded.engine.submit(request))
            taken = loaded.engine.view().touched_bytes if loaded.plan.grows else loaded.plan.kv_bytes
            assert 0.85 * loaded.plan.kv_after(chats) <= taken <= loaded.plan.kv_after(chats)
        assert loaded.plan.needed_kv_bytes < taken <= loaded.plan.kv_bytes, "more than one chat needs"
        assert loaded.plan.peak_after(1000) <= loaded.plan.peak_bytes
    finally:
        loaded.engine.close()


def test_no_more_threads_are_started_than_can_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """They would take turns, each with its part of a step, and the others would wait for it."""
    monkeypatch.setattr("localrun.engine.load_plan.most_threads", lambda: 1)
    loaded = load(LoadOptions(path=BUILTIN, threads=64, ctx=128))
    assert loaded.threads == 1
    loaded.engine.close()
