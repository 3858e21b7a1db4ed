"""The project's own files agree with each other: dependencies, pins, catalogue, generated pages, Makefile."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from localrun_testing import REPOSITORY
from localrun_testing.product import modules

from localrun.base.resources import resource
from localrun.hub.catalogue import BUILTIN, read_catalogue
from tools import (
    write_auto_docs,
    write_cli_docs,
    write_cuda_docs,
    write_json_docs,
    write_keys_docs,
    write_metal_docs,
    write_models_docs,
    write_operations_docs,
    write_settings_docs,
)

PROJECT: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
IMPORT_NAMES = {
    "pillow": "PIL",
    "mdit-py-plugins": "mdit_py_plugins",  # where the two differ
    "huggingface-hub": "huggingface_hub",
    "markdown-it-py": "markdown_it",
    "cuda-core": "cuda",
    "cuda-bindings": "cuda",
}
NEVER_IMPORTED = {"nvidia-cuda-nvrtc"}  # a library that cuda-core loads


def requirement_names(requirements: list[str]) -> set[str]:
    return {re.split(r"[<>=\[ ]", requirement)[0] for requirement in requirements}


def test_what_is_imported_is_declared_and_the_other_way_round() -> None:
    imported = {target.split(".")[0] for module in modules() for target, _ in module.imports}
    own = ("localrun", "localrun_tui")
    ours = {name for name in imported if name not in sys.stdlib_module_names and name not in own}
    extras = PROJECT["project"]["optional-dependencies"]
    declared = PROJECT["project"]["dependencies"] + extras["cuda"] + extras["mcp"] + extras["keyring"]
    names = requirement_names(declared) - NEVER_IMPORTED
    assert ours == {IMPORT_NAMES.get(name, name) for name in names}


def test_every_requirement_has_one_pin() -> None:
    lines = (REPOSITORY / "constraints.txt").read_text().splitlines()
    pinned = [line.split("==")[0] for line in lines if line and not line.startswith("#")]
    wanted = sum(PROJECT["project"]["optional-dependencies"].values(), PROJECT["project"]["dependencies"])
    assert len(pinned) == len(set(pinned))
    assert requirement_names(wanted) <= set(pinned)


def test_every_file_the_catalogue_names_ships() -> None:
    for model in read_catalogue().values():
        assert all(resource(file).is_file() for file in model.get("files", {}).values())
    assert read_catalogue()[BUILTIN]["files"]


@pytest.mark.parametrize(
    "script",
    [
        write_auto_docs,
        write_cli_docs,
        write_cuda_docs,
        write_json_docs,
        write_keys_docs,
        write_metal_docs,
        write_models_docs,
        write_operations_docs,
        write_settings_docs,
    ],
    ids=lambda module: module.__name__,
)
def test_a_generated_page_is_up_to_date(script: ModuleType) -> None:
    assert script.PAGE.read_text("utf-8") == script.page(), f"run `python -m {script.__name__}`"


def test_the_architecture_page_stays_short_and_knows_every_room() -> None:
    page = (REPOSITORY / "docs" / "architecture.md").read_text("utf-8")
    assert len(page.splitlines()) < 80
    rooms = [path.parent.name for path in (REPOSITORY / "localrun").glob("*/__init__.py")]
    assert [room for room in rooms if f"`localrun/{room}`" not in page] == []


def test_links_between_pages_lead_somewhere() -> None:
    for page in (*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").glob("*.md")):
        for target in re.findall(r"\]\(([^)#]+)", page.read_text("utf-8")):
            assert "://" in target or (page.parent / target).exists(), f"{page.name}: {target}"


def test_a_python_that_is_too_old_is_one_clear_line(tmp_path: Path) -> None:
    old = tmp_path / "python"
    code = "import sys; sys.version_info = (3, 8, 1); exec(sys.argv[1])"
    old.write_text(f"#!/bin/sh\nshift\nexec {sys.executable} -c '{code}' \"$@\"\n")
    old.chmod(0o755)
    done = subprocess.run(
        ["make", "-C", str(REPOSITORY), f"PYTHON={old}", f"VENV={tmp_path / 'venv'}", "run"],
        env={**os.environ, "MAKEFLAGS": "", "MAKELEVEL": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    (line,) = [line for line in done.stderr.splitlines() if not line.startswith("make")]
    assert "localrun needs Python 3.11" in line
    assert "3.8" in line
