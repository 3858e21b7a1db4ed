"""`--device`: the GPU that plans are made for before anything is loaded."""

from importlib import import_module

import pytest

from localrun.backends.cuda.availability import EMULATE
from localrun.base.resources import resource
from localrun.cli.app import run_command_line

BUILTIN = str(resource("localrun/builtin/localrun-tiny.gguf"))


@pytest.mark.parametrize("command", ["fit", "show"])
def test_plans_are_for_the_gpu_that_is_named(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int | None] = []
    monkeypatch.setattr(import_module(f"localrun.cli.{command}"), "choose_gpu", asked.append)
    run_command_line([command, BUILTIN, "--json", "--device", "1"])
    run_command_line([command, BUILTIN, "--json"])
    monkeypatch.setenv("LOCALRUN_DEVICE", "2")
    run_command_line([command, BUILTIN, "--json"])
    assert asked == [1, None, 2]


@pytest.mark.parametrize("command", ["fit", "show"])
def test_a_gpu_that_is_not_there_is_said(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(EMULATE, raising=False)
    assert run_command_line([command, BUILTIN, "--device", "63"]) == 2
    assert "GPU 63 cannot compute" in capsys.readouterr().err
