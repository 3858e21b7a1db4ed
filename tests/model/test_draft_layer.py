"""The layer that drafts: its logits and hidden rows are those of the oracle, from both formats, in any steps."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import torch
from localrun_testing.gguf_convert import convert
from localrun_testing.mtp import DraftOracle, DraftStepper, save_with_mtp
from localrun_testing.oracle import difference, token_ids
from localrun_testing.stepper import random_chunks
from localrun_testing.tiny_models import VOCAB_SIZE

from localrun.backends.cpu.library import load_library

pytestmark = pytest.mark.skipif(load_library() is None, reason="no native library")
Made = Callable[[str], tuple[Path, DraftOracle]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    @cache
    def make(name: str) -> tuple[Path, DraftOracle]:
        folder = tmp_path_factory.mktemp(name)
        return folder, save_with_mtp(name, folder)

    return make


@pytest.mark.parametrize("file_format", ["safetensors", "gguf"])
@pytest.mark.parametrize("name", ["qwen3.5", "qwen3.5-moe"])
def test_logits_and_hidden_rows(name: str, file_format: str, made: Made, tmp_path: Path) -> None:
    folder, oracle = made(name)
    path = folder if file_format == "safetensors" else convert(folder, tmp_path / "m.gguf")
    ids, hidden = token_ids(91, VOCAB_SIZE)[1:], torch.randn(90, 96, generator=torch.Generator().manual_seed(1))
    logits, rows = oracle(ids, hidden)
    stepper = DraftStepper(path)
    for chunks in ([90], random_chunks(90, seed=3)):
        stepper.given = hidden
        found = difference(stepper.logits(ids, chunks), logits)
        assert found.within(1e-4, 1e-9), found
        assert difference(stepper.hidden(ids, chunks), rows).nmse < 1e-9
