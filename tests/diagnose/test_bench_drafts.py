"""`bench --draft`: answers with drafts beside the same answers without."""

import json

import pytest
from localrun_testing.schemas import check

from localrun.cli.app import run_command_line


def test_drafts_are_measured_beside_answers_without(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["bench", "-p", "0", "-n", "24", "-r", "2", "--threads", "1", "--draft", "lookup"]
    assert run_command_line([*arguments, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    check(answer, "bench")
    assert [run["text"] for run in answer["drafts"]] == ["quoting", "prose"]
    assert all(0 <= run["accepted_tokens"] <= run["drafted_tokens"] for run in answer["drafts"])
    assert run_command_line(arguments) == 0
    assert capsys.readouterr().out.count("times as fast as without") == 2


def test_one_token_is_nothing_to_draft() -> None:
    assert run_command_line(["bench", "-p", "0", "-n", "1", "-r", "1", "--draft", "lookup"]) == 2
