"""Malformed GGUF files: each ends in a ModelFileError that names the rule, at once and without memory."""

from pathlib import Path

import pytest
from localrun_testing.file_opener import FileOpener
from localrun_testing.raw_files import (
    ARCH,
    ARRAY,
    BOOL,
    F32,
    I8,
    I32,
    Q4_0,
    Q4_K,
    STRING,
    U8,
    U16,
    U32,
    U64,
    array,
    gguf_file,
    key,
    tensor,
    text,
    u32,
    u64,
    value,
)

from localrun.base.errors import ModelFileError
from localrun.formats.gguf import open_gguf

GOOD = gguf_file([ARCH, value("llama.block_count", U32, 1)], [tensor("a"), tensor("b", offset=128)], bytes(256))
BIG_ENDIAN = b"GGUF" + b"\0\0\0\3" + bytes(7) + b"\0" + bytes(7) + b"\1"
ESCAPE = "\x1b]52;c;cm0gLXJmIH4=\x07"
PICKLE = b"\x80\x04\x95\x1a\0\0\0\0\0\0\0\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x02id\x94\x85\x94R\x94."


def keys(*malformed: bytes) -> bytes:
    return gguf_file([ARCH, *malformed])


def tensors(*table: bytes, data: int = 128) -> bytes:
    return gguf_file([ARCH], table, bytes(data))


CASES: dict[str, tuple[str, bytes]] = {
    # the file as a whole
    "empty": ("TRUNCATED", b""),
    "one byte": ("TRUNCATED", b"G"),
    "magic only": ("TRUNCATED", b"GGUF"),
    "cut in the version": ("TRUNCATED", GOOD[:6]),
    "cut in the tensor count": ("TRUNCATED", GOOD[:12]),
    "cut in the key count": ("TRUNCATED", GOOD[:20]),
    "ggjt": ("NOT_GGUF", b"tjgg" + GOOD[4:]),
    "ggjt reversed": ("NOT_GGUF", b"ggjt" + GOOD[4:]),
    "zip": ("PICKLE", b"PK\x03\x04" + bytes(60)),
    "pickle": ("PICKLE", PICKLE),
    "web page": ("NOT_GGUF", b"<!DOCTYPE html><html><title>401 Unauthorized</title></html>"),
    "git-lfs pointer": ("NOT_GGUF", b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 1234\n"),
    "json": ("NOT_GGUF", b'{"error": "Access to model is restricted"}'),
    "zeros": ("NOT_GGUF", bytes(4096)),
    "noise": ("NOT_GGUF", bytes(range(200, 100, -1))),
    "lower case magic": ("NOT_GGUF", b"gguf" + GOOD[4:]),
    "version 0": ("BAD_VERSION", gguf_file(version=0)),
    "version 1": ("BAD_VERSION", gguf_file(version=1)),
    "version 4": ("BAD_VERSION", gguf_file(version=4)),
    "version 2^32-1": ("BAD_VERSION", gguf_file(version=(1 << 32) - 1)),
    "big-endian": ("BIG_ENDIAN", BIG_ENDIAN),
    "big-endian magic": ("BIG_ENDIAN", b"FUGG" + BIG_ENDIAN[4:]),
    "data short by one byte": ("TRUNCATED", GOOD[:-1]),
    "data missing": ("TRUNCATED", GOOD[:-256]),
    "cut in the padding before the data": ("TRUNCATED", GOOD[:-257]),
    # counts
    "2^64-1 tensors": ("BAD_COUNT", gguf_file(n_tensors=-1)),
    "2^40 tensors": ("BAD_COUNT", gguf_file(n_tensors=1 << 40)),
    "2^63 tensors": ("BAD_COUNT", gguf_file(n_tensors=1 << 63)),
    "2^64-1 keys": ("BAD_COUNT", gguf_file(n_keys=-1)),
    "2^40 keys": ("BAD_COUNT", gguf_file(n_keys=1 << 40)),
    "more keys than any model has": ("BAD_COUNT", gguf_file(n_keys=70_000) + bytes(1 << 20)),
    "more tensors than any model has": ("BAD_COUNT", gguf_file(n_tensors=70_000) + bytes(1 << 22)),
    "one key too many": ("TRUNCATED", gguf_file([ARCH, value("k", STRING, "x" * 64)], n_keys=3)),
    "one key too few": ("BAD_DIMS", gguf_file([ARCH, value("k", STRING, "v")], [tensor("a")], bytes(128), n_keys=1)),
    "one tensor too many": ("BAD_NAME", gguf_file([ARCH], [tensor("a")], bytes(128), n_tensors=2)),
    # keys
    "key length 2^64-1": ("TRUNCATED", keys(u64(-1) + b"key" + bytes(32))),
    "key longer than the file": ("TRUNCATED", keys(text("key", 4000) + bytes(32))),
    "empty key": ("BAD_KEY", keys(value("", U32, 1))),
    "70 kB key": ("BAD_KEY", keys(value("k" * 70_000, U32, 1))),
    "NUL in a key": ("BAD_KEY", keys(value("a\0b", U32, 1))),
    "escape sequence in a key": ("BAD_KEY", keys(value(ESCAPE, U32, 1))),
    "non-UTF-8 key": ("BAD_UTF8", keys(value(b"\xff\xfe", U32, 1))),
    "surrogate in a key": ("BAD_UTF8", keys(value(b"\xed\xa0\x80", U32, 1))),
    "duplicate key": ("DUP_KEY", keys(value("a", U32, 1), value("a", U32, 2))),
    "duplicate architecture": ("DUP_KEY", keys(ARCH)),
    # values
    "value type 13": ("BAD_TYPE", keys(key("k", 13, bytes(8)))),
    "value type 2^32-1": ("BAD_TYPE", keys(key("k", (1 << 32) - 1, bytes(8)))),
    "value cut off": ("TRUNCATED", keys(key("k", U64, bytes(4)))),
    "type cut off": ("TRUNCATED", keys(text("some.key") + b"\4\0")),
    "string length 2^63": ("TRUNCATED", keys(key("k", STRING, text("xyz", 1 << 63)))),
    "string length 2^64-1": ("TRUNCATED", keys(key("k", STRING, text("xyz", -1)))),
    "string longer than the file": ("TRUNCATED", keys(key("k", STRING, text("xyz", 4)))),
    "17 MiB string": ("TOO_BIG", keys(value("k", STRING, "x" * (17 << 20)))),
    "non-UTF-8 chat template": ("BAD_UTF8", keys(value("tokenizer.chat_template", STRING, b"caf\xe9"))),
    "overlong UTF-8": ("BAD_UTF8", keys(value("k", STRING, b"\xc0\x80"))),
    "bool 2": ("BAD_BOOL", keys(key("k", BOOL, b"\2"))),
    "bool 255 in an array": ("BAD_BOOL", keys(array("k", BOOL, 3, b"\0\1\xff"))),
    # arrays
    "u8[2^40]": ("TRUNCATED", keys(array("k", U8, 1 << 40))),
    "u8[2^29]": ("TRUNCATED", keys(array("k", U8, 1 << 29))),
    "u64[2^61]": ("TRUNCATED", keys(array("k", U64, 1 << 61, bytes(8)))),
    "u64[2^64-1]": ("TRUNCATED", keys(array("k", U64, -1))),
    "str[2^40]": ("TRUNCATED", keys(array("k", STRING, 1 << 40, text("a")))),
    "str[2] with one": ("TRUNCATED", keys(array("k", STRING, 2, text("abcdefgh")))),
    "string in an array longer than the file": ("TRUNCATED", keys(array("k", STRING, 1, text("a", 1 << 63)))),
    "non-UTF-8 token": ("BAD_UTF8", keys(array("tokenizer.ggml.tokens", STRING, 2, text("a") + text(b"\xff")))),
    "array of arrays": ("NESTED_ARRAY", keys(array("k", ARRAY, 1, u32(U8) + u64(1) + b"a"))),
    "arrays nested 2,000 deep": ("NESTED_ARRAY", keys(array("k", ARRAY, 1, (u32(ARRAY) + u64(1)) * 2000))),
    "empty array of arrays": ("NESTED_ARRAY", keys(array("k", ARRAY, 0))),
    "empty array of type 77": ("BAD_TYPE", keys(array("k", 77, 0))),
    "5 million elements": ("TOO_BIG", keys(array("k", U8, 5_000_000, bytes(5_000_000)))),
    "5 million elements in two arrays": (
        "TOO_BIG",
        keys(array("k", I8, 2_500_000, bytes(2_500_000)), array("l", U16, 2_500_000, bytes(5_000_000))),
    ),
    # alignment
    "alignment 0": ("BAD_ALIGN", keys(value("general.alignment", U32, 0))),
    "alignment 13": ("BAD_ALIGN", keys(value("general.alignment", U32, 13))),
    "alignment 2^17": ("BAD_ALIGN", keys(value("general.alignment", U32, 1 << 17))),
    "alignment 2^31": ("BAD_ALIGN", keys(value("general.alignment", U32, 1 << 31))),
    "alignment i32": ("BAD_ALIGN", keys(value("general.alignment", I32, 32))),
    "alignment -32": ("BAD_ALIGN", keys(value("general.alignment", I32, -32))),
    "alignment u64": ("BAD_ALIGN", keys(value("general.alignment", U64, 32))),
    "alignment float": ("BAD_ALIGN", keys(value("general.alignment", F32, 32.0))),
    "alignment string": ("BAD_ALIGN", keys(value("general.alignment", STRING, "32"))),
    "alignment array": ("BAD_ALIGN", keys(array("general.alignment", U32, 1, u32(32)))),
    # tensor names
    "name of 65 bytes": ("BAD_NAME", tensors(tensor("n" * 65))),
    "empty name": ("BAD_NAME", tensors(tensor(""))),
    "name ../../etc/passwd": ("BAD_NAME", tensors(tensor("../../etc/passwd"))),
    "name /etc/passwd": ("BAD_NAME", tensors(tensor("/etc/passwd"))),
    "name ..\\x": ("BAD_NAME", tensors(tensor("..\\x"))),
    "name with an escape sequence": ("BAD_NAME", tensors(tensor(ESCAPE))),
    "name with C1 controls": ("BAD_NAME", tensors(tensor("a\x9b2J"))),
    "name that is written backwards": ("BAD_NAME", tensors(tensor("a\u202eb"))),
    "non-UTF-8 name": ("BAD_UTF8", tensors(tensor(b"a\xff"))),
    "name length 2^64-1": ("TRUNCATED", tensors(text("a", -1) + bytes(40))),
    "duplicate name": ("DUP_TENSOR", tensors(tensor("a"), tensor("a", offset=128), data=256)),
    # tensor shapes
    "0 dimensions": ("BAD_DIMS", tensors(tensor("a", ()) + bytes(16))),
    "5 dimensions": ("BAD_DIMS", tensors(tensor("a", (2, 2, 2, 2, 2)))),
    "2^32-1 dimensions": ("BAD_DIMS", tensors(tensor("a", n_dims=-1))),
    "dimension 0": ("BAD_DIMS", tensors(tensor("a", (0,)))),
    "last dimension 0": ("BAD_DIMS", tensors(tensor("a", (32, 0)))),
    "dimension 2^64-1": ("BAD_DIMS", tensors(tensor("a", (-1,)))),
    "dimension 2^63": ("BAD_DIMS", tensors(tensor("a", (1 << 63,)))),
    "elements wrap to 0": ("TOO_BIG", tensors(tensor("a", (1 << 32, 1 << 32)))),
    "elements wrap to 32": ("TOO_BIG", tensors(tensor("a", ((1 << 60) + 1, 32)))),
    "2^62 by 4": ("TOO_BIG", tensors(tensor("a", (1 << 62, 4)))),
    "2^63+32": ("TOO_BIG", tensors(tensor("a", ((1 << 62) + 16, 2)))),
    "bytes wrap to 0": ("TOO_BIG", tensors(tensor("a", (1 << 62,)))),
    "padding wraps to 0": ("TOO_BIG", tensors(tensor("a", ((1 << 62) - 4,)))),
    "4 TiB tensor": ("TRUNCATED", tensors(tensor("a", (1 << 40,)))),
    "type 999": ("BAD_TENSOR_TYPE", tensors(tensor("a", type_id=999))),
    "type -1": ("BAD_TENSOR_TYPE", tensors(tensor("a", type_id=-1))),
    "type Q4_2": ("BAD_TENSOR_TYPE", tensors(tensor("a", type_id=4))),
    "type Q4_0_4_4": ("BAD_TENSOR_TYPE", tensors(tensor("a", type_id=31))),
    "type Q8_1": ("BAD_TENSOR_TYPE", tensors(tensor("a", type_id=9))),
    "Q4_0 row of 33": ("BAD_ROW", tensors(tensor("a", (33,), Q4_0))),
    "Q4_K row of 32": ("BAD_ROW", tensors(tensor("a", (32, 8), Q4_K))),
    "Q4_0 row of 16, twice": ("BAD_ROW", tensors(tensor("a", (16, 2), Q4_0))),
    # tensor places
    "offset 2^64-1": ("BAD_OFFSET", tensors(tensor("a", offset=-1))),
    "offset 2^64-64": ("BAD_OFFSET", tensors(tensor("a", offset=-64))),
    "offset behind the end": ("BAD_OFFSET", tensors(tensor("a", offset=1 << 20))),
    "offset 7": ("BAD_OFFSET", tensors(tensor("a", offset=7))),
    "offset 32 where 64 is the alignment": (
        "BAD_OFFSET",
        gguf_file([value("general.alignment", U32, 64)], [tensor("a", offset=32)], bytes(256), alignment=64),
    ),
    "overlap": ("OVERLAP", tensors(tensor("a"), tensor("b", offset=96), data=256)),
    "same place": ("OVERLAP", tensors(tensor("a"), tensor("b"), data=256)),
    "hole before the first": ("GAP", tensors(tensor("a", offset=32), data=256)),
    "hole between": ("GAP", tensors(tensor("a"), tensor("b", offset=160), data=512)),
    "table cut off": ("TRUNCATED", gguf_file([ARCH], [tensor("a")])[:-41]),
}  # fmt: skip
SPARSE = {  # a header that is longer than any memory, in a file that has the size for it
    "sparse: u8[2^35]": ("TOO_BIG", keys(array("k", U8, 1 << 35))),
    "sparse: 2^34 byte string": ("TOO_BIG", keys(key("k", STRING, u64(1 << 34)))),
    "sparse: str[2^32]": ("TOO_BIG", keys(array("k", STRING, 1 << 32))),
    "sparse: 65,536 empty keys": ("BAD_KEY", gguf_file(n_keys=65_536)),
    "sparse: 65,536 empty names": ("BAD_NAME", gguf_file(n_tensors=65_536)),
}
SPARSE_BYTES = 1 << 36


@pytest.mark.parametrize("name", CASES)
def test_malformed_file_is_refused(name: str, tmp_path: Path, opener: FileOpener) -> None:
    code, content = CASES[name]
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    opener.assert_refused(code, path)


@pytest.mark.parametrize("name", SPARSE)
def test_malformed_sparse_file_is_refused(name: str, tmp_path: Path, opener: FileOpener) -> None:
    code, content = SPARSE[name]
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    with path.open("r+b") as file:
        file.truncate(SPARSE_BYTES)
    opener.assert_refused(code, path)


def test_header_behind_64_mib_is_refused(tmp_path: Path, opener: FileOpener) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(keys(*(value(f"k{i}", STRING, "x" * (15 << 20)) for i in range(5))))
    opener.assert_refused("TOO_BIG", path)


def test_the_good_file_is_good(tmp_path: Path, opener: FileOpener) -> None:
    """All cases above are this file with one thing wrong."""
    path = tmp_path / "model.gguf"
    path.write_bytes(GOOD)
    outcome = opener.open(path)
    assert (outcome.code, outcome.message) == ("opened", "()")


def test_cut_anywhere_it_is_truncated(tmp_path: Path, opener: FileOpener) -> None:
    path = tmp_path / "model.gguf"
    for length in range(len(GOOD)):
        path.write_bytes(GOOD[:length])
        assert opener.open(path).code == "TRUNCATED", length


def test_offset_points_at_the_fault(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(keys(value("tokenizer.chat_template", STRING, b"caf\xe9")))
    with pytest.raises(ModelFileError, match=r"the value of 'tokenizer.chat_template' is not UTF-8") as caught:
        open_gguf(path)
    assert caught.value.offset == path.stat().st_size - 1
    assert f"(at byte {path.stat().st_size - 1:,})" in caught.value.message
    assert caught.value.path == str(path)
    assert caught.value.exit_code == 6
