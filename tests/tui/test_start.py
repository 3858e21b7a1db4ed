"""What the app begins with, and what it hands to an engine."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from localrun_testing import REPOSITORY

from localrun.base.errors import NotFoundError
from localrun.base.settings import Settings, read_settings, write_setting
from localrun.chat.presets import PRESETS, sampling_of
from localrun.client.choice import ModelChoice, builtin, first_choice
from localrun.client.open_client import options_for
from localrun.hub.disk.library import mark_used
from localrun.hub.disk.stored import StoredModel


def test_the_first_model_is_the_named_else_the_last_used_else_the_default_else_none(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert first_choice(None, "auto") is None
    write_setting("model", "no-such-model")
    with pytest.raises(NotFoundError):
        first_choice(None, "auto")
    shipped = builtin().stored
    mark_used(shipped.path)  # type: ignore[union-attr]
    last = first_choice(None, "auto")
    assert last is not None
    assert last.stored.name == "builtin"
    elsewhere = tmp_path / "mine-Q8_0.gguf"
    shutil.copy(shipped.path, elsewhere)  # type: ignore[union-attr]
    mark_used(elsewhere)
    last = first_choice(None, "auto")
    assert last is not None
    assert (last.stored.name, last.precision) == ("mine", "Q8_0")
    monkeypatch.setenv("LOCALRUN_MODEL", "no-such-model")
    with pytest.raises(NotFoundError):
        first_choice(None, "auto")
    named = first_choice("builtin", "auto")
    assert named is not None
    assert named.stored.name == "builtin"


def test_a_choice_goes_before_the_settings(home: Path) -> None:
    stored = builtin().stored
    assert isinstance(stored, StoredModel)
    write_setting("ctx", "512")
    write_setting("kv", "q8")
    write_setting("threads", "1")
    options = options_for(stored, ModelChoice(stored), read_settings())
    assert (options.ctx, options.kv, options.threads) == (512, "q8", 1)
    assert options.disk_cache
    options = options_for(stored, ModelChoice(stored, ctx=256, kv="f16"), read_settings())
    assert (options.ctx, options.kv) == (256, "f16")
    assert options_for(stored, ModelChoice(stored, ctx=0), read_settings()).ctx is None, "auto, and chosen"


def test_presets_lie_above_the_settings() -> None:
    settings = Settings(temperature=0.9, top_k=40)
    assert sampling_of(settings, "").temperature == 0.9
    assert sampling_of(settings, "exact").temperature == 0.0
    assert sampling_of(settings, "exact").top_k == 40
    assert sampling_of(settings, "a preset of a newer version").temperature == 0.9
    assert next(iter(PRESETS)) == ""


def test_the_first_frame_needs_neither_torch_nor_numpy_nor_the_hub_nor_the_chats() -> None:
    unwanted = ("torch", "numpy", "huggingface_hub", "sqlite3", "localrun.chat.journal", "starlette", "uvicorn")
    code = f"import sys, localrun_tui.start; print([module for module in {unwanted} if module in sys.modules])"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "tui")])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.stdout == "[]\n", done.stderr
