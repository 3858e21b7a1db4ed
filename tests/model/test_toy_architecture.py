"""CONTRIBUTING's recipe for an architecture, tried with one we do not have: a class, a row, a checkpoint."""

from pathlib import Path

import pytest
from localrun_testing.oracle import difference, reference_logits, token_ids
from localrun_testing.stepper import Stepper
from localrun_testing.tiny_models import TINY_MODELS, VOCAB_SIZE, TinyModel, save

from localrun.base.errors import ModelFileError
from localrun.model import archs
from localrun.model.archs.base import Arch


class SeedOss(Arch):
    """A plain decoder with biases on queries, keys and values; which biases there are is read from the file."""

    name = "seed_oss"
    hf = ("SeedOssForCausalLM",)


def test_an_architecture_is_a_class_a_row_and_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = {**TINY_MODELS["llama"].config, "head_dim": 16, "attention_bias": True}
    monkeypatch.setitem(TINY_MODELS, "seed-oss", TinyModel("seed_oss", config))
    folder, ids = save("seed-oss", tmp_path), token_ids(80, VOCAB_SIZE)
    with pytest.raises(ModelFileError, match="SeedOssForCausalLM"):
        Stepper(folder)
    monkeypatch.setattr(archs, "ARCHS", (*archs.ARCHS, SeedOss()))
    found = difference(Stepper(folder).logits(ids), reference_logits(folder, ids))
    assert found.within(1e-4, 1e-9), found
