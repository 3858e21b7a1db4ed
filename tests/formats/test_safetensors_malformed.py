"""Malformed safetensors files, indexes and configs: each ends in a ModelFileError that names the rule."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.file_opener import FileOpener
from localrun_testing.raw_files import Entry, safetensors_file, u64

from localrun.formats.safetensors import open_safetensors

ONE = {"a": Entry()}
TWO = {"a": Entry(), "b": Entry("F32", (2,), (8, 16))}
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 1234\n"


def header(text: str | bytes, data: bytes = bytes(8)) -> bytes:
    return safetensors_file(text, data)


def entry(dtype: Any = "F32", shape: Any = (2,), offsets: Any = (0, 8), n_data: int = 8) -> bytes:
    return safetensors_file({"a": Entry(dtype, shape, offsets)}, bytes(n_data))


def entry_with(extra: str) -> bytes:
    """A good entry, but for a field more; the format's library follows that, too."""
    return header('{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"extra":' + extra + "}}")


def named(name: str) -> bytes:
    return safetensors_file({name: Entry()}, bytes(8))


CASES: dict[str, tuple[str, bytes]] = {
    # the file as a whole
    "empty": ("TRUNCATED", b""),
    "4 bytes": ("TRUNCATED", b"\x08\0\0\0"),
    "8 bytes": ("TRUNCATED", u64(8)),
    "header length 0": ("BAD_HEADER", safetensors_file(ONE, bytes(8), length=0)),
    "header length 2^63": ("TRUNCATED", safetensors_file(ONE, bytes(8), length=1 << 63)),
    "header length 2^64-1": ("TRUNCATED", safetensors_file(ONE, bytes(8), length=-1)),
    "header longer than the file": ("TRUNCATED", safetensors_file(ONE, b"", length=300)),
    "web page": ("NOT_SAFETENSORS", b"<!DOCTYPE html><html>401</html>"),
    "git-lfs pointer": ("NOT_SAFETENSORS", LFS),
    "json": ("NOT_SAFETENSORS", b'{"error": "Repository not found"}'),
    "gguf": ("NOT_SAFETENSORS", b"GGUF\3\0\0\0" + bytes(40)),
    "pickle": ("PICKLE", b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."),
    "zip": ("PICKLE", b"PK\x03\x04" + bytes(40)),
    "zeros": ("NOT_SAFETENSORS", bytes(100)),
    # the header as JSON
    "not JSON": ("BAD_HEADER", header("{hello}")),
    "non-UTF-8": ("BAD_UTF8", header(b'{"\xff": {}}')),
    "lone surrogate": ("BAD_UTF8", header('{"\\ud800": {"dtype":"F32","shape":[2],"data_offsets":[0,8]}}')),
    "array": ("NOT_SAFETENSORS", header("[1, 2, 3]")),
    "null": ("NOT_SAFETENSORS", header("null")),
    "leading spaces": ("NOT_SAFETENSORS", header('   {"a":1}')),
    "trailing garbage": ("BAD_HEADER", header("{} x")),
    "cut": ("BAD_HEADER", header('{"a":{"dtype":"F32"')),
    "5,000 deep": ("BAD_HEADER", header('{"a":' * 5000 + "1" + "}" * 5000)),
    "100,000 deep": ("BAD_HEADER", header('{"a":' + "[" * 100_000)),
    "duplicate tensor": ("DUP_KEY", header("{" + ",".join(['"a":' + Entry().json()] * 2) + "}")),
    "duplicate field": ("DUP_KEY", header('{"a":{"dtype":"F32","dtype":"I8","shape":[2],"data_offsets":[0,8]}}')),
    "ten million items": ("BAD_HEADER", header('{"a":[' + "[]," * 5_000_000 + "[]]}")),
    "tensor that is a number": ("BAD_HEADER", header('{"a": 1}')),
    "tensor that is null": ("BAD_HEADER", header('{"a": null}')),
    "empty entry": ("BAD_TENSOR_TYPE", header('{"a": {}}')),
    "metadata that is a list": ("BAD_HEADER", header('{"__metadata__": []}', b"")),
    "metadata with a number": ("BAD_HEADER", header('{"__metadata__": {"a": 1}}', b"")),
    "300 deep in a field of no meaning": ("BAD_HEADER", entry_with("[" * 300 + "]" * 300)),
    # names
    "name ../../x": ("BAD_NAME", named("../../x")),
    "absolute name": ("BAD_NAME", named("/etc/passwd")),
    "empty name": ("BAD_NAME", named("")),
    "name with an escape sequence": ("BAD_NAME", named("\x1b]0;owned\x07")),
    "name with NUL": ("BAD_NAME", named("a\0b")),
    "long name": ("BAD_NAME", named("n" * 5000)),
    # types and shapes
    "unknown dtype": ("BAD_TENSOR_TYPE", entry("F33")),
    "F6 dtype": ("BAD_TENSOR_TYPE", entry("F6_E2M3", (8,))),
    "dtype is a list": ("BAD_TENSOR_TYPE", entry(["F32"])),
    "dtype with an escape sequence": ("BAD_TENSOR_TYPE", entry("\x1b[2J")),
    "negative dimension": ("BAD_DIMS", entry(shape=(-2,))),
    "float dimension": ("BAD_DIMS", entry(shape=(2.0,))),
    "boolean dimension": ("BAD_DIMS", entry(shape=(True, 2))),
    "text dimension": ("BAD_DIMS", entry(shape=("2",))),
    "shape is a number": ("BAD_DIMS", entry(shape=2)),
    "shape is null": ("BAD_DIMS", entry(shape=None)),
    "dimension 0": ("BAD_DIMS", entry(shape=(0,), offsets=(0, 0), n_data=0)),
    "shape [0, 2^60]": ("BAD_DIMS", entry(shape=(0, 1 << 60), offsets=(0, 0), n_data=0)),
    "dimension 2^64": ("BAD_DIMS", entry(shape=(1 << 64,))),
    "dimension of 4,000 digits": ("BAD_DIMS", entry(shape=(10**4000,))),
    "dimension of 5,000 digits": ("BAD_HEADER", header('{"a":{"dtype":"I8","shape":[' + "9" * 5000 + "]}}")),
    "elements wrap": ("TOO_BIG", entry(shape=(1 << 32, 1 << 32))),
    "64 dimensions": ("BAD_DIMS", entry(shape=(1,) * 64)),
    # places
    "offsets reversed": ("BAD_OFFSET", entry(offsets=(8, 0))),
    "negative offset": ("BAD_OFFSET", entry(offsets=(-8, 0))),
    "float offset": ("BAD_OFFSET", entry(offsets=(0, 8.0))),
    "one offset": ("BAD_OFFSET", entry(offsets=(0,))),
    "three offsets": ("BAD_OFFSET", entry(offsets=(0, 8, 16))),
    "offsets are null": ("BAD_OFFSET", entry(offsets=None)),
    "offset 2^64": ("BAD_OFFSET", entry(offsets=(0, 1 << 64))),
    "place too small": ("BAD_SIZE", entry(offsets=(0, 4))),
    "place too large": ("BAD_SIZE", entry(offsets=(0, 16), n_data=16)),
    "behind the end": ("TRUNCATED", entry(shape=(64,), offsets=(0, 256))),
    "starts behind the end": ("BAD_OFFSET", entry(offsets=(800, 808))),
    "1 TiB": ("TRUNCATED", entry(shape=(1 << 38,), offsets=(0, 1 << 40))),
    "overlap": ("OVERLAP", safetensors_file({"a": Entry(), "b": Entry("F32", (2,), (4, 12))}, bytes(12))),
    "shared place": ("OVERLAP", safetensors_file({"a": Entry(), "b": Entry()}, bytes(8))),
    "hole before": ("GAP", entry(offsets=(4, 12), n_data=12)),
    "hole between": ("GAP", safetensors_file({"a": Entry(), "b": Entry("F32", (2,), (12, 20))}, bytes(20))),
    "trailing bytes": ("TRAILING", safetensors_file(ONE, bytes(9))),
    "data short by one byte": ("TRUNCATED", safetensors_file(TWO, bytes(15))),
    "data missing": ("TRUNCATED", safetensors_file(TWO)),
    "no tensor": ("NO_TENSORS", header("{}", b"")),
    "nothing but blanks": ("NO_TENSORS", header("{}    ", b"")),
    "nothing but metadata": ("NO_TENSORS", header('{"__metadata__": null}', b"")),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_malformed_file_is_refused(name: str, tmp_path: Path, opener: FileOpener) -> None:
    code, content = CASES[name]
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    opener.assert_refused(code, path, "safetensors")


def test_a_header_of_101_mb_is_refused(tmp_path: Path, opener: FileOpener) -> None:
    """Not among the others, which every worker makes and keeps for the whole run."""
    path = tmp_path / "model.safetensors"
    path.write_bytes(header("{" + " " * 101_000_000 + "}"))
    opener.assert_refused("TOO_BIG", path, "safetensors")


@pytest.mark.parametrize(
    "content",
    [
        safetensors_file(TWO, bytes(16)),
        header('{"__metadata__": {"a": "b"}, "new": {"dtype":"F32","shape":[2],"data_offsets":[0,8],"extra":1}}'),
    ],
)
def test_good_files_are_good(content: bytes, tmp_path: Path, opener: FileOpener) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    assert opener.open(path, "safetensors").code == "opened"


INDEX = "model.safetensors.index.json"
FILES = {"1.safetensors": safetensors_file(ONE, bytes(8)), "2.safetensors": safetensors_file({"b": Entry()}, bytes(8))}
WEIGHT_MAP: dict[str, Any] = {"a": "1.safetensors", "b": "2.safetensors"}
A_IN_BOTH = {"1.safetensors": FILES["1.safetensors"], "2.safetensors": safetensors_file(TWO, bytes(16))}


def index(weight_map: Any = WEIGHT_MAP, total_size: Any = 16) -> str:
    return json.dumps({"metadata": {"total_size": total_size}, "weight_map": weight_map})


INDEX_CASES: dict[str, tuple[str, str, dict[str, bytes]]] = {
    "not JSON": ("BAD_INDEX", "{", FILES),
    "list": ("BAD_INDEX", "[]", FILES),
    "no weight_map": ("BAD_INDEX", "{}", FILES),
    "empty weight_map": ("BAD_INDEX", index({}), FILES),
    "weight_map is a list": ("BAD_INDEX", index(["a"]), FILES),
    "shard ../x": ("BAD_SHARD_NAME", index({"a": "../x.safetensors"}), FILES),
    "shard /x": ("BAD_SHARD_NAME", index({"a": "/x.safetensors"}), FILES),
    "shard a/b": ("BAD_SHARD_NAME", index({"a": "a/b.safetensors"}), FILES),
    "shard a\\b": ("BAD_SHARD_NAME", index({"a": "a\\b.safetensors"}), FILES),
    "shard C:x": ("BAD_SHARD_NAME", index({"a": "C:x.safetensors"}), FILES),
    "shard ..": ("BAD_SHARD_NAME", index({"a": ".."}), FILES),
    "shard without a name": ("BAD_SHARD_NAME", index({"a": ""}), FILES),
    "shard with NUL": ("BAD_SHARD_NAME", index({"a": "a\0.safetensors"}), FILES),
    "shard with an escape sequence": ("BAD_SHARD_NAME", index({"a": "\x1b[2J.safetensors"}), FILES),
    "pickled shard": ("BAD_SHARD_NAME", index({"a": "pytorch_model.bin"}), FILES),
    "shard is a number": ("BAD_SHARD_NAME", index({"a": 1}), FILES),
    "shard is a list": ("BAD_SHARD_NAME", index({"a": ["1.safetensors"]}), FILES),
    "very long shard name": ("BAD_SHARD_NAME", index({"a": "x" * 5000 + ".safetensors"}), FILES),
    "missing shard": ("MISSING_SHARD", index(), {"1.safetensors": FILES["1.safetensors"]}),
    "tensor in two shards": ("DUP_TENSOR", index(total_size=24), A_IN_BOTH),
    "broken shard": ("TRUNCATED", index(), FILES | {"2.safetensors": FILES["2.safetensors"][:-1]}),
}


@pytest.mark.parametrize("name", INDEX_CASES)
def test_malformed_index_is_refused(name: str, tmp_path: Path, opener: FileOpener) -> None:
    code, content, files = INDEX_CASES[name]
    for file, raw in files.items():
        (tmp_path / file).write_bytes(raw)
    (tmp_path / INDEX).write_text(content)
    opener.assert_refused(code, tmp_path, "safetensors")


INDEXES = {
    "right": index(),
    "names a tensor that no shard has": index({**WEIGHT_MAP, "c": "1.safetensors"}),
    "names another shard": index({"a": "2.safetensors", "b": "1.safetensors"}),
    "leaves a tensor out": index({"a": "1.safetensors", "c": "2.safetensors"}),
    "names a tensor twice": '{"weight_map": {"a": "1.safetensors", "b": "1.safetensors", "b": "2.safetensors"}}',
    "no metadata": json.dumps({"weight_map": WEIGHT_MAP}),
    "metadata is a list": json.dumps({"metadata": [1], "weight_map": WEIGHT_MAP}),
    **{f"total_size {size!r}": index(total_size=size) for size in (0, 1, 17, -16, 16.5, "16", True, None, math.inf)},
}


@pytest.mark.parametrize("name", INDEXES)
def test_an_index_says_which_shards_there_are_and_they_say_the_rest(name: str, tmp_path: Path) -> None:
    for file, raw in FILES.items():
        (tmp_path / file).write_bytes(raw)
    (tmp_path / INDEX).write_text(INDEXES[name])
    opened = open_safetensors(tmp_path)
    assert {tensor: info.file.name for tensor, info in opened.tensors.items()} == WEIGHT_MAP


CONFIG_CASES: dict[str, tuple[str, bytes]] = {
    "empty": ("BAD_CONFIG", b""),
    "not JSON": ("BAD_CONFIG", b"{'a': 1}"),
    "web page": ("BAD_CONFIG", b"<!DOCTYPE html>"),
    "git-lfs pointer": ("BAD_CONFIG", LFS),
    "list": ("BAD_CONFIG", b"[]"),
    "number of 5,000 digits": ("BAD_CONFIG", b'{"a": ' + b"9" * 5000 + b"}"),
    "10 MB of nesting": ("TOO_BIG", b'{"a":' + b"[" * 10_000_000),
    "7 MB of nesting": ("BAD_CONFIG", b'{"a":' + b"[" * 7_000_000),
    "900,000 deep": ("BAD_CONFIG", b'{"a":' + b"[" * 900_000 + b"]" * 900_000 + b"}"),
    "10 MB of text": ("TOO_BIG", b'{"a":"' + b"x" * 10_000_000 + b'"}'),
    "two million items": ("BAD_CONFIG", b'{"a":[' + b"[]," * 2_000_000 + b"[]]}"),
    "non-UTF-8": ("BAD_UTF8", b'{"a": "\xff"}'),
    "lone surrogate": ("BAD_UTF8", b'{"a": ["\\udfff"]}'),
    "UTF-16": ("BAD_UTF8", '{"a": 1}'.encode("utf-16")),
}


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
@pytest.mark.parametrize("name", CONFIG_CASES)
def test_malformed_config_is_refused(name: str, file: str, tmp_path: Path, opener: FileOpener) -> None:
    code, content = CONFIG_CASES[name]
    (tmp_path / "tokenizer.json").write_text("{}")
    (tmp_path / file).write_bytes(content)
    opener.assert_refused(code, tmp_path, "safetensors")


TEMPLATE_CASES: dict[str, tuple[str, str, bytes]] = {
    "a number": ("BAD_CONFIG", "tokenizer_config.json", b'{"chat_template": 1}'),
    "map of numbers": ("BAD_CONFIG", "tokenizer_config.json", b'{"chat_template": {"name": 1}}'),
    "list of texts": ("BAD_CONFIG", "tokenizer_config.json", b'{"chat_template": ["a"]}'),
    "list without names": ("BAD_CONFIG", "tokenizer_config.json", b'{"chat_template": [{"template": "a"}]}'),
    "name is a list": ("BAD_CONFIG", "tokenizer_config.json", b'{"chat_template": [{"name": [], "template": "a"}]}'),
    "text is a number": ("BAD_CONFIG", "tokenizer_config.json", b'{"chat_template": [{"name": "a", "template": 1}]}'),
}  # fmt: skip


@pytest.mark.parametrize("name", TEMPLATE_CASES)
def test_malformed_template_is_refused(name: str, tmp_path: Path, opener: FileOpener) -> None:
    code, file, content = TEMPLATE_CASES[name]
    (tmp_path / "tokenizer.json").write_text("{}")
    (tmp_path / file).write_bytes(content)
    opener.assert_refused(code, tmp_path, "safetensors")
