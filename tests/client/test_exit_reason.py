"""Why a worker is gone, in words: the system's numbers become a cause and something to try."""

import sys
from pathlib import Path

import pytest

from localrun.base.events import Prefill, Token
from localrun.client import exit_reason
from localrun.client.exit_reason import exit_error, oom_kills
from localrun.client.wire import Alive, Events, Progress, Reply
from localrun.client.worker_process import gathered

posix = pytest.mark.skipif(sys.platform == "win32", reason="no signals on Windows")


@posix
@pytest.mark.parametrize(
    ("code", "was_oom", "says", "tries"),
    [
        (-9, True, "memory ran out", "smaller context"),
        (-9, False, "was killed", "smaller context"),
        (-11, True, "crashed (SIGSEGV)", "report"),
        (-6, False, "crashed (SIGABRT)", "report"),
        (-7, False, "lost the model's file", "whole"),
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
    assert list(gathered(replies)) == [
        Reply(1, Progress(4, 9)),
        Reply(1, Events((a, b))),
        Reply(2, Events((c,))),
        Reply(1, Events((c,))),
        Reply(0, Alive()),
        Reply(1, Events((a,))),
    ]
    assert list(gathered([])) == []
