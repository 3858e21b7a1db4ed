"""What is written is what the gguf package reads."""

from pathlib import Path
from typing import Any

import gguf
import pytest
import torch

from localrun.base.errors import UsageError
from tools.gguf_write import Encoded, Typed, write_gguf

ARCHITECTURE = {"general.architecture": "llama"}


def test_types_of_values(tmp_path: Path) -> None:
    values: dict[str, list[Any]] = {
        "UINT32": [0, 7, 2**32 - 1],
        "INT32": [-1, -(2**31)],
        "UINT64": [2**32, 2**64 - 1],
        "INT64": [-(2**31) - 1, -(2**63)],
        "FLOAT32": [0.5],
        "BOOL": [True, False],
        "STRING": ["", "ü"],
        "ARRAY": [["a"], [1, 2], [0.5], [True]],
    }
    keys = {f"{name}.{i}": value for name, group in values.items() for i, value in enumerate(group)}
    path = tmp_path / "m.gguf"
    assert write_gguf(path, ARCHITECTURE | keys | {"typed": Typed(3, "UINT8")}, {}) == [path]
    fields = gguf.GGUFReader(path).fields
    for key, value in keys.items():
        assert fields[key].contents() == value
        assert fields[key].types[0].name == key.split(".")[0]
    assert fields["typed"].types[0].name == "UINT8"


def test_tensors_in_the_types_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    weights = {"a": torch.randn(2, 3, 64), "b": torch.randn(2, 64), "c": torch.randn(5)}
    encoded = Encoded("Q4_K", (3, 256), bytes(range(144)) * 3)
    write_gguf(path, ARCHITECTURE, {**weights, "k": encoded}, {"a": "Q8_0", "b": "BF16"}, alignment=64)
    found = {info.name: info for info in gguf.GGUFReader(path).tensors}
    assert {name: info.tensor_type.name for name, info in found.items()} == {
        "a": "Q8_0", "b": "BF16", "c": "F32", "k": "Q4_K",
    }  # fmt: skip
    assert found["a"].shape.tolist() == [64, 3, 2]
    assert found["k"].data.tobytes() == bytes(range(144)) * 3
    assert found["c"].data.tolist() == weights["c"].tolist()
    assert all(info.data_offset % 64 == 0 for info in found.values())


def test_gguf_write_errors(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Q4_K can be read but not written"):
        write_gguf(tmp_path / "m.gguf", ARCHITECTURE, {"a": torch.zeros(256)}, "Q4_K")
    with pytest.raises(UsageError, match="multiple of 32"):
        write_gguf(tmp_path / "m.gguf", ARCHITECTURE, {"a": torch.zeros(33)}, "Q8_0")
    assert not list(tmp_path.iterdir())
