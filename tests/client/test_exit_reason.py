"""Why a worker is gone, in words: the system's numbers become a cause and something to try."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from localrun.base.events import Prefill, Token
from localrun.base.request import LoadOptions
from localrun.client.rpc.wire import Alive, Events, Load, Progress, Reply, merged
from localrun.client.worker import exit_reason
from localrun.client.worker.exit_reason import exit_error, oom_kills, stamps_of
from localrun.client.worker.process import WorkerProcess
from localrun.formats.files import stamp_at

posix = pytest.mark.skipif(sys.platform == "win32", reason="no signals on Windows")


@posix
@pytest.mark.parametrize(
    ("code", "was_oom", "says", "tries"),
    [
        (-9, True, "memory ran out", "smaller context"),
        (-9, False, "was killed", "smaller context"),
        (-11, True, "crashed (SIGSEGV)", "report"),
        (-6, False, "crashed (SIGABRT)", "report"),
        (-7, False, "lost a file", "whole"),
        (-4, False, "instruction this processor lacks", "LOCALRUN_ISA=generic"),
        (-15, False, "was ended (SIGTERM)", "again"),
        (-64, False, "was ended (SIGRTMAX)", "again"),
        (-99, False, "was ended (signal 99)", "again"),
        (0, False, "with exit code 0", "again"),
        (1, False, "with exit code 1", "report"),
        (0xC0000005, False, "crashed (0xc0000005)", "report"),
        (None, False, "without a reason", "report"),
    ],
)
def test_the_error_names_the_cause_of_an_exit(code: int | None, was_oom: bool, says: str, tries: str) -> None:
    error = exit_error(code, b"", was_oom=was_oom)
    assert says in error.message
    assert tries in error.hint
    assert "last printed" not in error.message


@posix
def test_a_file_that_was_cut_off_is_named(tmp_path: Path) -> None:
    """Tables that stay in the model's file are mapped: what is no longer there ends the engine (SIGBUS)."""
    shards = [tmp_path / f"big-{part:05d}-of-00002.gguf" for part in (1, 2)]
    for shard in shards:
        shard.write_bytes(bytes(1000))
    (tmp_path / "README.md").write_text("of no matter")
    files = stamps_of(shards[0])
    assert files == {shard: stamp_at(shard) for shard in shards}
    assert stamps_of(tmp_path) == files
    assert stamps_of(tmp_path / "none") == {}
    assert "a file" in exit_error(-7, b"", was_oom=False, files=files).message, "none of these"
    os.utime(shards[1], (9, 9))
    assert (
        f"{shards[1]} was changed while the engine read it" in exit_error(-7, b"", was_oom=False, files=files).message
    )
    os.truncate(shards[1], 10)
    error = exit_error(-7, b"", was_oom=False, files=files)
    assert f"{shards[1]} was cut to 10 of 1,000 bytes while the engine read it" in error.message
    assert "again" in error.hint
    assert "was cut" not in exit_error(-11, b"", was_oom=False, files=files).message
    shards[1].unlink()
    assert f"{shards[1]} went away" in exit_error(-7, b"", was_oom=False, files=files).message


@posix
def test_a_worker_whose_file_is_cut_off_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tmp_path / "m.gguf"
    model.write_bytes(bytes(1000))
    code = f"""
import os, signal, sys
sys.stdin.buffer.read(1)
os.truncate({str(model)!r}, 10)
os.kill(os.getpid(), signal.SIGBUS)
"""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    started = partial(subprocess.Popen, [sys.executable, "-c", code], **pipes)
    monkeypatch.setattr("localrun.client.worker.process.start_module", lambda module: started())
    process = WorkerProcess("of no matter")
    assert process.call(Load(LoadOptions(model))).answers.get(timeout=60) is None
    assert "m.gguf was cut to 10 of 1,000 bytes" in process._died().message


def test_last_words_are_few_and_clean() -> None:
    said = (
        b"first\n" + b"Traceback\n\n  \x1b[31mFile x\x1b[0m\nMemoryError: \xff\x9d0;title\x07\n" + b"y" * 5000 + b"\n"
    )
    message = exit_error(1, said, was_oom=False).message
    assert "\x1b" not in message
    assert "first" not in message
    assert len(message) < 600
    assert "File x / MemoryError: \ufffd" in exit_error(1, said[:60], was_oom=False).message


def test_kills_of_the_system_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "vmstat"
    monkeypatch.setattr(exit_reason, "VMSTAT", file)
    assert oom_kills() == 0
    file.write_text("nr_free_pages 5\noom_kill 7\npgfault 1\n")
    assert oom_kills() == 7
    for odd in ("", "oom_kill x\n", "oom_kills 7\n"):
        file.write_text(odd)
        assert oom_kills() == 0


def test_messages_on_their_way_are_joined_but_never_reordered() -> None:
    a, b, c = Prefill(1, 0, 2), Token(1, "x", "answer"), Token(2, "y", "answer")
    replies = [
        *(Reply(1, Progress(n, 9)) for n in range(5)),
        Reply(1, Events((a,))),
        Reply(1, Events((b,))),
        Reply(2, Events((c,))),
        Reply(1, Events((c,))),
        Reply(0, Alive()),
        Reply(1, Events((a,))),
    ]
    assert list(merged(replies)) == [
        Reply(1, Progress(4, 9)),
        Reply(1, Events((a, b))),
        Reply(2, Events((c,))),
        Reply(1, Events((c,))),
        Reply(0, Alive()),
        Reply(1, Events((a,))),
    ]
    assert list(merged([])) == []
