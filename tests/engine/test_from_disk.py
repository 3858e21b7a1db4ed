"""A model that memory has no room for answers from disk: the same ids, as much memory as planned, files used again."""

import errno
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from localrun_testing.cli import localrun
from localrun_testing.tiny_models import save

from localrun.backends.cpu.library import load_library
from localrun.backends.registry import BACKENDS
from localrun.base.errors import DoesNotFitError
from localrun.base.machine import Memory
from localrun.base.request import LoadOptions
from localrun.base.resources import resource
from localrun.cache import packed_weights
from localrun.engine import load as load_module
from localrun.engine.generation import GenerationRequest
from localrun.engine.handle import Finished
from localrun.engine.load import LoadedModel, load
from localrun.engine.opened import open_model
from localrun.engine.sampler import SamplerSettings
from localrun.formats import packed_file
from localrun.formats.packed_file import DiskError, PackedFile
from localrun.model.load import allocated_bytes

BUILTIN = resource("builtin/localrun-tiny.gguf")
RESIDENT = 1 << 28  # of a process, as it is planned with
pytestmark = pytest.mark.skipif(load_library() is None, reason="weights are mapped by the native library")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOCALRUN_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(load_module, "resident", lambda: RESIDENT)
    monkeypatch.setattr("localrun.engine.from_disk.disk_rate", lambda: 1e9)
    return tmp_path / "home" / "cache" / "weights"


def options(path: Path = BUILTIN) -> LoadOptions:
    return LoadOptions(path, threads=2, ctx=256, kv="f16")


def with_free(monkeypatch: pytest.MonkeyPatch, nbytes: int, counts_files: bool = False) -> None:
    monkeypatch.setattr(load_module, "memory", lambda: Memory(1 << 40, nbytes, counts_files=counts_files))


def least_free(monkeypatch: pytest.MonkeyPatch, path: Path = BUILTIN) -> int:
    """The least free memory with which a model loads: everything that may stays on disk."""

    opened = open_model(options(path))

    def loads(free: int) -> bool:
        with_free(monkeypatch, free)
        try:
            load_module.plan_memory(options(path), opened, BACKENDS["cpu"], 2)
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


def test_files_of_other_weights_and_cut_ones_are_made_anew(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    least_free(monkeypatch)
    expected, _ = answer_of()
    seals = {path: path.read_bytes()[-32:] for path in home.glob("*/*.packed")}
    assert len(seals) > 3
    other, cut, gone = list(seals)[:3]
    other.write_bytes(bytes(other.stat().st_size))
    cut.write_bytes(cut.read_bytes()[:-40])
    gone.unlink()
    found, _ = answer_of()
    assert found == expected
    assert {path: path.read_bytes()[-32:] for path in home.glob("*/*.packed")} == seals


def test_another_model_under_the_same_name_has_its_own(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.gguf"
    data = bytearray(BUILTIN.read_bytes())
    path.write_bytes(data)
    least_free(monkeypatch, path)
    answer_of(path)
    info = open_model(options(path)).source.tensors["blk.5.ffn_down.weight"]
    data[info.offset + 2] ^= 1
    path.write_bytes(data)
    found, _ = answer_of(path)
    assert len(list(home.glob("*/label.json"))) == 2
    with_free(monkeypatch, 1 << 30)
    assert answer_of(path)[0] == found


def test_a_full_disk_is_told_before_and_while_it_is_written(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    least_free(monkeypatch)
    usage = shutil.disk_usage(home.parents[2])
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _path: usage._replace(free=1 << 20))
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
        (home / name / "label.json").write_text("{}")
        (home / name / "layers.0.up.packed").write_bytes(bytes(1 << 20))
        os.utime(home / name, (time.time() - age, time.time() - age))
    usage = shutil.disk_usage(home)
    least_free(monkeypatch)
    free = packed_weights.SPARE + (2 << 20)
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
    monkeypatch.setattr("localrun.engine.from_disk.writable_folder", lambda _: None)
    with pytest.raises(DoesNotFitError, match="does not fit the free memory"):
        load(options())


BOTH = """
import sys
from pathlib import Path
from localrun.base.machine import Memory
from localrun.engine import load as load_module
from localrun.base.request import LoadOptions
load_module.memory = lambda: Memory(1 << 40, int(sys.argv[2]))
load_module.resident = lambda: 1 << 28
sys.stdin.readline()
loaded = load_module.load(LoadOptions(Path(sys.argv[1]), threads=2, ctx=256, kv="f16"))
networks = [linear for layer in loaded.model.weights.layers for linear in (layer.gate, layer.up, layer.down)]
print(loaded.plan.mapped_bytes, *[hash(bytes(weight.planes[0])) for weight, _ in networks])
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


def test_the_cache_command_lists_and_clears_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    least_free(monkeypatch)
    _, loaded = answer_of()
    (row,) = localrun("cache", "list", "--json", LOCALRUN_HOME=os.environ["LOCALRUN_HOME"]).json
    assert (row["model"], row["blocks"]) == ("localrun-tiny", len(loaded.plan.mapped))
    assert row["bytes"] == loaded.plan.mapped_bytes + 32 * row["blocks"]
    shown = localrun("cache", "list", LOCALRUN_HOME=os.environ["LOCALRUN_HOME"]).out
    assert "of weights larger than memory" in shown
    cleared = localrun(
        "cache", "clear", "-m", "localrun-tiny", "--yes", "--json", LOCALRUN_HOME=os.environ["LOCALRUN_HOME"]
    )
    assert cleared.json == {"freed": row["bytes"]}
    assert not list(home.glob("*/*.packed"))
