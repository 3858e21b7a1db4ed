"""When `localrun` alone is the app: for a person at a terminal that can draw, and for nobody else."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from localrun.base.adapter_choice import AdapterChoice
from localrun.base.errors import UsageError
from localrun.base.settings import read_settings
from localrun.cli.app import COMMANDS, run_command_line
from localrun.cli.groups import MachineFlags, ModelOptions, SettingFlags
from localrun.cli.open_app import begins_app, is_plain, opens_model
from localrun.cli.tui import tui


def terminals(monkeypatch: pytest.MonkeyPatch, stdin: bool, stdout: bool, stderr: bool = True) -> None:
    for name, answer in (("stdin", stdin), ("stdout", stdout), ("stderr", stderr)):
        monkeypatch.setattr(sys, name, SimpleNamespace(isatty=lambda answer=answer: answer, closed=False))


@pytest.mark.parametrize(
    ("arguments", "stdin", "stdout", "term", "begins"),
    [
        ([], True, True, "xterm-256color", True),
        (["list"], True, True, "xterm-256color", False),
        ([], False, True, "xterm-256color", False),
        ([], True, False, "xterm-256color", False),
        ([], True, True, "dumb", False),
        ([], True, True, "", False),
    ],
)
def test_the_app_is_for_a_person_at_a_terminal(
    arguments: list[str], stdin: bool, stdout: bool, term: str, begins: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.name", "posix")
    monkeypatch.setenv("TERM", term)
    terminals(monkeypatch, stdin, stdout)
    assert begins_app(arguments) is begins


def test_plain_can_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminals(monkeypatch, True, True)
    assert not is_plain()
    monkeypatch.setenv("LOCALRUN_PLAIN", "1")
    assert is_plain()


def test_an_app_whose_drawing_would_go_into_a_file_does_not_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminals(monkeypatch, True, True, stderr=False)
    assert not begins_app([])


def test_the_command_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminals(monkeypatch, True, True)
    with pytest.raises(UsageError, match="two models"):
        tui("a", model=ModelOptions(model="b"), machine=MachineFlags(), answers=SettingFlags())
    monkeypatch.setenv("TERM", "dumb")
    with pytest.raises(UsageError, match="plain lines only"):
        tui(None, model=ModelOptions(), machine=MachineFlags(), answers=SettingFlags())
    monkeypatch.setenv("TERM", "xterm")
    terminals(monkeypatch, True, True, stderr=False)
    with pytest.raises(UsageError, match="draws on stderr"):
        tui(None, model=ModelOptions(), machine=MachineFlags(), answers=SettingFlags())
    terminals(monkeypatch, True, False)
    with pytest.raises(UsageError, match="needs a terminal"):
        tui(None, model=ModelOptions(), machine=MachineFlags(), answers=SettingFlags())


def test_a_file_or_folder_alone_opens_the_app_on_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.gguf").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "list").mkdir()
    (tmp_path / "notes").touch()
    for words in (["x.gguf"], ["./notes", "--ctx", "4096"], [str(tmp_path / "x.gguf")], ["folder"]):
        assert opens_model(words, COMMANDS), words
    for words in ([], ["list"], ["-h"], ["notes"], ["gone.gguf"], ["chat"], [""]):
        assert not opens_model(words, COMMANDS), words


def test_the_app_takes_context_codec_window_and_adapters(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Any] = []
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("localrun.cli.tui.at_terminal", lambda: True)
    monkeypatch.setattr("localrun.cli.tui.is_plain", lambda: False)

    def run(*arguments: Any) -> int:
        opened.append(arguments)
        return 0

    monkeypatch.setattr("localrun_tui.start.run", run)
    assert run_command_line(["tui", "builtin", "--ctx", "1024", "--kv", "q8"]) == 0
    held = {"ctx": 1024, "kv": "q8", "window": None, "adapters": None}
    assert opened == [("builtin", "auto", True, held, None, False)]
    opened.clear()
    assert run_command_line(["tui", "-c"]) == 0
    assert opened[0][-1] is True
    opened.clear()
    monkeypatch.delenv("HF_HUB_OFFLINE")
    here = Path.cwd()
    assert run_command_line(["tui", "--offline", "--lora", "tone.gguf:0.5", "--lora", "law"]) == 0
    assert os.environ["HF_HUB_OFFLINE"] == "1"
    assert opened[0][3]["adapters"] == (AdapterChoice(here / "tone.gguf", 0.5), AdapterChoice(here / "law"))
    opened.clear()
    assert run_command_line(["tui", "--server", "http://127.0.0.1:9/v1", "-m", "big"]) == 0
    choice = opened[0][4]
    assert (choice.stored.url, choice.stored.model) == ("http://127.0.0.1:9/v1", "big")
    assert run_command_line(["tui", "--server", "http://127.0.0.1:9/v1", "--ctx", "0"]) == 2
    assert run_command_line(["tui", "--server", "http://127.0.0.1:9/v1", "--lora", "law"]) == 2
    assert run_command_line(["tui", "--server", "nowhere"]) == 3
    assert len(opened) == 1


def test_settings_that_are_typed_hold_for_the_app_and_its_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("localrun.cli.tui.at_terminal", lambda: True)
    monkeypatch.setattr("localrun.cli.tui.is_plain", lambda: False)
    monkeypatch.setattr("localrun_tui.start.run", lambda *arguments: 0)
    monkeypatch.setattr("localrun.base.settings._TYPED", {})
    monkeypatch.setenv("LOCALRUN_THREADS", "2")
    words = [
        "--temperature",
        "0.25",
        "--system",
        "Be Brief",
        "--threads",
        "3",
        "--no-stop-on-loop",
        "--draft",
        "lookup",
    ]
    assert run_command_line(["tui", "builtin", *words]) == 0
    settings = read_settings()
    assert (settings.temperature, settings.system, settings.threads) == (0.25, "Be Brief", 3)
    assert settings.stop_on_loop is False
    assert settings.draft == "lookup"
    assert run_command_line(["tui", "--temperature", "hot"]) == 2
    assert settings.ctx is None
    assert run_command_line(["tui", "builtin", "--ctx", "1024"]) == 0
    assert read_settings().ctx is None  # of that model alone
    assert run_command_line(["tui", "--ctx", "1024", "--kv", "q8"]) == 0
    assert (read_settings().ctx, read_settings().kv) == (1024, "q8")  # of whichever is chosen


def test_a_path_that_is_not_there_says_so(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["./gone.gguf"]) == 2
    assert "there is no file or folder ./gone.gguf" in capfd.readouterr().err
