"""Good headers with random damage: either what they announce is true, or a ModelFileError says what is wrong."""

import random
import struct
from collections.abc import Callable, Mapping
from math import prod
from pathlib import Path

import pytest
from localrun_testing.raw_files import (
    ARCH,
    BOOL,
    F32,
    I32,
    Q4_0,
    Q4_K,
    STRING,
    U32,
    Entry,
    array,
    gguf_file,
    safetensors_file,
    tensor,
    text,
    value,
)

from localrun.base.errors import ModelFileError
from localrun.formats import gguf_header, safetensors_header
from localrun.formats.quant import QUANT_TYPES
from localrun.formats.source import TensorInfo

Mutation = Callable[[random.Random, bytes], bytes]

KEYS = [
    ARCH,
    value("general.alignment", U32, 64),
    value("b", BOOL, 1),
    value("f", F32, 1e6),
    value("s", STRING, "naïve 🙂"),
    array("tokens", STRING, 3, text("a") + text("") + text("é")),
    array("scores", F32, 2, bytes(8)),
    array("types", I32, 2, bytes(8)),
    array("bools", BOOL, 2, b"\0\1"),
]
TENSORS = [tensor("a", (8, 4)), tensor("b.weight", (64, 2, 2), Q4_0, 128), tensor("c", (256,), Q4_K, 320)]
GGUF = gguf_file(KEYS, TENSORS, bytes(320 + 144), alignment=64)
SAFETENSORS = safetensors_file(
    {"a": Entry("F32", (2, 3), (0, 24)), "b.weight": Entry("BF16", (4,), (24, 32)), "c": Entry("U8", (), (32, 33))},
    bytes(33),
)
POWERS = [(1 << bits) + delta for bits in (16, 31, 32, 40, 61, 62, 63, 64) for delta in (-64, -1, 0)]
INTERESTING = [*range(14), 31, 63, 64, 255, *POWERS]
TOKENS = b'[ ] { } , : " \\ \\ud800 \0 -1 1e999 NaN null true 0 .. [[[[['.split(b" ")
TOKENS += b'99999999999999999999 "F32" "I4" "dtype" "a" \xff'.split(b" ")


def flip(rng: random.Random, raw: bytes) -> bytes:
    at = rng.randrange(len(raw))
    return raw[:at] + bytes([raw[at] ^ 1 << rng.randrange(8)]) + raw[at + 1 :]


def cut(rng: random.Random, raw: bytes) -> bytes:
    return raw[: rng.randrange(len(raw))]


def drop(rng: random.Random, raw: bytes) -> bytes:
    at = rng.randrange(len(raw))
    return raw[:at] + raw[at + rng.randrange(1, 40) :]


def repeat(rng: random.Random, raw: bytes) -> bytes:
    at = rng.randrange(len(raw))
    return raw[:at] + raw[at : at + rng.randrange(1, 40)] * rng.choice((2, 3)) + raw[at:]


def number(rng: random.Random, raw: bytes) -> bytes:
    size, code = rng.choice(((4, "<I"), (8, "<Q")))
    at = rng.randrange(max(1, len(raw) - size))
    new = rng.choice((*INTERESTING, len(raw), len(raw) - at))
    return raw[:at] + struct.pack(code, new % (1 << 8 * size)) + raw[at + size :]


def grow(rng: random.Random, raw: bytes) -> bytes:
    return raw + rng.randbytes(rng.choice((1, 32, 64, 1000)))


def token(rng: random.Random, raw: bytes) -> bytes:
    """Insert or replace a piece of JSON, and let the announced length stay true."""
    header = raw[8:]
    at = rng.randrange(len(header) + 1)
    new = header[:at] + rng.choice(TOKENS) + header[at + rng.randrange(3) :]
    length = int.from_bytes(raw[:8], "little") + len(new) - len(header)
    return struct.pack("<Q", length % (1 << 64)) + new


def assert_true(tensors: Mapping[str, TensorInfo], size: int) -> None:
    """What was accepted lies inside the file, apart from each other, with the bytes that its shape needs."""
    end = 0
    for info in sorted(tensors.values(), key=lambda info: info.offset):
        row = QUANT_TYPES[info.qtype]
        assert end <= info.offset
        end = info.offset + info.nbytes
        assert prod(info.shape) // row.block_size * row.block_bytes == info.nbytes > 0
    assert end <= size


def fuzz(container: str, n_files: int, seed: int) -> int:
    """Returns how many damaged files were accepted."""
    rng = random.Random(seed)
    mutations: tuple[Mutation, ...] = (flip, cut, drop, repeat, number, grow, number)
    good = GGUF
    if container == "safetensors":
        good, mutations = SAFETENSORS, (flip, cut, drop, repeat, number, grow, token, token, token)
    accepted = 0
    for _ in range(n_files):
        raw = good
        for _ in range(rng.choice((1, 1, 2, 4))):
            raw = rng.choice(mutations)(rng, raw) or b"\0"
        error = check(container, raw)
        accepted += error is None
        if error is not None:
            assert error.code.isupper()
            assert error.message.isprintable()
            assert len(error.message) < 600
    return accepted


def check(container: str, raw: bytes) -> ModelFileError | None:
    def fetch(at: int, n_bytes: int) -> bytes:
        return raw[at : at + n_bytes]

    try:
        if container == "gguf":
            tensors: Mapping[str, TensorInfo] = gguf_header.read_header(fetch, len(raw), Path("x")).tensors
        else:
            tensors = safetensors_header.read_header(fetch, len(raw), Path("x"))
    except ModelFileError as error:
        return error
    assert_true(tensors, len(raw))
    return None


@pytest.mark.parametrize("container", ["gguf", "safetensors"])
def test_damaged_files_are_refused_or_true(container: str) -> None:
    accepted = fuzz(container, 10_000, seed=1)
    assert 0 < accepted < 5_000, "the damage is too heavy or too light to show anything"


@pytest.mark.slow
@pytest.mark.parametrize("container", ["gguf", "safetensors"])
def test_many_damaged_files_are_refused_or_true(container: str) -> None:
    assert fuzz(container, 100_000, seed=2) > 0
