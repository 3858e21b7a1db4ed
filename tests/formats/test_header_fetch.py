"""Headers read through a fetch function, as from a server: little is asked for, and short answers are noticed."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from localrun_testing.raw_files import ARCH, STRING, Entry, array, gguf_file, safetensors_file, tensor, text

from localrun.base.errors import ModelFileError
from localrun.formats import gguf_header, safetensors_header
from localrun.formats.source import TensorInfo

DATA_BYTES = 1 << 40
TOKENS = array("tokenizer.ggml.tokens", STRING, 50_000, b"".join(text(f"token {i}") for i in range(50_000)))
SMALL = gguf_file([ARCH], [tensor("a", (DATA_BYTES // 4,))])
LARGE = gguf_file([ARCH, TOKENS], [tensor("a", (DATA_BYTES // 4,))])
SAFETENSORS = safetensors_file({"a": Entry("U8", (DATA_BYTES,), (0, DATA_BYTES))})

Reader = Callable[[Callable[[int, int], bytes], int], Mapping[str, TensorInfo]]


def read_gguf(fetch: Callable[[int, int], bytes], size: int) -> Mapping[str, TensorInfo]:
    return gguf_header.read_header(fetch, size, Path("remote")).tensors


def read_safetensors(fetch: Callable[[int, int], bytes], size: int) -> Mapping[str, TensorInfo]:
    return safetensors_header.read_header(fetch, size, Path("remote"))


@pytest.mark.parametrize(
    ("read", "head", "max_fetches"), [(read_gguf, SMALL, 1), (read_gguf, LARGE, 6), (read_safetensors, SAFETENSORS, 2)]
)
def test_only_the_header_is_fetched(read: Reader, head: bytes, max_fetches: int) -> None:
    fetched: list[int] = []

    def fetch(offset: int, n_bytes: int) -> bytes:
        fetched.append(n_bytes)
        return head[offset : offset + n_bytes].ljust(n_bytes, b"\0")

    tensors = read(fetch, len(head) + DATA_BYTES)
    assert tensors["a"].nbytes == DATA_BYTES
    assert len(fetched) <= max_fetches
    assert sum(fetched) <= max(2 * len(head), 64 << 10)


@pytest.mark.parametrize(("read", "head"), [(read_gguf, LARGE), (read_safetensors, SAFETENSORS)])
def test_a_file_that_shrinks_meanwhile_is_an_error(read: Reader, head: bytes) -> None:
    with pytest.raises(ModelFileError, match="became shorter while it was read") as caught:
        read(lambda offset, n_bytes: head[: len(head) - 9][offset : offset + n_bytes], len(head) + DATA_BYTES)
    assert caught.value.code == "CHANGED"
