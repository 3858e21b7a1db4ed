"""Published vocabularies: llama.cpp's own vectors, and llama.cpp itself on random texts."""

import ctypes
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import gguf
import pytest
from localrun_testing.llama_peer import require_llama

from localrun.formats.gguf import open_gguf
from localrun.text.pretokenize import PRETOKENIZERS
from localrun.text.tokenizer import Tokenizer, tokenizer_from_gguf

NAMES = "bert-bge command-r deepseek-llm falcon gemma-4 gpt-2 llama-bpe llama-spm phi-3 qwen2".split()  # noqa: SIM905
SEPARATOR = "\n__ggml_vocab_test__\n"
BITS = (
    *(" ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", "\n \n", "'s", "'LL", "don't", "123", "1234567", "3.14", "½", "٣"),
    *(
        "你好",
        "한국어",
        "こんにちは",
        "Привет",
        "नमस्ते",
        "مرحبا",
        "ก็",
        "é",
        "e\u0301",
        "ñandú",
        "ÀÉ",
        "ß",
        "İ",
        "ǅ",
        "ʰ",
    ),
    *(
        "😀",
        "👨‍👩‍👧",
        "𝕏",
        "\u00a0",
        "\u200b",
        "…",
        "“q”",
        "--",
        "==",
        "</",
        "▁",
        "Hello",
        "WORLD",
        "camelCase",
        "x_1",
        "@#$",
    ),
    *("\x7f", "http://x.y/z?q=1", '{"a": [1, 2]}', "    if x:", "a b c"),
)


def vocabulary(shared_dir: Path, name: str) -> Path:
    return shared_dir / "vectors" / "tokenizer" / f"ggml-vocab-{name}.gguf"


@pytest.mark.parametrize("name", NAMES)
def test_llama_cpps_vectors(name: str, shared_dir: Path) -> None:
    path = vocabulary(shared_dir, name)
    tokenizer = tokenizer_from_gguf(open_gguf(path).metadata)
    texts = path.with_suffix(".gguf.inp").read_bytes().decode().split(SEPARATOR)
    lines = path.with_suffix(".gguf.out").read_text(encoding="utf-8").split("\n")
    assert len(texts) >= 40
    for text, line in zip(texts, lines, strict=False):
        ids = [int(word) for word in line.split()]
        assert tokenizer.encode(text) == ids, text
        if tokenizer.control_pattern.search(text) is None:
            assert tokenizer.encode(text, special=True) == ids, text
        if tokenizer.kind != "wordpiece":
            assert tokenizer.decode(ids) == text


class Peer:
    """A vocabulary in llama.cpp."""

    def __init__(self, lib: ModuleType, path: Path) -> None:
        self.lib: Any = lib
        settings = lib.llama_model_default_params()
        settings.vocab_only = True
        self.model = lib.llama_model_load_from_file(str(path).encode(), settings)
        self.vocab = lib.llama_model_get_vocab(self.model)

    def encode(self, text: str, special: bool) -> list[int]:
        data = text.encode()
        buffer = (ctypes.c_int32 * (len(data) + 8))()
        n = self.lib.llama_tokenize(self.vocab, data, len(data), buffer, len(buffer), False, special)
        assert n >= 0
        return list(buffer[:n])

    def piece(self, token_id: int) -> bytes:
        buffer = ctypes.create_string_buffer(4096)
        n = self.lib.llama_token_to_piece(self.vocab, token_id, buffer, len(buffer), 0, True)
        return buffer.raw[:n]


@contextmanager
def peer(path: Path) -> Iterator[Peer]:
    opened = Peer(require_llama(), path)
    yield opened
    opened.lib.llama_model_free(opened.model)


def random_texts(n: int, specials: list[str]) -> Iterator[str]:
    dice = random.Random(7)
    scripts = ((32, 127), (0xA0, 0x600), (0x900, 0x1200), (0x3040, 0x9FFF), (0x1F300, 0x1FA00))
    for i in range(n):
        if i % 3 == 0:
            yield "".join(chr(dice.randrange(*dice.choice(scripts))) for _ in range(dice.randint(1, 20)))
        else:
            bits = [*BITS, *dice.sample(specials, min(6, len(specials))) * 4] if i % 3 == 1 else BITS
            yield "".join(dice.choice(bits) for _ in range(dice.randint(1, 10)))


def count_differences(tokenizer: Tokenizer, other: Peer, n: int = 400) -> list[str]:
    types = tokenizer.vocabulary.types
    specials = [text for text, kind in zip(tokenizer.vocabulary.tokens, types, strict=True) if kind in (2, 3, 4)]
    return [
        text
        for text in random_texts(n, specials)
        for special in (False, True)
        if tokenizer.encode(text, special=special) != other.encode(text, special)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name != "bert-bge"])  # it keeps a part of a Hangul syllable
def test_random_texts_give_llama_cpps_ids(name: str, shared_dir: Path) -> None:
    path = vocabulary(shared_dir, name)
    tokenizer = tokenizer_from_gguf(open_gguf(path).metadata)
    with peer(path) as other:
        # Its own splitter differs from deepseek-llm's before U+3000, and from phi-3's after U+00A0.
        assert len(count_differences(tokenizer, other)) <= {"deepseek-llm": 4, "phi-3": 4}.get(name, 0)
        lib, ids = other.lib, range(tokenizer.vocab_size)
        assert tokenizer.eog_ids == {i for i in ids if lib.llama_vocab_is_eog(other.vocab, i)}
        assert tokenizer.add_bos == lib.llama_vocab_get_add_bos(other.vocab)
        assert tokenizer.bos_id == lib.llama_vocab_bos(other.vocab)
        assert tokenizer.eos_id == lib.llama_vocab_eos(other.vocab)
        if name != "command-r":  # some tokens are outside of the byte alphabet, which llama.cpp spells [UNK_BYTE…]
            assert all(tokenizer.piece(i) == other.piece(i) for i in ids)


@pytest.mark.slow
@pytest.mark.parametrize("pre", sorted({row: name for name, row in PRETOKENIZERS.items() if row.byte_level}.values()))
def test_every_pre_tokenizer_splits_as_llama_cpp_does(pre: str, shared_dir: Path, tmp_path: Path) -> None:
    """GPT-2's vocabulary under every name. Words of other scripts are a few bytes each in it, so that the patterns
    llama.cpp simplifies show no difference."""
    metadata = dict(open_gguf(vocabulary(shared_dir, "gpt-2")).metadata) | {"tokenizer.ggml.pre": pre}
    writer = gguf.GGUFWriter(tmp_path / "vocabulary.gguf", "gpt2")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(metadata["tokenizer.ggml.tokens"])
    writer.add_token_types(metadata["tokenizer.ggml.token_type"])
    writer.add_token_merges(metadata["tokenizer.ggml.merges"])
    writer.add_bos_token_id(50256)
    writer.add_eos_token_id(50256)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    tokenizer = tokenizer_from_gguf(metadata)
    with peer(tmp_path / "vocabulary.gguf") as other:
        assert len(count_differences(tokenizer, other, 200)) <= (4 if pre == "deepseek-llm" else 0)
