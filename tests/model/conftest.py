"""Tiny models on disk, in transformers and under test, each made once a session."""

import inspect
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path

import pytest
import torch
from localrun_testing import gguf_convert, oracle, tiny_models
from localrun_testing.kept import kept
from localrun_testing.stepper import Stepper

TinyFile = Callable[..., Path]
Reference = Callable[[str, str, Sequence[int]], torch.Tensor]


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> TinyFile:
    """`tiny_folder(name)` → the safetensors folder of a recipe, fp32, in the hub's spelling of config.json."""

    @cache
    def make(name: str) -> Path:
        return tiny_models.save(name, tmp_path_factory.mktemp(name), hub_config=True)

    return make


@pytest.fixture(scope="session")
def tiny_gguf(tmp_path_factory: pytest.TempPathFactory, tiny_folder: TinyFile) -> TinyFile:
    """`tiny_gguf(name, qtype="F32")` → the same weights as one GGUF."""

    @cache
    def make(name: str, qtype: str = "F32") -> Path:
        target = tmp_path_factory.mktemp("gguf") / f"{name}.{qtype}.gguf"
        return gguf_convert.convert(tiny_folder(name), target, qtype)

    return make


@pytest.fixture(scope="session")
def tiny_stepper(tiny_folder: TinyFile, tiny_gguf: TinyFile) -> Callable[[str, str], Stepper]:
    """`tiny_stepper(name, "gguf" | "safetensors")` → the model under test, fp32 cache."""

    @cache
    def make(name: str, file_format: str) -> Stepper:
        return Stepper(tiny_gguf(name) if file_format == "gguf" else tiny_folder(name))

    return make


@pytest.fixture(scope="session")
def reference() -> Reference:
    """`reference(name, file_format, ids)` → transformers' logits for what a file of that format can express."""
    sources = [inspect.getsource(module) for module in (oracle, tiny_models)]
    versions = torch.__version__, version("transformers")

    @cache
    def make(name: str, file_format: str, ids: tuple[int, ...]) -> torch.Tensor:
        view = tiny_models.TINY_MODELS[name].gguf_view if file_format == "gguf" else {}

        def compute(path: Path) -> None:
            torch.save(oracle.model_logits(tiny_models.build(name, **view), list(ids)), path)

        logits: torch.Tensor = torch.load(kept(compute, name, view, ids, sources, versions))
        return logits

    return lambda name, file_format, ids: make(name, file_format, tuple(ids))
