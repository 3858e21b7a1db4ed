"""Downloads are counted by what they are, and those called readable are of what the loader reads."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from localrun.formats.checkpoints.registry import METHODS
from tools import coverage
from tools.count_downloads import counted, format_of, is_language_model, table_of
from tools.coverage import METHOD_OF, Downloads, read_downloads, shares


def repository(name: str, **values: Any) -> dict[str, Any]:
    usual = {"architecture": "qwen3", "pipeline_tag": "text-generation", "parameters_raw": 4e9, "hf_downloads": 10}
    return {"name": name, "release_date": "2025-04-27", "format": "gguf", **usual, **values}


@pytest.mark.parametrize(
    ("name", "tag", "expected"),
    [
        ("Qwen/Qwen3-0.6B", "gguf", "floats"),
        ("mlx-community/Qwen3-4B-4bit", "mlx", "MLX"),
        ("mlx-community/gpt-oss-20b-MXFP4-Q8", "mlx", "MLX"),
        ("someone/Qwen3-4B-4bit", "mlx", "MLX"),
        ("someone/Qwen3-4B-4bit", "gguf", "unknown packing"),
        ("openai/gpt-oss-20b-mxfp4", "gguf", "MXFP4"),
        ("nvidia/Qwen3-8B-NVFP4", "gguf", "NVFP4"),
        ("Qwen/Qwen3-8B-FP8", "gguf", "FP8"),
        ("Qwen/Qwen3-14B-AWQ", "awq", "AWQ"),
        ("someone/zeta-autoround-W4A16", "autoround", "AutoRound"),
        ("unsloth/Qwen3-4B-unsloth-bnb-4bit", "gguf", "bitsandbytes"),
        ("google/gemma-4-12B-it-qat-w4a16-ct", "gguf", "compressed-tensors"),
        ("RedHatAI/Qwen3.8-27B-INT4", "gguf", "compressed-tensors"),
        ("llava-hf/llava-onevision-qwen2-7b-ov-hf", "gguf", "floats"),
        ("OpenVINO/Qwen3-4B-int8-ov", "gguf", "OpenVINO"),
    ],
)
def test_a_format_is_told_by_names_and_tags(name: str, tag: str, expected: str) -> None:
    assert format_of(repository(name, format=tag)) == expected


@pytest.mark.parametrize(
    "other",
    [
        {"pipeline_tag": "feature-extraction"},
        {"architecture": "bert"},
        {"architecture": "dots_ocr"},
        {"parameters_raw": 70e9},
        {"name": "someone/Qwen3-4B-DFlash"},
    ],
)
def test_other_kinds_of_models_are_left_out(other: dict[str, Any]) -> None:
    assert is_language_model(repository("Qwen/Qwen3-4B"))
    assert not is_language_model({**repository("Qwen/Qwen3-4B"), **other})


def test_a_table_within_a_program_is_counted(tmp_path: Path) -> None:
    rows = [
        repository("a/x", hf_downloads=60_000),
        repository("a/x-FP8", hf_downloads=5, release_date="2026-07-02"),
        repository("b/y", hf_downloads=7, architecture="rare", release_date=None),
        repository("b/z", hf_downloads=1, architecture="rarer", release_date="2026-02-01"),
        repository("b/never", hf_downloads=0),
    ]
    program = b"\x7fELF [\n  {\n junk" + json.dumps(rows, indent=2).encode() + b"\x00 more"
    with zipfile.ZipFile(tmp_path / "llmfit.whl", "w") as archive:
        archive.writestr("llmfit-1.data/scripts/llmfit", program)
    assert counted(table_of(tmp_path / "llmfit.whl")) == {
        ("qwen3", "floats", "before"): 60_000,
        ("qwen3", "FP8", "since 2026-07"): 5,
        ("others", "floats", "before"): 7,
        ("others", "floats", "2026"): 1,
    }


def test_shares_are_of_each_age() -> None:
    downloads = [
        Downloads("qwen3", "floats", "before", 6),
        Downloads("qwen3", "EXL2 and EXL3", "2026", 1),
        Downloads("gpt2", "floats", "since 2026-07", 3),
    ]
    assert shares(downloads, lambda one: one.obstacle) == {
        "": (0.6, 0.0, 0.0),
        "architecture `gpt2`": (0.3, 0.75, 1.0),
        "format EXL2 and EXL3": (0.1, 0.25, 0.0),
    }


def test_what_is_called_readable_is_of_the_loaders_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(METHOD_OF.values()) <= METHODS.keys()
    of_2026 = shares(read_downloads(), lambda one: one.obstacle)[""][1]
    assert of_2026 >= 0.93, "the share that localrun promises of models of this year"
    monkeypatch.setattr(coverage, "READ_TYPES", coverage.READ_TYPES - {"qwen3_5"})
    assert shares(read_downloads(), lambda one: one.obstacle)[""][1] < of_2026 / 1.5
