"""Malformed sets of GGUF shards."""

from pathlib import Path
from typing import Any

import pytest
from localrun_testing.file_opener import FileOpener
from localrun_testing.raw_files import ARCH, I32, STRING, U16, U64, gguf_file, tensor, value

WHOLE = gguf_file([ARCH], [tensor("a")], bytes(128))
A, B = "00001-of-00002", "00002-of-00002"


def shard(number: int, count: Any, n_tensors: int = 2, name: str = "", count_type: int = U16) -> bytes:
    split = [
        value("split.no", U16, number),
        value("split.count", count_type, count),
        value("split.tensors.count", I32, n_tensors),
    ]
    return gguf_file([ARCH, *split], [tensor(name or f"t{number}")], bytes(128))


CASES: dict[str, tuple[str, dict[str, bytes]]] = {
    "second missing": ("MISSING_SHARD", {A: shard(0, 2)}),
    "first missing": ("MISSING_SHARD", {B: shard(1, 2)}),
    "renamed": ("BAD_SPLIT", {"x": shard(0, 2)}),
    "count in the name differs": ("BAD_SPLIT", {"00001-of-00003": shard(0, 2), "00002-of-00003": shard(1, 2)}),
    "65,535 parts": ("MISSING_SHARD", {"00001-of-65535": shard(0, 65535)}),
    "negative count": ("BAD_SPLIT", {A: shard(0, -2, count_type=I32), B: shard(1, 2)}),
    "huge count": ("BAD_SPLIT", {A: shard(0, 1 << 60, count_type=U64)}),
    "count is a text": ("BAD_TYPE", {A: shard(0, "2", count_type=STRING)}),
    "numbers swapped": ("BAD_SPLIT", {A: shard(1, 2), B: shard(0, 2)}),
    "same number twice": ("BAD_SPLIT", {A: shard(0, 2), B: shard(0, 2)}),
    "shard of another set": ("BAD_SPLIT", {A: shard(0, 2), B: shard(1, 3)}),
    "shard that is a whole model": ("MISSING_KEY", {A: shard(0, 2), B: WHOLE}),
    "number missing": ("MISSING_KEY", {A: gguf_file([value("split.count", U16, 2)]), B: shard(1, 2)}),
    "tensor count too high": ("BAD_SPLIT", {A: shard(0, 2, 3), B: shard(1, 2, 3)}),
    "tensor in two shards": ("DUP_TENSOR", {A: shard(0, 2, name="t"), B: shard(1, 2, name="t")}),
    "second cut": ("TRUNCATED", {A: shard(0, 2), B: shard(1, 2)[:-1]}),
    "second is a web page": ("NOT_GGUF", {A: shard(0, 2), B: b"<html>"}),
}


@pytest.mark.parametrize("name", CASES)
def test_malformed_set_is_refused(name: str, tmp_path: Path, opener: FileOpener) -> None:
    code, files = CASES[name]
    for stem, content in files.items():
        (tmp_path / f"m-{stem}.gguf").write_bytes(content)
    opener.assert_refused(code, tmp_path / f"m-{next(iter(files))}.gguf")


def test_a_good_set_is_good(tmp_path: Path, opener: FileOpener) -> None:
    for stem, content in {A: shard(0, 2), B: shard(1, 2)}.items():
        (tmp_path / f"m-{stem}.gguf").write_bytes(content)
    assert opener.open(tmp_path / f"m-{B}.gguf").code == "opened"
