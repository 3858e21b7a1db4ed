"""Which instruction sets are compiled: all of them for wheels, those that its machine needs for a checkout."""

import subprocess
from pathlib import Path
from typing import Literal

import pytest
from localrun_testing import REPOSITORY
from localrun_testing.instruction_sets import SOURCES, tool, units_named
from scikit_build_core.settings.skbuild_model import ScikitBuildSettings
from scikit_build_core.settings.skbuild_read_settings import SettingsReader

from localrun.backends.cpu.library import load_library


def settings(state: Literal["wheel", "editable"]) -> ScikitBuildSettings:
    return SettingsReader.from_file(REPOSITORY / "pyproject.toml", state=state).settings


def configured(folder: Path, units: str) -> tuple[str, ...]:
    command = [tool("cmake"), "-S", str(SOURCES), "-B", str(folder), f"-DLOCALRUN_ISA_UNITS={units}"]
    return units_named(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def test_wheels_are_built_from_nothing_and_have_all() -> None:
    assert (settings("wheel").build_dir, settings("wheel").cmake.define) == ("", {})


def test_a_checkout_keeps_its_objects_and_compiles_what_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings("editable").build_dir.startswith("build/")
    assert settings("editable").cmake.define == {"LOCALRUN_ISA_UNITS": "machine"}
    monkeypatch.setenv("LOCALRUN_ISA_UNITS", "all")
    assert settings("editable").cmake.define == {"LOCALRUN_ISA_UNITS": "all"}


def test_a_machine_needs_the_two_weakest_and_its_best(tmp_path: Path) -> None:
    library = load_library()
    assert library is not None
    everything = configured(tmp_path, "all")
    machine = configured(tmp_path, "machine")
    assert machine == tuple(dict.fromkeys((*everything[:2], library.isas[-1])))
    assert configured(tmp_path, "generic;avx2") == ("generic", "avx2")  # one build folder, whatever was asked before
