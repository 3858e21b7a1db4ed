"""Files that are mapped while a model computes: damage is found, named and mended, and never answers in silence."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from localrun_testing.cli import localrun
from localrun_testing.kept_weights import keep_packed_weights
from localrun_testing.tiny_models import save

from localrun.backends.cpu.library import load_library
from localrun.base.errors import LocalrunError, ModelFileError
from localrun.base.events import Completion, Done, Token
from localrun.base.request import LoadOptions, Request, Sampling
from localrun.base.resources import resource
from localrun.client.local import LocalClient
from localrun.engine import engine
from localrun.engine.runner import Runner
from localrun.model import weight_sizes
from localrun.model.weight_sizes import allocated_bytes
from localrun.storage.idle_check import IdleCheck
from localrun.storage.label import Label, write_label
from localrun.storage.mapped_files import LOOKED_AT, DamagedWeightsError, MappedFiles
from localrun.storage.packed_file import FOOTER_BYTES, FORM, PackedFile

BUILTIN = resource("builtin/localrun-tiny.gguf")
MUCH = 100 << 20  # bytes of disk, more than a model here takes
REQUEST = Request(prompt="What is a KV cache? " * 8, sampling=Sampling(temperature=0.0), max_tokens=12)
pytestmark = pytest.mark.skipif(load_library() is None, reason="weights are mapped by the native library")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOCALRUN_HOME", str(tmp_path / "home"))
    keep_packed_weights(monkeypatch)
    monkeypatch.setattr(engine, "IDLE_SECONDS", 3600.0)  # nothing is checked before a test waits for it
    return tmp_path / "home" / "cache"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    copy = tmp_path / "model.gguf"
    copy.write_bytes(BUILTIN.read_bytes())
    return copy


def client(path: Path, packed_weights: int = MUCH, disk_cache: int = 0) -> LocalClient:
    options = LoadOptions(path, threads=2, ctx=256, kv="f16", packed_weights=packed_weights, disk_cache=disk_cache)
    return LocalClient(options)


def ask(one: LocalClient, chat: str = "") -> Completion:
    return next(event.completion for event in one.generate(replace(REQUEST, chat_id=chat)) if isinstance(event, Done))


def packed(path: Path) -> tuple[int, ...]:
    """Answer, and wait until all weights are packed on the disk."""
    with client(path) as one:
        expected = ask(one).token_ids
        if one.model.kept.thread.ident:
            one.model.kept.thread.join()
    return expected


def files(home: Path) -> list[Path]:
    return sorted(home.glob("weights/*/*.packed"))


def matrices(home: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes()[:-FOOTER_BYTES] for file in files(home)}


def rot(file: Path, fill: int | None = None) -> None:
    """As a disk does it: other bytes, the same size and times."""
    status, data = file.stat(), bytearray(file.read_bytes())
    end = len(data) - FOOTER_BYTES
    data[:end] = bytes([fill]) * end if fill is not None else bytes(end // 2) + data[end // 2 : end]
    file.write_bytes(data)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def until_checked(one: LocalClient) -> None:
    one.model.engine.resting.set()
    one.model.check.thread.join()


def zero_half(file: Path) -> None:
    with open(file, "r+b") as opened:
        opened.write(bytes(file.stat().st_size // 2))


@pytest.mark.parametrize(
    "change", [zero_half, lambda file: os.truncate(file, 100), lambda file: os.utime(file, (9, 9))]
)
def test_files_that_were_written_to_are_packed_again_before_they_answer(
    home: Path, path: Path, change: Callable[[Path], None]
) -> None:
    expected, whole = packed(path), matrices(home)
    for file in files(home)[::3]:
        change(file)
    with client(path) as one:
        (note,) = one.info.notes
        assert note.startswith(f"{len(files(home)[::3])} files of packed weights on the disk changed")
        assert ask(one).token_ids == expected
        one.model.kept.thread.join()
    assert matrices(home) == whole
    with client(path) as one:
        assert one.info.notes == ()
        assert len(one.model.kept.found) == len(whole)


def test_idle_check_finds_damaged_packed_weights(home: Path, path: Path) -> None:
    """Nothing that was computed with it is kept, by this process or by others before."""
    expected, whole = packed(path), matrices(home)
    rot(files(home)[5])
    with client(path, disk_cache=MUCH) as one:
        assert ask(one, chat="a").token_ids != expected
    assert list(home.rglob("*.kv")), "what came of them is kept"
    with client(path, disk_cache=MUCH) as one:
        until_checked(one)
        n_found = len(one.model.kept.found)
        answer = ask(one, chat="a")
        assert answer.token_ids == expected
        assert answer.cached_tokens == 0
        assert "a file of packed weights" in answer.cache.cache_note
        assert "damaged on the disk, and are removed and packed again" in answer.cache.cache_note
        assert len(one.model.kept.found) == n_found - 1
        assert "damaged" not in ask(one).cache.cache_note, "told once"
        one.model.kept.thread.join()
    assert matrices(home) == whole
    with client(path, disk_cache=MUCH) as one:
        assert ask(one, chat="a").token_ids == expected


def test_blocks_of_damaged_weights_go_with_an_engine_that_ends_at_once(home: Path, path: Path) -> None:
    packed(path)
    rot(files(home)[5])
    with client(path, disk_cache=MUCH) as one:
        ask(one, chat="a")
    assert list(home.rglob("*.kv"))
    with client(path, disk_cache=MUCH) as one:
        assert one.model.engine.files.verify(lambda: None) is not None
    assert not list(home.rglob("*.kv"))


def test_numbers_that_are_none_are_first_blamed_on_packed_weights(
    home: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = packed(path)
    for file in files(home)[3:6]:
        rot(file, 0xFF)
    with client(path) as one:
        with pytest.raises(LocalrunError, match=r"3 files of packed weights in .* were damaged on the disk") as caught:
            ask(one)
        assert not isinstance(caught.value, ModelFileError)
        assert "not damaged" in caught.value.hint
        assert ask(one).token_ids == expected
    checked: list[PackedFile] = []

    def is_damaged(file: PackedFile, _: object) -> bool:
        checked.append(file)
        return False

    monkeypatch.setattr(PackedFile, "is_damaged", is_damaged)
    with client(path) as one:
        run = one.model.engine.runner.run

        def not_finite(*step: object) -> object:
            logits = run(*step)  # type: ignore[arg-type]
            return replace(logits, finite=np.zeros_like(logits.finite))

        monkeypatch.setattr(one.model.engine.runner, "run", not_finite)
        for _ in range(2):
            with pytest.raises(ModelFileError, match="values that are not numbers"):
                ask(one)
        assert len(checked) == len(one.model.kept.found), "they are whole, which is looked at once"


def test_each_version_of_a_file_is_read_back_once(home: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed(path)
    checked: list[str] = []
    is_damaged = PackedFile.is_damaged

    def counted(file: PackedFile, before_piece: Callable[[], None]) -> bool:
        checked.append(file.path.name)
        return is_damaged(file, before_piece)

    monkeypatch.setattr(PackedFile, "is_damaged", counted)
    names = [file.name for file in files(home)]
    with client(path) as one:
        assert checked == [], "while nothing rests"
        until_checked(one)
    assert sorted(checked) == names
    checked.clear()
    rot(files(home)[2])
    for expected in ([names[2]], []):
        with client(path) as one:
            until_checked(one)
        assert checked == expected
        checked.clear()


def test_a_request_stops_the_reading_before_the_next_piece() -> None:
    read: list[int] = []
    resting = threading.Event()

    class Pieces(MappedFiles):
        def verify(self, before_piece: Callable[[], None]) -> None:
            for piece in range(4):
                before_piece()
                read.append(piece)
                resting.clear()
                turns[piece].set()

    turns = [threading.Event() for _ in range(4)]
    check = IdleCheck(Pieces(), resting, lambda: None)
    check.start()
    assert read == []
    for piece in range(3):
        resting.set()
        turns[piece].wait()
        assert read == [*range(piece + 1)]
    check.close()
    assert read == [0, 1, 2], "and leaves the rest where the engine ends"
    assert not check.thread.is_alive()


def test_the_engine_rests_once_it_has_nothing_to_do(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "IDLE_SECONDS", 0.0)
    packed(path)
    rested: list[bool] = []
    submit = Runner.run

    def run(self: Runner, *step: object) -> object:
        rested.append(one.model.engine.resting.is_set())
        return submit(self, *step)  # type: ignore[arg-type]

    monkeypatch.setattr(Runner, "run", run)
    with client(path) as one:
        assert one.model.engine.resting.wait(60)
        ask(one)
        assert rested
        assert not any(rested)
        assert one.model.engine.resting.wait(60)


KILLED = """
import os, signal, sys
from pathlib import Path
from localrun.base.request import LoadOptions
from localrun.engine import packed_weights
from localrun.storage import identity
from localrun.engine.load import load
from localrun.storage.packed_file import PackedFile
packed_weights.LEAST_BYTES, packed_weights.memory_nodes, identity.SETTLED_SECONDS = 0, lambda: [[0]], -1.0
left = [3]
def die(work):
    def wrapped(*given):
        left[0] -= 1
        return work(*given) if left[0] else os.kill(os.getpid(), signal.SIGKILL)
    return wrapped
what = sys.argv[2]
if what == "writing":
    import localrun.storage.packed_file as there
    there.replace_file = die(there.replace_file)
else:
    PackedFile.is_damaged = die(PackedFile.is_damaged)
loaded = load(LoadOptions(Path(sys.argv[1]), threads=1, ctx=256, kv="f16", packed_weights=100 << 20))
loaded.engine.resting.set()
(loaded.kept.thread if what == "writing" else loaded.check.thread).join()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no signals on Windows")
def test_who_is_killed_while_writing_or_checking_leaves_nothing_wrong(home: Path, path: Path) -> None:
    for what in ("writing", "checking"):
        if what == "checking":
            expected = packed(path)
        assert subprocess.run([sys.executable, "-c", KILLED, str(path), what]).returncode == -signal.SIGKILL
        assert len(files(home)) > 2 or what == "writing"
    with client(path) as one:
        assert len(one.model.kept.found) == len(files(home))
        until_checked(one)
        assert ask(one).token_ids == expected
    assert len(json.loads(next(home.glob("weights/*/verified.json")).read_text())) == len(files(home))
    assert not list(home.glob("weights/*/*.tmp"))


def test_files_of_the_form_before_go_and_are_not_counted(home: Path, path: Path, tmp_path: Path) -> None:
    for name, model in (("a" * 32, path), ("b" * 32, tmp_path / "other.gguf")):
        old = home / "weights" / name
        old.mkdir(parents=True)
        write_label(old, Label("old", str(model), form=FORM - 1))
        (old / "output.packed").write_bytes(bytes(1000))
    expected = packed(path)
    (folder,) = (one for one in (home / "weights").iterdir() if one.is_dir())
    (row,) = localrun("cache", "list", "--json", LOCALRUN_HOME=os.environ["LOCALRUN_HOME"]).json
    assert row["blocks"] == len(files(home))
    assert row["bytes"] == sum(file.stat().st_size for file in folder.glob("*.packed"))
    assert packed(path) == expected


@pytest.mark.parametrize("change", [zero_half, lambda file: os.truncate(file, 100)])
def test_packed_files_that_are_written_to_in_use_are_packed_again(
    path: Path, home: Path, change: Callable[[Path], None]
) -> None:
    expected = packed(path)
    with client(path) as one:
        for file in files(home)[1:3]:
            change(file)
        answer = ask(one)
        assert answer.token_ids == expected
        assert "packed again" in answer.cache.cache_note


def test_packed_files_are_looked_at_in_turns_while_a_model_answers(
    path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed(path)
    run = Runner.run
    steps: list[int] = []

    def change_after_two(self: Runner, *step: object) -> object:
        steps.append(0)
        if len(steps) == 2:
            os.utime(files(home)[-1], (9, 9))
        return run(self, *step)  # type: ignore[arg-type]

    monkeypatch.setattr(Runner, "run", change_after_two)
    with client(path) as one:
        with pytest.raises(DamagedWeightsError):
            ask(one)
        assert len(steps) <= 3 + len(files(home)) // LOOKED_AT + 1


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model whose largest table stays in its file."""
    monkeypatch.setattr(weight_sizes, "COPIED_BYTES", 0)
    return save("gemma4-e2b", tmp_path / "model")


def overwrite(file: Path) -> None:
    with open(file, "r+b") as opened:
        opened.seek(20_000)
        opened.write(b"\0\0\0\x40" * ((file.stat().st_size - 20_000) // 4))


@pytest.mark.parametrize("change", [overwrite, lambda file: os.truncate(file, 4096)])
def test_a_model_file_that_is_written_to_in_use_is_an_error(table: Path, change: Callable[[Path], None]) -> None:
    (file,) = table.glob("*.safetensors")
    with client(table, packed_weights=0) as one:
        assert one.model.engine.files.model.keys() == {file}
        ask(one)
        change(file)
        for _ in range(2):
            with pytest.raises(ModelFileError, match="the model file was changed while it was in use") as caught:
                ask(one)
            assert caught.value.code == "CHANGED"
            assert caught.value.hint == "load it again"
            assert str(file) in caught.value.message


def test_a_model_file_that_changes_during_a_step_gives_no_token_of_it(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file,) = table.glob("*.safetensors")
    run = Runner.run
    steps: list[int] = []

    def change_in_the_third(self: Runner, *step: object) -> object:
        steps.append(0)
        if len(steps) == 3:
            overwrite(file)
        return run(self, *step)  # type: ignore[arg-type]

    with client(table, packed_weights=0) as one:
        expected = ask(one).token_ids
        monkeypatch.setattr(Runner, "run", change_in_the_third)
        told: list[int | None] = []
        with pytest.raises(ModelFileError, match="changed while it was in use"):
            told.extend(event.token_id for event in one.generate(REQUEST) if isinstance(event, Token))
        assert len(steps) == 3
        assert told == list(expected[: len(told)])


def test_a_model_file_whose_place_another_takes_answers_as_before(table: Path) -> None:
    (file,) = table.glob("*.safetensors")
    with client(table, packed_weights=0) as one:
        expected = ask(one).token_ids
        fresh = file.with_name("fresh")
        fresh.write_bytes(bytes(file.stat().st_size))
        fresh.replace(file)
        assert ask(one).token_ids == expected
        file.unlink()
        assert ask(one).token_ids == expected


def test_a_small_table_is_copied(tmp_path: Path) -> None:
    folder = save("gemma4-e2b", tmp_path / "model")
    (file,) = folder.glob("*.safetensors")
    with client(folder, packed_weights=0) as one:
        assert one.model.engine.files.model == {}
        assert allocated_bytes(one.model.model.weights) == one.model.plan.weights_bytes
        expected = ask(one).token_ids
        os.truncate(file, 4096)
        assert ask(one).token_ids == expected
