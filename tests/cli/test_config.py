"""`localrun config`, and commands that read what it wrote."""

import json
from pathlib import Path

import pytest
from localrun_testing.faces import Faces
from localrun_testing.schemas import check

from localrun.base.settings import write_setting


def test_a_number_is_written_read_and_overruled(faces: Faces, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert faces.run("config", "ctx") == (0, "", "")
    assert faces.run("config", "ctx", "512")[0] == 0
    assert faces.run("config", "ctx")[:2] == (0, "512\n")
    assert json.loads(faces.run("config", "--json")[1])["ctx"] == 512
    assert (home / "config.toml").read_text() == "ctx = 512\n"
    monkeypatch.setenv("LOCALRUN_CTX", "64")
    assert faces.run("config", "ctx")[1] == "64\n"


def test_a_model_is_looked_for_and_taken_back(faces: Faces) -> None:
    code, _, told = faces.run("config", "model", "nonsense")
    assert (code, "no model nonsense" in told) == (3, True)
    assert faces.run("config", "model", "buitlin")[2].count("did you mean builtin?") == 1
    code, _, told = faces.run("config", "model", "qwen3-4b")
    assert (code, "`localrun pull qwen3-4b`" in told) == (0, True)
    assert faces.run("config", "--unset", "model")[0] == 0
    write_setting("model", "nonsense")
    code, _, told = faces.run("show")
    assert (code, "nonsense" in told) == (3, True)
    assert faces.run("config", "--unset", "model")[0] == 0
    assert faces.run("show")[0] == 0


def test_what_is_wrong_in_the_file_is_said_by_those_who_read_it(faces: Faces, home: Path) -> None:
    home.mkdir()
    (home / "config.toml").write_text('ctx = 512\nseed = "red"\n')
    assert faces.run("list")[0] == 0, "listing needs no settings"
    code, _, told = faces.run("show")
    assert (code, f"{home / 'config.toml'}, line 2" in told) == (2, True)
    (home / "config.toml").write_text("ctx = 512\ncolour = 1\n")
    code, shown, told = faces.run("show", "--json")
    assert (code, told.count("there is no setting 'colour'"), told.count("\n")) == (0, 1, 2)
    check(json.loads(shown), "show")
