"""What is typed is read as typer itself would read it, without what it imports for that."""

import subprocess
import sys
from typing import Any

import pytest
import typer
from localrun_testing import REPOSITORY
from typer._coercion import build_runtime_param

from localrun.cli.app import command_line

RUN: tuple[list[str], ...] = (
    ["--model", "x", "--max-tokens", "1", "--temperature", "0.5", "--no-stdin", "one two"],
    ["a", "b", "--stop", "x", "--stop", "y", "--logit-bias", "3:-5", "--logit-bias", "4:2", "--file", "f"],
    [],
    ["--no-stop-on-loop", "--stop-on-loop", "x"],
    ["--max-tokens", "x"],
    ["--temperature", "-3"],
    ["--kv", "zz"],
    ["--logit-bias", "q"],
    ["--think", "maybe"],
    ["--model"],
    ["--stdin"],
)
BENCH = (
    ["x", "-p", "5", "-d", "64", "-d", "7"],
    *(["-p", typed] for typed in ("0", "007", "-1", "+5", " 5", "5.0", "1_000", "٣", "", "x")),
    ["-d", "z"],
    ["-d", "1", "-d", "-1"],
    ["--compare", "a", "b"],
    ["--compare", "a"],
)


def read(command: str, arguments: list[str]) -> Any:
    """What a command is called with, or what is told of a mistake."""
    line = typer.main.get_command(command_line([command]))
    try:
        return line.commands[command].make_context(command, list(arguments)).params  # type: ignore[attr-defined]
    except typer.TyperException as error:
        return type(error), error.format_message()


@pytest.mark.parametrize(
    ("command", "arguments"), [("run", arguments) for arguments in RUN] + [("bench", arguments) for arguments in BENCH]
)
def test_values_are_parsed_like_typer(command: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    ours = read(command, arguments)
    monkeypatch.setattr("localrun.cli.app.use_own_checks", lambda: None)
    monkeypatch.setattr("typer.core.build_runtime_param", build_runtime_param)
    assert ours == read(command, arguments)


def test_what_is_typed_well_is_read_without_pydantic() -> None:
    code = """
import sys, typer
from localrun.cli.app import command_line
line = typer.main.get_command(command_line(["run", "bench"]))
line.commands["run"].make_context("run", ["--max-tokens", "1", "--stop", "x", "hi"])
line.commands["bench"].make_context("bench", ["-p", "5", "-d", "64"])
print("pydantic" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=REPOSITORY)
    assert (done.stdout, done.stderr) == ("False\n", "")
