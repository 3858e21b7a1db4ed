"""An output that config.json ties to the embedding, as files really have it: transformers ties what is equal, and what
is there once; where both are there and differ, it takes both."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from localrun_testing.oracle import difference, model_logits, token_ids
from localrun_testing.stepper import Stepper
from localrun_testing.tiny_models import VOCAB_SIZE, save, transformers
from safetensors.torch import load_file, save_file

from localrun.fit.shape import shape_of
from localrun.fit.weights import held
from localrun.formats import weights
from localrun.formats.safetensors import SafetensorsFolder, open_safetensors
from localrun.formats.source import TensorInfo
from localrun.model.headers import read_config, read_weight_refs
from localrun.model.precision import in_precision

Tensors = dict[str, torch.Tensor]
HEAD = "lm_head.weight"


def embedding(tensors: Tensors) -> str:
    return next(name for name in tensors if name.endswith(("embed_tokens.weight", "embeddings.weight")))


def another(tensors: Tensors) -> None:
    tensors[HEAD] = torch.roll(tensors[embedding(tensors)], 1, 0).contiguous()


def in_the_last_row(tensors: Tensors) -> None:
    tensors[HEAD] = tensors[embedding(tensors)].clone()
    tensors[HEAD][-1, -1] += 1.0


def equal(tensors: Tensors) -> None:
    tensors[HEAD] = tensors[embedding(tensors)].clone()


def alone(tensors: Tensors) -> None:
    tensors[HEAD] = tensors.pop(embedding(tensors))


def rewritten(name: str, folder: Path, change: Callable[[Tensors], None]) -> Path:
    """A tied model whose tensors are changed."""
    save(name, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "tie_word_embeddings": True}))
    tensors = load_file(folder / "model.safetensors")
    tensors.pop(HEAD, None)
    change(tensors)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    return folder


# Where one of the two is missing, transformers makes it up for Nemotron-H, of which it ties nothing.
CASES = [
    (name, change, own)
    for name in ("llama", "qwen2", "qwen3-vl", "gemma3", "nemotron-h")
    for change, own in ((another, True), (in_the_last_row, True), (equal, False), (alone, False))
    if (name, change) != ("nemotron-h", alone)
]


@pytest.mark.parametrize(("name", "change", "own"), CASES)
def test_logits(name: str, change: Callable[[Tensors], None], own: bool, tmp_path: Path) -> None:
    folder, ids = rewritten(name, tmp_path, change), token_ids(20, VOCAB_SIZE)
    (architecture,) = json.loads((folder / "config.json").read_text())["architectures"]
    model = getattr(transformers, architecture).from_pretrained(folder, attn_implementation="eager")
    found = difference(Stepper(folder).logits(ids), model_logits(model.eval(), ids))
    assert found.within(1e-4, 1e-9), found
    source = open_safetensors(folder)
    assert ("output" in read_weight_refs(source, read_config(source))) == own


@pytest.mark.parametrize("precision", ["auto", "int8", "int4"])
def test_what_memory_is_asked_for(precision: str, tmp_path: Path) -> None:
    """As the twin that does not say that they are tied."""
    twin, folder = (rewritten("llama", tmp_path / name, another) for name in ("twin", "tied"))
    config = json.loads((twin / "config.json").read_text())
    (twin / "config.json").write_text(json.dumps({**config, "tie_word_embeddings": False}))
    tied, untied = (in_precision(open_safetensors(path), precision) for path in (folder, twin))
    assert held(tied) == held(untied)
    assert shape_of(tied).n_params == shape_of(untied).n_params
    assert read_weight_refs(tied, read_config(tied)) == read_weight_refs(untied, read_config(untied))


def test_they_are_compared_once_in_pieces_and_no_further_than_they_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_rows: list[int] = []
    read_rows = SafetensorsFolder.read_rows

    def counted(self: SafetensorsFolder, info: TensorInfo, first: int, count: int | None) -> bytearray:
        n_rows.append(count or 0)
        return read_rows(self, info, first, count)

    monkeypatch.setattr(SafetensorsFolder, "read_rows", counted)
    monkeypatch.setattr(weights, "_PIECE_BYTES", 96 * 4 * 128)
    for change, looked_at in ((another, [128] * 2), (equal, [128, 128, 128, 128, 44, 44])):
        source = open_safetensors(rewritten("llama", tmp_path / change.__name__, change))
        for _ in range(2):
            read_weight_refs(source, read_config(source))
        assert n_rows == looked_at
        n_rows.clear()
