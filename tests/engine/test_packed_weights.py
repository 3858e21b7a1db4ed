"""A model that memory has no room for answers from disk: the same ids, as much memory as planned, files used again."""

import errno
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from localrun_testing.tiny_models import save

from localrun.backends.cpu import abi
from localrun.backends.cpu.executor import CpuExecutor
from localrun.backends.cpu.library import load_library
from localrun.backends.registry import BACKENDS
from localrun.base.errors import DoesNotFitError, ModelFileError
from localrun.base.machine import Memory
from localrun.base.request import LoadOptions
from localrun.base.resources import resource
from localrun.cli.app import run_command_line
from localrun.engine import load as load_module
from localrun.engine import load_plan
from localrun.engine.generation import GenerationRequest
from localrun.engine.handle import Finished
from localrun.engine.load import LoadedModel, load
from localrun.engine.opened_model import open_model
from localrun.engine.packed_weights import files_of
from localrun.engine.sampler import SamplerSettings
from localrun.fit import estimate
from localrun.fit.estimate import Candidate, FitRow, Question, fit_table
from localrun.fit.mapped import Mappable
from localrun.fit.rates import Rates
from localrun.fit.shape import make_shape
from localrun.hub import fits
from localrun.hub.disk.stored import stored_at
from localrun.hub.fits import fit_stored
from localrun.model.config import LayerSpec, ModelConfig, RopeSpec
from localrun.model.weight_sizes import allocated_bytes
from localrun.storage import packed_file, weight_store
from localrun.storage.identity import Identity
from localrun.storage.label import Label, write_label
from localrun.storage.packed_file import FOOTER_BYTES, FORM, DiskError, PackedFile

BUILTIN = resource("builtin/localrun-tiny.gguf")
RESIDENT = 1 << 28  # of a process, as it is planned with
pytestmark = pytest.mark.skipif(load_library() is None, reason="weights are mapped by the native library")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOCALRUN_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(load_plan, "resident", lambda: RESIDENT)
    monkeypatch.setattr("localrun.engine.packed_weights.disk_rate", lambda: 1e9)
    return tmp_path / "home" / "cache" / "weights"


def options(path: Path = BUILTIN) -> LoadOptions:
    return LoadOptions(path, threads=2, ctx=256, kv="f16")


def with_free(monkeypatch: pytest.MonkeyPatch, nbytes: int, counts_files: bool = False) -> None:
    monkeypatch.setattr(load_plan, "memory", lambda: Memory(1 << 40, nbytes, counts_files=counts_files))


def least_free(monkeypatch: pytest.MonkeyPatch, path: Path = BUILTIN) -> int:
    """The least free memory with which a model loads: everything that may stays on disk."""

    opened = open_model(options(path))

    def loads(free: int) -> bool:
        with_free(monkeypatch, free)
        try:
            load_plan.plan_memory(options(path), opened, BACKENDS["cpu"], 2)
        except DoesNotFitError:
            return False
        return True

    low, high = 0, 1 << 30
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if loads(middle) else (middle + 1, high)
    with_free(monkeypatch, low)
    return low


def answer(loaded: LoadedModel) -> list[int]:
    vocabulary = min(loaded.plan.config.vocab_size, 300)
    prompt = tuple(n * 7 % vocabulary for n in range(100))
    request = GenerationRequest(prompt, 40, frozenset(), SamplerSettings(temperature=0.0), seed=0)
    *_, last = loaded.engine.submit(request)
    assert isinstance(last, Finished)
    return last.sequence.token_ids


def answer_of(path: Path = BUILTIN) -> tuple[list[int], LoadedModel]:
    loaded = load(options(path))
    try:
        return answer(loaded), loaded
    finally:
        loaded.engine.close()


@pytest.mark.parametrize("kind", ["builtin", "qwen3", "qwen3-moe", "gpt-oss", "gemma4-moe", "nemotron-h-moe"])
def test_answers_are_those_of_weights_in_memory(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = BUILTIN if kind == "builtin" else save(kind, tmp_path)
    with_free(monkeypatch, 1 << 30)
    expected, whole = answer_of(path)
    assert whole.plan.mapped == ()
    least_free(monkeypatch, path)
    found, loaded = answer_of(path)
    assert found == expected
    plan, info = loaded.plan, loaded.info
    assert plan.mapped_bytes > 0.1 * whole.plan.weights_bytes
    assert plan.weights_bytes + plan.mapped_bytes == whole.plan.weights_bytes == info.weights_bytes
    assert allocated_bytes(loaded.model.weights) == plan.weights_bytes
    assert info.mapped_bytes == plan.mapped_bytes
    assert plan.peak_bytes <= plan.budget_bytes
    assert any("weights stay on disk" in note and "tok/s" in note for note in info.notes)


def test_a_second_start_reads_what_the_first_wrote(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    least_free(monkeypatch)
    expected, _ = answer_of()
    monkeypatch.setattr(PackedFile, "_write", lambda *_: pytest.fail("written again"))
    done: list[tuple[int, int]] = []
    loaded = load(options(), lambda *at: done.append(at))
    assert answer(loaded) == expected
    loaded.engine.close()
    assert done[-1][0] == done[-1][1], "what is not read again is not waited for"


def test_files_of_other_weights_and_truncated_ones_are_rewritten(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    least_free(monkeypatch)
    expected, _ = answer_of()
    seals = {path: path.read_bytes()[-FOOTER_BYTES:][:32] for path in home.glob("*/*.packed")}
    assert len(seals) > 3
    other, cut, gone = list(seals)[:3]
    other.write_bytes(bytes(other.stat().st_size))
    cut.write_bytes(cut.read_bytes()[:-40])
    gone.unlink()
    found, _ = answer_of()
    assert found == expected
    assert {path: path.read_bytes()[-FOOTER_BYTES:][:32] for path in home.glob("*/*.packed")} == seals


def test_another_model_under_the_same_name_has_its_own(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.gguf"
    data = bytearray(BUILTIN.read_bytes())
    path.write_bytes(data)
    least_free(monkeypatch, path)
    answer_of(path)
    (before,) = home.glob("*/label.json")
    info = open_model(options(path)).source.tensors["blk.5.ffn_down.weight"]
    data[info.offset + 2] ^= 1
    path.write_bytes(data)
    found, _ = answer_of(path)
    (after,) = home.glob("*/label.json")
    assert after != before, "what was packed of the file before it changed is gone"
    with_free(monkeypatch, 1 << 30)
    assert answer_of(path)[0] == found


def test_files_of_a_model_that_changes_while_it_loads_are_never_found_again(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(BUILTIN.read_bytes())
    least_free(monkeypatch, path)
    opened = open_model(options(path))
    os.utime(path, (1, 1))
    backend = BACKENDS["cpu"]
    layout, plan = load_plan.plan_memory(options(path), opened, backend, 2)
    found = [next(iter(files_of(plan, options(path), opened, layout).values())).path.parent for _ in range(2)]
    assert found[0] != found[1]
    with pytest.raises(ModelFileError, match="the file changed after it was opened"):
        load_module.load_on(backend, (), options(path), opened, lambda *_: None, 0.0)


def test_a_full_disk_is_told_before_and_while_it_is_written(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    least_free(monkeypatch)
    usage = shutil.disk_usage(home.parents[2])
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _path: usage._replace(free=1 << 20))
        patch.setattr(Identity, "result", lambda _self: pytest.fail("the whole file is read through before"))
        with pytest.raises(DiskError, match=r"of packed weights do not fit the disk of .*1\.00 MiB are free"):
            load(options())
    written = []

    def write(fd: int, data: memoryview) -> int:
        written.append(len(data))
        if len(written) > 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return os.write(fd, data[: 1 << 16])

    with monkeypatch.context() as patch:
        patch.setattr(packed_file, "os", SimpleNamespace(**{**vars(os), "write": write}))
        with pytest.raises(DiskError, match="is full") as refused:
            load(options())
    assert refused.value.exit_code == 4
    assert not list(home.glob("*/*.tmp")), "nothing half written is left"
    answer_of()


def test_what_others_left_makes_room(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, age in (("a", 3), ("b", 2), ("c", 1)):
        (home / name).mkdir(parents=True)
        write_label(home / name, Label(form=FORM))
        (home / name / "layers.0.up.packed").write_bytes(bytes(1 << 20))
        os.utime(home / name, (time.time() - age, time.time() - age))
    usage = shutil.disk_usage(home)
    least_free(monkeypatch)
    free = weight_store.SPARE + (2 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage._replace(total=1 << 40, free=free))
    _, loaded = answer_of()
    assert 2 << 20 < loaded.plan.mapped_bytes < 5 << 20
    kept = {name for name in "abc" if (home / name).exists()}
    assert kept == set("abc"[-(-(loaded.plan.mapped_bytes - (2 << 20)) // (1 << 20)) :]), "the oldest go, no more"


def test_where_files_count_or_cannot_be_kept_it_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = least_free(monkeypatch)
    with_free(monkeypatch, free, counts_files=True)
    with pytest.raises(DoesNotFitError, match="does not fit the free memory"):
        load(options())
    with_free(monkeypatch, free - 1)
    with pytest.raises(DoesNotFitError, match="does not fit the free memory"):
        load(options())
    with_free(monkeypatch, free)
    monkeypatch.setattr("localrun.fit.disk_rate.writable_folder", lambda _: None)
    with pytest.raises(DoesNotFitError, match="does not fit the free memory"):
        load(options())


BOTH = """
import sys
from pathlib import Path
from localrun.base.machine import Memory
from localrun.engine import load as load_module, load_plan
from localrun.base.request import LoadOptions
load_plan.memory = lambda: Memory(1 << 40, int(sys.argv[2]))
load_plan.resident = lambda: 1 << 28
sys.stdin.readline()
loaded = load_module.load(LoadOptions(Path(sys.argv[1]), threads=2, ctx=256, kv="f16"))
networks = [linear for layer in loaded.model.weights.layers for linear in (layer.gate, layer.up, layer.down)]
print(loaded.plan.mapped_bytes, *[hash(bytes(linear.packed.planes[0])) for linear in networks])
"""


def test_two_processes_that_start_at_once_share_what_is_written(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = [sys.executable, "-c", BOTH, str(BUILTIN), str(least_free(monkeypatch))]
    env = {**os.environ, "PYTHONHASHSEED": "0"}
    started = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env) for _ in range(2)
    ]
    for process in started:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    told = [process.communicate(timeout=120)[0] for process in started]
    assert [process.returncode for process in started] == [0, 0]
    assert told[0] == told[1] != ""
    assert not list(home.glob("*/*.tmp"))


def test_the_cache_command_lists_and_clears_it(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    least_free(monkeypatch)
    _, loaded = answer_of()

    def cache(*arguments: str) -> str:
        assert run_command_line(["cache", *arguments]) == 0
        return capsys.readouterr().out

    (row,) = json.loads(cache("list", "--json"))
    assert (row["model"], row["blocks"]) == ("localrun-tiny", len(loaded.plan.mapped))
    assert row["bytes"] == loaded.plan.mapped_bytes + FOOTER_BYTES * row["blocks"]
    assert "of packed weights" in cache("list")
    assert json.loads(cache("clear", "-m", "localrun-tiny", "--yes", "--json")) == {"freed": row["bytes"]}
    assert not list(home.glob("*/*.packed"))


@pytest.mark.parametrize("kind", ["builtin", "qwen3-moe"])
def test_fit_says_before_what_a_load_does(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdict, and the bytes that stay on disk, with whatever memory there is."""
    path = BUILTIN if kind == "builtin" else save(kind, tmp_path)
    monkeypatch.setattr(fits, "machine_rates", lambda: Rates(40e9, 200e9))
    monkeypatch.setattr(fits, "disk_rate", lambda: 1e9)
    monkeypatch.setattr(load_plan, "resident", lambda: 0)
    monkeypatch.setattr(estimate, "USUAL_THREADS", 2)
    least, verdicts = least_free(monkeypatch, path), set()
    for free in (least - 4096, least, least + (1 << 20), least + (16 << 20), least + (64 << 20)):
        row = next(row for row in fit_stored(stored_at(path), free, ctx=256).rows if row.kv_codec == "f16")
        verdicts.add(row.verdict)
        with_free(monkeypatch, free)
        try:
            _, loaded = answer_of(path)
        except DoesNotFitError:
            assert row.mapped_bytes == 0
            assert row.verdict in ("no", "tight")
            continue
        assert row.weights_bytes == loaded.info.weights_bytes
        assert row.mapped_bytes == loaded.plan.mapped_bytes
        assert row.total_bytes - row.mapped_bytes == loaded.plan.needed_bytes
        assert row.verdict != "no"
    assert "fits" in verdicts


def test_a_table_of_what_stays_on_disk() -> None:
    """8 GB of weights, half of them experts of which a token uses one in eight, and a disk of 1 GB/s."""
    layer = LayerSpec(kind="full", window=None, rope=0, n_heads=32, n_kv_heads=8, head_dim=128, ffn_size=8192)
    config = ModelConfig("llama", 4096, 32000, 32768, 1e-6, (layer,) * 32, (RopeSpec(1e4, 128),))
    parts = tuple(Mappable(f"layers.{n}", 1 << 28, 1 << 25) for n in range(16))
    candidate = Candidate("Q4_K_M", 8 << 30, 5 << 30, 4.9, mappable=parts)
    rates = Rates(40e9, 1e12)

    def row(budget: int, disk: bool = True) -> FitRow:
        question = Question(budget, rates, 4096, disk=(lambda: 1e9) if disk else None)
        fit = fit_table(make_shape(config, tied=True), [candidate], question)
        assert fit.recommended is None or fit.recommended.verdict != "no"
        return next(row for row in fit.rows if row.kv_codec == "f16")

    whole = row(16 << 30)
    assert (whole.verdict, whole.mapped_bytes) == ("fits", 0)
    assert row(8 << 30, disk=False).verdict == "no"
    some, many = row(8 << 30), row(6 << 30)
    assert some.verdict == many.verdict == "disk"
    for found, budget in ((some, 8 << 30), (many, 6 << 30)):
        over = found.total_bytes - (budget - (512 << 20))
        assert over <= found.mapped_bytes < over + (1 << 28), "no more than must"
        cached = budget - (found.total_bytes - found.mapped_bytes)
        missed = found.mapped_bytes / 8 * (1 - cached / found.mapped_bytes) ** 3
        seconds = missed / 1e9 + ((5 << 30) + found.kv_bytes - missed) / (40e9 * 0.7)
        assert found.est_decode_tps == pytest.approx(1 / seconds, rel=0.03)
        assert found.est_ttft_ms > whole.est_ttft_ms + 1000 * found.mapped_bytes / 1.01e9
        assert found.max_ctx > 4096
        assert found.max_sequences >= 1
    assert row(3 << 30).verdict == "no", "what every token needs does not fit"


def test_the_commands_say_that_weights_stay_on_disk(capsys: pytest.CaptureFixture[str]) -> None:
    def run(*arguments: str) -> tuple[int, str]:
        return run_command_line([*arguments]), capsys.readouterr().out

    shown = json.loads(run("show", str(BUILTIN), "--json")[1])
    (held,), (mappable,) = shown["held_bytes"].values(), shown["mappable_bytes"].values()
    assert 0.3 * held < mappable < held
    asked = ("fit", "llama-3.2-3b", "--precision", "Q8_0", "--ctx", "4096", "--memory", "3GiB", "--offline", "--check")
    code, out = run(*asked, "--json")
    assert code == 0, "it runs"
    for row in json.loads(out)["rows"]:
        assert row["verdict"] == "disk"
        assert 3 << 30 < row["total_bytes"] <= (2.625 * (1 << 30)) + row["mapped_bytes"]
        assert 0 < row["est_decode_tps"] < 20
    said = run(*asked)[1]
    assert "with * weights stay on disk, and it is slow" in said
    assert "of the weights left on disk" in said
    assert run("fit", "qwen3-8b", "--memory", "2GiB", "--offline", "--check")[0] == 4


@pytest.mark.parametrize("kind", ["qwen3", "qwen3-moe"])
def test_what_comes_next_is_asked_for_before(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By every instruction that reads weights in files: those of the next one, or the experts that were chosen."""
    path = save(kind, tmp_path)
    with_free(monkeypatch, 1 << 30)
    assert announcements(answer_of(path)[1]) == []
    least_free(monkeypatch, path)
    _, loaded = answer_of(path)
    found = announcements(loaded)
    mapped = [part.name for part in loaded.plan.mapped if part.name != "embed"]
    assert sum(n for n, _ in found) == len(mapped)
    assert {of_experts for _, of_experts in found} == {kind == "qwen3-moe"}


def announcements(loaded: LoadedModel) -> list[tuple[int, bool]]:
    """How many matrices each names, and whether only some of their rows."""
    executor = loaded.engine.runner.executor
    assert isinstance(executor, CpuExecutor)
    asked = [one.will_need for one in executor.instructions if one.op == abi.OPS.index("will_need")]
    return [(sum(map(bool, one.weight)), bool(one.routes)) for one in asked]
