"""A file with two names on the disk: one row, one line of the precision menu, and deleted by both names."""

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.model_screens import ScreenApp, known_machine
from localrun_testing.pilots import LARGE, drive, screen_text, until_text
from localrun_testing.stub_gguf import stub_gguf
from textual.pilot import Pilot

from localrun_tui.screens.models.models_screen import ModelsScreen


@pytest.fixture
def repo(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """org/b in the Hugging Face cache: b-F16.gguf, by now called renamed-F16.gguf; and b-F32.gguf."""
    known_machine(monkeypatch)
    repo = home / "huggingface/hub/models--org--b"
    (repo / "refs").mkdir(parents=True)
    (repo / "refs/main").write_text("b" * 40)
    for revision, name, stub in (("a", "b-F16", "F16"), ("b", "renamed-F16", "F16"), ("b", "b-F32", "F32")):
        content = stub_gguf(tmp_path, f"{stub}.gguf")
        blob = repo / "blobs" / hashlib.sha256(content).hexdigest()
        path = repo / "snapshots" / (revision * 40) / f"{name}.gguf"
        for place in (blob, path):
            place.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(content)
        path.symlink_to(os.path.relpath(blob, path.parent))
    return repo


def test_a_renamed_file_is_one_row_and_goes_by_both_names(repo: Path) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await until_text(pilot, "F32")
        assert len([line for line in screen_text(pilot.app).splitlines() if line[1:].startswith("b ")]) == 2
        await pilot.press("slash", *"f16", "enter", "enter")
        await until_text(pilot, "LONGEST")
        lines = screen_text(pilot.app).splitlines()
        assert len([line for line in lines if "F16" in line and "on disk" in line]) == 1
        await pilot.press("escape")
        await until_text(pilot, "Hugging Face")
        await pilot.press("delete")
        await until_text(pilot, "Delete org/b F16 from the disk?")
        shown = screen_text(pilot.app)
        assert "b-F16.gguf" in shown
        assert "renamed-F16.gguf" in shown
        assert "frees" in shown
        await pilot.press("y")
        await until_text(pilot, "are free again")

    drive(ScreenApp(ModelsScreen()), steps, LARGE)
    assert [path.name for path in repo.rglob("*.gguf")] == ["b-F32.gguf"]
    assert len(list((repo / "blobs").iterdir())) == 1
