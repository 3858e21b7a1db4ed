"""Impossible vocabularies, broken templates, weights that are not numbers: seen by a full load, or by a step."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from localrun_testing.malformed import Change, key, refused, tensor, write_changed
from localrun_testing.tiny_models import VOCAB_SIZE

from localrun.base.errors import LocalrunError
from localrun.base.request import LoadOptions, Request
from localrun.client.local import LocalClient
from localrun.engine.load import load

TinyFile = Callable[..., Path]

TOKENS, TYPES = "tokenizer.ggml.tokens", "tokenizer.ggml.token_type"


def check(path: Path) -> None:
    load(LoadOptions(path, backend="reference", threads=1, ctx=64)).engine.close()


def edited(name: str, edit: Callable[[list[Any]], list[Any]]) -> Change:
    """Change a list of the vocabulary."""

    def change(writer: gguf.GGUFWriter) -> None:
        item = writer.kv_data[0][name]
        item.value = edit(list(item.value))

    return change


def spm(scores: list[float]) -> Change:
    """The same tokens as a SentencePiece vocabulary, which needs scores."""

    def change(writer: gguf.GGUFWriter) -> None:
        key("tokenizer.ggml.model", "llama")(writer)
        key("tokenizer.ggml.scores", scores)(writer)

    return change


def without_bytes(tokens: list[str]) -> list[str]:
    return [f"word{number}" if len(token) == 1 else token for number, token in enumerate(tokens)]


CASES: dict[str, tuple[Change, str]] = {
    "unknown tokenizer": (key("tokenizer.ggml.model", "quokka"), "UNSUPPORTED"),
    "no tokenizer": (key("tokenizer.ggml.model", ...), "UNSUPPORTED"),
    "unknown pre-tokenizer": (key("tokenizer.ggml.pre", "quokka"), "UNSUPPORTED"),
    "no merges": (key("tokenizer.ggml.merges", ...), "UNSUPPORTED"),
    "no tokens": (key(TOKENS, ...), "BAD_VOCAB"),
    "a token too few": (edited(TOKENS, lambda tokens: tokens[:-1]), "BAD_VOCAB"),
    "a token too many": (edited(TOKENS, lambda tokens: [*tokens, "more"]), "BAD_VOCAB"),
    "types short": (edited(TYPES, lambda types: types[:-1]), "BAD_VOCAB"),
    "type 99": (edited(TYPES, lambda types: [*types[:-1], 99]), "BAD_VOCAB"),
    "scores short": (spm([0.0] * (VOCAB_SIZE - 1)), "BAD_VOCAB"),
    "scores NaN": (spm([math.nan] * VOCAB_SIZE), "BAD_VOCAB"),
    "tokens twice": (edited(TOKENS, lambda tokens: [*tokens[:-1], tokens[5]]), "BAD_VOCAB"),
    "tokens all empty": (edited(TOKENS, lambda tokens: [""] * len(tokens)), "BAD_VOCAB"),
    "tokens are numbers": (key(TOKENS, [7] * VOCAB_SIZE), "BAD_TYPE"),
    "no byte tokens": (edited(TOKENS, without_bytes), "BAD_VOCAB"),
    "bos out of range": (key("tokenizer.ggml.bos_token_id", VOCAB_SIZE), "BAD_VOCAB"),
    "eos negative": (key("tokenizer.ggml.eos_token_id", -1), "BAD_VOCAB"),
    "merges of nothing": (key("tokenizer.ggml.merges", ["qqq zzz"]), "BAD_VOCAB"),
    "merges without a space": (key("tokenizer.ggml.merges", ["cat"]), "BAD_VOCAB"),
    "template is a number": (key("tokenizer.chat_template", 7), "BAD_TEMPLATE"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_malformed_tokenizer_or_template_is_refused(case: str, tiny_folder: TinyFile, tmp_path: Path) -> None:
    change, code = CASES[case]
    refused(write_changed(tiny_folder("llama"), tmp_path / "bad.gguf", change), code, check)


@pytest.mark.parametrize(
    "template",
    [
        "{% if %}",
        "{{ " + "(" * 20_000,
        "{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}",
    ],
    ids=["syntax error", "20,000 parentheses", "10^10 turns"],
)
def test_a_broken_template_spoils_chats_only(template: str, tiny_folder: TinyFile, tmp_path: Path) -> None:
    path = write_changed(tiny_folder("llama"), tmp_path / "bad.gguf", key("tokenizer.chat_template", template))
    with LocalClient(LoadOptions(path, backend="reference", threads=1, ctx=64)) as client:
        assert list(client.generate(Request(prompt="the cat", max_tokens=2)))
        with pytest.raises(LocalrunError) as caught:
            list(client.generate(Request(messages=({"role": "user", "content": "hi"},), max_tokens=2)))
    assert caught.value.exit_code == 6


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["blk.1.ffn_up.weight", "output_norm.weight"])
def test_weights_that_are_not_numbers(name: str, value: float, tiny_folder: TinyFile, tmp_path: Path) -> None:
    """Found while they are read."""
    shape = (160, 96) if name.startswith("blk") else (96,)
    change = tensor(name, np.full(shape, value, np.float32))
    path = write_changed(tiny_folder("llama"), tmp_path / "bad.gguf", change)
    refused(path, "NOT_FINITE", lambda _: LocalClient(LoadOptions(path, backend="reference", threads=1, ctx=64)))


def test_the_original_passes(tiny_gguf: TinyFile) -> None:
    check(tiny_gguf("llama"))
