"""Tiny models on disk, each written once a session."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from localrun_testing import gguf_convert, tiny_models

TinyFile = Callable[..., Path]


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> TinyFile:
    """`tiny_folder(name)` → the safetensors folder of a recipe, fp32, in the hub's spelling of config.json."""
    folders: dict[str, Path] = {}

    def make(name: str) -> Path:
        if name not in folders:
            folders[name] = tiny_models.save(name, tmp_path_factory.mktemp(name), hub_config=True)
        return folders[name]

    return make


@pytest.fixture(scope="session")
def tiny_gguf(tmp_path_factory: pytest.TempPathFactory, tiny_folder: TinyFile) -> TinyFile:
    """`tiny_gguf(name, qtype="F32")` → the same weights as one GGUF."""
    files: dict[tuple[str, str], Path] = {}

    def make(name: str, qtype: str = "F32") -> Path:
        if (name, qtype) not in files:
            target = tmp_path_factory.mktemp("gguf") / f"{name}.{qtype}.gguf"
            files[name, qtype] = gguf_convert.convert(tiny_folder(name), target, qtype)
        return files[name, qtype]

    return make
