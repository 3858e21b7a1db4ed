"""Good GGUF files: everything in them comes out, as the gguf package sees it."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from localrun_testing.cpu_time import within
from localrun_testing.raw_files import (
    ARCH,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    STRING,
    U8,
    U16,
    U32,
    U64,
    array,
    gguf_file,
    tensor,
    text,
    u64,
    value,
)

from localrun.base.errors import ModelFileError, NotFoundError
from localrun.formats.files import Fetch
from localrun.formats.gguf import open_gguf
from localrun.formats.gguf_header import GgufHeader, read_header
from localrun.formats.quant import QUANT_TYPES
from localrun.formats.source import TensorSource
from tools.gguf_write import Encoded, Typed, write_gguf

METADATA: dict[str, Any] = {
    "general.architecture": "llama",
    "general.name": "Zwölf Boxkämpfer 🥊",
    "llama.block_count": 2,
    "llama.rope.freq_base": 1e6,
    "tokenizer.ggml.add_bos_token": True,
    "tokenizer.ggml.tokens": ["<s>", "", "▁the", "🙂"],
    "tokenizer.ggml.scores": [0.0, -1.5, float("-inf"), 2.0],
    "tokenizer.ggml.token_type": [3, 1, 1, 6],
    "x.flags": [True, False],
    "x.small": Typed(-7, "INT8"),
    "x.large": 1 << 63,
    "x.negative": -5,
    "x.double": Typed(1e-300, "FLOAT64"),
}


def random_tensors() -> dict[str, torch.Tensor | Encoded]:
    """One tensor of each type that the gguf package knows, two and three dimensions."""
    rng = np.random.default_rng(0)
    tensors: dict[str, torch.Tensor | Encoded] = {"norm.weight": torch.arange(33.0)}
    for row in QUANT_TYPES.values():
        if row.name in gguf.GGMLQuantizationType.__members__:
            shape = (2, 3, 2 * row.block_size) if row.name == "Q4_K" else (3, 2 * row.block_size)
            tensors[f"{row.name.lower()}.weight"] = Encoded(row.name, shape, rng.bytes(row.nbytes(shape)))
    return tensors


def write(path: Path, **options: Any) -> list[Path]:
    return write_gguf(path, METADATA, random_tensors(), **options)


@pytest.mark.parametrize("alignment", [None, 1, 8, 32, 256, 65536])
def test_reads_what_gguf_reads(tmp_path: Path, alignment: int | None) -> None:
    path = tmp_path / "model.gguf"
    write(path, alignment=alignment)
    model: TensorSource = open_gguf(path)
    oracle = gguf.GGUFReader(path)
    assert {info.name for info in oracle.tensors} == set(model.tensors)
    for info in oracle.tensors:
        found = model.tensors[info.name]
        assert found.shape == tuple(reversed(info.shape.tolist()))
        assert found.qtype == info.tensor_type.name
        assert (found.nbytes, found.offset, found.file) == (info.n_bytes, info.data_offset, path)
        assert bytes(model.read(info.name)) == info.data.tobytes()
    fields = {name: field.contents() for name, field in oracle.fields.items() if not name.startswith("GGUF.")}
    for name, content in fields.items():
        assert model.metadata[name] == content
        assert type(model.metadata[name]) is type(content)
    assert set(model.metadata) == set(fields)
    assert model.path == path
    assert model.format == "gguf"
    assert open_gguf(str(path)).warnings == ()


def test_what_was_looked_into_is_not_read_again_until_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []

    def counted(fetch: Fetch, size: int, path: Path) -> GgufHeader:
        read.append(path)
        return read_header(fetch, size, path)

    monkeypatch.setattr("localrun.formats.gguf.read_header", counted)
    path = tmp_path / "model.gguf"
    write(path)
    looked_into, opened = open_gguf(path, ahead=True), open_gguf(path)
    assert opened.metadata == looked_into.metadata
    assert opened.tensors == looked_into.tensors
    assert len(read) == 1
    open_gguf(path)
    assert len(read) == 2, "and not kept after that"
    open_gguf(path, ahead=True)
    write_gguf(path, METADATA, {"other": torch.zeros(64)})
    assert list(open_gguf(path).tensors) == ["other"]


def test_reads_rows(tmp_path: Path) -> None:
    write(tmp_path / "model.gguf")
    model = open_gguf(tmp_path / "model.gguf")
    whole = bytes(model.read("q4_k.weight"))
    row = 2 * 144
    assert bytes(model.read("q4_k.weight", 4)) == whole[4 * row :]
    assert bytes(model.read("q4_k.weight", 1, 2)) == whole[row : 3 * row]
    assert model.read("q4_k.weight", 6, 0) == b""
    assert isinstance(model.read("norm.weight"), bytearray)
    for first, count in ((-1, 1), (0, 7), (5, 2), (0, -1), (7, 0)):
        with pytest.raises(ValueError, match="of a tensor of 6 rows"):
            model.read("q4_k.weight", first, count)
    with pytest.raises(ModelFileError, match="no tensor 'nope'"):
        model.read("nope")


def test_counts_parameters_and_bytes(tmp_path: Path) -> None:
    write_gguf(tmp_path / "m.gguf", METADATA, {"a": torch.zeros(3, 64), "b": torch.zeros(5)}, {"a": "Q8_0"})
    model = open_gguf(tmp_path / "m.gguf")
    assert (model.n_params, model.nbytes) == (3 * 64 + 5, 6 * 34 + 20)


def test_written_weights_come_back(tmp_path: Path) -> None:
    weights = torch.randn(4, 64)
    write_gguf(tmp_path / "m.gguf", METADATA, {"a": weights, "b": weights}, {"a": "Q8_0"})
    model = open_gguf(tmp_path / "m.gguf")
    for name, limit in (("a", 0.02), ("b", 0.0)):
        info = model.tensors[name]
        raw = torch.frombuffer(model.read(name), dtype=torch.uint8)
        assert (QUANT_TYPES[info.qtype].decode(raw, info.shape) - weights).abs().max() <= limit


def test_version_2_is_the_same_layout(tmp_path: Path) -> None:
    path = tmp_path / "old.gguf"
    path.write_bytes(gguf_file([ARCH], [tensor("a")], bytes(128), version=2))
    model = open_gguf(path)
    assert (model.version, list(model.tensors)) == (2, ["a"])


def test_reads_every_number_type(tmp_path: Path) -> None:
    extremes = {
        **{t: (0, 2**bits - 1) for t, bits in ((U8, 8), (U16, 16), (U32, 32), (U64, 64))},
        **{t: (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for t, bits in ((I8, 8), (I16, 16), (I32, 32), (I64, 64))},
        F32: (-0.5, 2.0**127),
        F64: (1e-300, -1e300),
    }
    keys = [ARCH, *(value(f"{t}.{i}", t, v) for t, pair in extremes.items() for i, v in enumerate(pair))]
    path = tmp_path / "numbers.gguf"
    path.write_bytes(gguf_file(keys))
    metadata = open_gguf(path).metadata
    for value_type, pair in extremes.items():
        assert tuple(metadata[f"{value_type}.{i}"] for i in range(2)) == pair


def test_a_vocabulary_without_tensors_opens(tmp_path: Path) -> None:
    path = tmp_path / "vocab.gguf"
    tokens = array("tokenizer.ggml.tokens", STRING, 3, text("a") + text("") + text("ü"))
    path.write_bytes(gguf_file([ARCH, tokens, array("empty", STRING, 0), value("GGUF.version", U8, 9)]))
    model = open_gguf(path)
    assert dict(model.tensors) == {}
    assert model.metadata["tokenizer.ggml.tokens"] == ["a", "", "ü"]
    assert model.metadata["empty"] == []
    assert model.metadata["GGUF.version"] == 9


def test_tensors_may_be_listed_in_any_order(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(
        gguf_file([ARCH], [tensor("late", offset=128), tensor("early", offset=0)], b"e" * 128 + b"l" * 128)
    )
    model = open_gguf(path)
    assert list(model.tensors) == ["late", "early"]
    assert bytes(model.read("late")) == b"l" * 128


def test_the_last_padding_may_be_missing_and_trailing_bytes_are_named(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    for extra, warned in ((b"", False), (bytes(28), False), (bytes(29), True), (bytes(1 << 20), True)):
        path.write_bytes(gguf_file([ARCH], [tensor("a", (33,))], bytes(132) + extra))
        warnings = open_gguf(path).warnings
        assert bool(warnings) is warned
        assert all("m.gguf" in warning and "ignored" in warning for warning in warnings)


def shard_paths(folder: Path) -> list[Path]:
    files = write(folder / "model.gguf", split_max_tensors=8)
    assert len(files) == 5
    assert files[1].name == "model-00002-of-00005.gguf"
    return files


def test_any_shard_opens_the_set(tmp_path: Path) -> None:
    files = shard_paths(tmp_path)
    write(tmp_path / "whole.gguf")
    whole = open_gguf(tmp_path / "whole.gguf")
    for path in files:
        model = open_gguf(path)
        assert model.path == path
        assert model.files == tuple(files)
        assert model.metadata["general.name"] == METADATA["general.name"]
        assert list(model.tensors) == list(whole.tensors)
        assert all(model.read(name) == whole.read(name) for name in model.tensors)


def test_a_set_of_links_opens(tmp_path: Path) -> None:
    """As in the Hugging Face cache, where files are links to blobs named by their hash."""
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshot"
    blobs.mkdir()
    snapshot.mkdir()
    for number, path in enumerate(shard_paths(blobs)):
        path.rename(blobs / f"{number:064x}")
        (snapshot / path.name).symlink_to(blobs / f"{number:064x}")
    model = open_gguf(snapshot / "model-00003-of-00005.gguf")
    assert bytes(model.read("norm.weight"))
    assert len(model.tensors) == len(random_tensors())


def test_reading_a_file_that_was_replaced_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    write(path)
    model = open_gguf(path)
    raw = path.read_bytes()
    for change in (raw[:-1], raw + b"x", raw):
        path.write_bytes(change)
        os.utime(path, ns=(1, 1))
        with pytest.raises(ModelFileError, match="changed after it was opened") as caught:
            model.read("norm.weight")
        assert caught.value.code == "CHANGED"
    path.unlink()
    with pytest.raises(NotFoundError):
        model.read("norm.weight")


def test_a_file_cut_short_between_check_and_read_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.gguf"
    write(path)
    model = open_gguf(path)
    stamp = model.stamps[path]
    path.write_bytes(path.read_bytes()[:2000])
    monkeypatch.setattr("localrun.formats.files.stamp_of", lambda file: stamp)
    with pytest.raises(ModelFileError, match="changed after it was opened"):
        model.read("q8_k.weight")


def test_opens_without_torch_numpy_or_gguf(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(gguf_file([ARCH], [tensor("a")], bytes(128)))
    code = (
        "import sys; from localrun.formats.detect import open_model_file; open_model_file(sys.argv[1]).read('a');"
        "print([name for name in ('torch', 'numpy', 'gguf', 'mmap') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_opens_a_large_vocabulary_fast(shared_dir: Path) -> None:
    path = shared_dir / "vectors/tokenizer/ggml-vocab-qwen2.gguf"
    model = within(0.5, lambda: open_gguf(path))
    assert len(model.metadata["tokenizer.ggml.tokens"]) == 151_936


@pytest.mark.slow
def test_reads_vocabularies_like_gguf(shared_dir: Path) -> None:
    for name in ("llama-spm", "bert-bge"):
        path = shared_dir / f"vectors/tokenizer/ggml-vocab-{name}.gguf"
        oracle, model = gguf.GGUFReader(path), open_gguf(path)
        fields = {key: field.contents() for key, field in oracle.fields.items() if not key.startswith("GGUF.")}
        assert dict(model.metadata) == fields


def test_many_tensors_and_keys_open_fast(tmp_path: Path) -> None:
    path = tmp_path / "many.gguf"
    n = 50_000
    tensors = [tensor(f"blk.{i}.weight", (8,), offset=32 * i) for i in range(n)]
    path.write_bytes(gguf_file([value(f"key.{i}", U64, i) for i in range(n)], tensors, bytes(32 * n)))
    model = within(3, lambda: open_gguf(path))
    assert len(model.tensors) == len(model.metadata) == n
    assert model.tensors["blk.49999.weight"].offset == path.stat().st_size - 32


def test_arrays_of_a_million_elements_open_fast(tmp_path: Path) -> None:
    path = tmp_path / "array.gguf"
    n = 1_000_000
    path.write_bytes(gguf_file([array("numbers", F64, n, bytes(8 * n)), array("texts", STRING, n, u64(0) * n)]))
    metadata = within(3, lambda: open_gguf(path)).metadata
    assert metadata["numbers"] == [0.0] * n
    assert metadata["texts"] == [""] * n
