"""CONTRIBUTING's recipe for a quantisation type, tried: a decoder and a row, and files of it compute what it says."""

import struct
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from localrun_testing.gguf_convert import convert, encode
from localrun_testing.oracle import difference, model_logits, token_ids
from localrun_testing.stepper import Stepper
from localrun_testing.tiny_models import VOCAB_SIZE, build, save

from localrun.backends.registry import backends_for
from localrun.base.errors import ModelFileError
from localrun.formats.bits import fp16, planes
from localrun.formats.gguf import open_gguf
from localrun.formats.quant import BY_GGUF_ID, QUANT_TYPES, QuantType
from localrun.model.headers import read_config
from localrun.model.recording import record_shapes
from localrun.ops.layouts import F32, FILE

TOY_ID, Q4_0_ID = 99, 2


def decode_toy(raw: torch.Tensor) -> torch.Tensor:
    """The bytes of Q4_0, but codes stand for cubes: an fp16 scale times (code - 8)³ / 64."""
    return fp16(raw[:, :2]) * (planes(raw[:, 2:], 4, 16).float() - 8) ** 3 / 64


def by_hand(data: np.ndarray) -> np.ndarray:
    """What a matrix is after it was written as the toy type and read again, number by number."""
    encoded, kind = encode(data, "Q4_0")
    if kind != gguf.GGMLQuantizationType.Q4_0:
        return data
    blocks = encoded.reshape(-1, 18)
    scales = blocks[:, :2].copy().view(np.float16).astype(np.float32)
    codes = np.concatenate((blocks[:, 2:] & 15, blocks[:, 2:] >> 4), axis=1).astype(np.float32)
    return (scales * (codes - 8) ** 3 / 64).reshape(data.shape)


def toy_file(folder: Path) -> Path:
    """A tiny llama in Q4_0 whose tensor table calls that type by the toy's number."""
    path = convert(save("llama", folder), folder / "toy.gguf", "Q4_0")
    content = bytearray(path.read_bytes())
    for name, info in open_gguf(path).tensors.items():
        if info.qtype == "Q4_0":
            at = content.index(struct.pack("<Q", len(name)) + name.encode()) + 8 + len(name) + 4 + 8 * len(info.shape)
            assert struct.unpack_from("<I", content, at) == (Q4_0_ID,)
            struct.pack_into("<I", content, at, TOY_ID)
    path.write_bytes(content)
    return path


def test_a_quant_type_is_a_decoder_and_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, ids, model = toy_file(tmp_path), token_ids(40, VOCAB_SIZE), build("llama")
    with pytest.raises(ModelFileError, match=str(TOY_ID)):
        open_gguf(path)
    row = QuantType("TOY", TOY_ID, 32, 18, decode_toy)
    monkeypatch.setitem(QUANT_TYPES, "TOY", row)
    monkeypatch.setitem(BY_GGUF_ID, TOY_ID, row)
    with torch.no_grad():
        for matrix in (parameter for parameter in model.parameters() if parameter.ndim == 2):
            matrix.copy_(torch.from_numpy(by_hand(matrix.numpy())))
    for layout in (FILE, F32):
        found = difference(Stepper(path, layout=layout).logits(ids), model_logits(model, ids))
        assert found.within(1e-4, 1e-9), found
    backend, notes = next(backends_for("auto", record_shapes(read_config(open_gguf(path))), ["TOY"]))
    assert backend.name == "reference", "no fast layout yet: it runs all the same"
    assert "slow" in notes[0]
