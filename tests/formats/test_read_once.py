"""What rows of a matrix need as a whole is read once for all of its runs of rows, whoever asks."""

import json
from collections import Counter
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
import torch
from localrun_testing.packed_checkpoint import awq, levels_of, nf4
from safetensors.torch import save_file

from localrun.formats.checkpoints.read_once import ReadOnce
from localrun.formats.safetensors import SafetensorsFolder, open_safetensors

EXPERTS = "model.layers.0.mlp.experts"
QUERY = "model.layers.0.self_attn.q_proj"
NF4 = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}


def turned_experts() -> dict[str, torch.Tensor]:
    """As Qwen3-VL's in FP8: [n, columns, rows], with scales of blocks."""
    codes = torch.arange(3 * 128 * 64).remainder(127).to(torch.uint8).reshape(3, 128, 64).view(torch.float8_e4m3fn)
    parts = {"gate_up_proj": codes, "down_proj": codes.view(torch.uint8)[:, :32].repeat(1, 1, 2).view(codes.dtype)}
    scales = {
        f"{name}_scale_inv": torch.rand(3, part.shape[1] // 32, part.shape[2] // 32) for name, part in parts.items()
    }
    return {f"{EXPERTS}.{name}": part for name, part in (parts | scales).items()}


def of_query(parts: Any) -> dict[str, torch.Tensor]:
    return {f"{QUERY}.{kind}": part.contiguous() for kind, part in parts.items()}


CASES = {
    "FP8 of experts, columns first": (
        f"{EXPERTS}.gate_up_proj",
        {"quant_method": "fp8", "weight_block_size": [32, 32]},
        turned_experts,
    ),
    "NF4": (
        f"{QUERY}.weight",
        NF4,
        lambda: of_query(nf4(torch.randn(64, 128))[0]) | {"model.embed_tokens.weight": torch.randn(8, 128)},
    ),
    "AWQ": (
        f"{QUERY}.weight",
        {"quant_method": "awq", "version": "GEMM"},
        lambda: of_query(awq(levels_of(torch.randn(64, 128), 4, False, torch.float16), False)),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_no_part_of_a_matrix_is_read_twice(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, config, make = CASES[case]
    save_file(make(), tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({"quantization_config": config}))
    source = open_safetensors(tmp_path)
    whole, info = bytes(source.read(name)), source.tensors[name]
    read = Counter[str]()
    read_rows = SafetensorsFolder.read_rows

    def counted(self: SafetensorsFolder, part: Any, first_row: int, n_rows: int | None) -> bytearray:
        found = read_rows(self, part, first_row, n_rows)
        read[part.name] += len(found)
        return found

    monkeypatch.setattr(SafetensorsFolder, "read_rows", counted)
    n_rows = int(torch.tensor(info.shape[:-1]).prod())
    runs = b"".join(bytes(source.read(name, row, min(24, n_rows - row))) for row in range(0, n_rows, 24))
    assert runs == whole
    parts = {part.name: part.nbytes for part in source.joined[name].parts}
    assert {part: n for part, n in read.items() if n > parts[part] and "quant_map" not in part} == {}


def test_threads_that_ask_at_once_read_once() -> None:
    kept, begun, go = ReadOnce(), Event(), Event()
    read: list[int] = []

    def slow() -> int:
        begun.set()
        assert go.wait(60)
        read.append(1)
        return 7

    found: list[int] = []
    threads = [Thread(target=lambda: found.append(kept.get("w", 4, 2, slow))) for _ in range(2)]
    threads[0].start()
    assert begun.wait(60)
    threads[1].start()
    go.set()
    for thread in threads:
        thread.join()
    assert (found, read) == ([7, 7], [1])
    assert kept.get("w", 4, 2, lambda: 8) == 8  # all rows were asked for, and it is forgotten
