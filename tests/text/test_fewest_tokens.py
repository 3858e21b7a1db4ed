"""A prompt that cannot fit is refused by its size, before it is encoded, and never one that fits."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from localrun_testing.vocabularies import byte_level, sentencepiece, small_bpe, tokenizer_json

from localrun.base.errors import PromptTooLongError, UsageError
from localrun.base.request import LoadOptions, Request
from localrun.base.resources import resource
from localrun.client.local import LocalClient
from localrun.text.fewest_tokens import fewest_tokens
from localrun.text.tokenizer import LONGEST_RUN, Tokenizer, tokenizer_from_folder, tokenizer_from_gguf
from localrun.text.vocabulary import BYTE_TO_CHAR

NFC = {"type": "NFC"}
STRIPPED = {"id": 260, "content": "<x>", "special": True, "normalized": False, "lstrip": True, "rstrip": True}


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> list[Tokenizer]:
    words = {BYTE_TO_CHAR[byte]: byte for byte in range(256)} | {"ĠĠ": 256, "ab": 257, "Ã©": 258, "ĠĠĠĠ": 259}
    merges = [["Ġ", "Ġ"], ["a", "b"], ["Ã", "©"], ["ĠĠ", "ĠĠ"]]
    content: dict[str, Any] = small_bpe(
        added_tokens=[STRIPPED],
        normalizer=NFC,
        pre_tokenizer={"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": False},
        model={"type": "BPE", "vocab": words, "merges": merges},
    )
    folder = tokenizer_json(tmp_path_factory.mktemp("nfc"), json.loads(json.dumps(content)))
    gguf = [byte_level(), sentencepiece(), sentencepiece(add_space_prefix=False)]
    return [*map(tokenizer_from_gguf, gguf), tokenizer_from_folder(folder)]


@given(text=st.text(st.sampled_from("ab helo<x>\n12 é́eé天"), max_size=60), most=st.integers(1, 20))
def test_it_is_never_more_than_there_are(tokenizers: list[Tokenizer], text: str, most: int) -> None:
    long = text * 40
    for tokenizer in tokenizers:
        n_tokens = len(tokenizer.encode(long, special=True))
        fewest = fewest_tokens(tokenizer, long, most)
        assert fewest <= n_tokens
        assert fewest == 0 or fewest >= most


def test_long_tokens_count_only_where_a_text_may_hold_them(tokenizers: list[Tokenizer]) -> None:
    for tokenizer in tokenizers:
        assert fewest_tokens(tokenizer, "z" * 4000, 100) >= 2000
        assert fewest_tokens(tokenizer, "z" * 3000, 100) == 0, "it may fit, or is short enough to be encoded"


def test_a_vocabulary_that_lacks_bytes_tells_nothing(tmp_path: Path) -> None:
    unknown = small_bpe(model={"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]})
    assert fewest_tokens(tokenizer_from_folder(tokenizer_json(tmp_path, unknown)), "z" * 9999, 1) == 0


@pytest.mark.parametrize(
    ("part", "what"), [("a", "a word"), ("x1!", "a word"), (" ", "white space"), ("\n\t", "white space")]
)
def test_a_run_without_an_end_is_refused_before_it_is_encoded(
    part: str, what: str, tokenizers: list[Tokenizer], monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: list[str] = []
    tokenizer, between = tokenizers[0], "a" if part.isspace() else " "
    run = part * (LONGEST_RUN // len(part)) + part[: LONGEST_RUN % len(part)]

    def encode(text: str, special: bool) -> list[int]:
        encoded.append(text)
        return []

    monkeypatch.setattr(tokenizer, "_encode", encode)
    tokenizer.encode(f"{run}{between}{run}")
    assert encoded.pop()
    with pytest.raises(UsageError, match=f"has {what} of more than 1,048,576 characters"):
        tokenizer.encode(f"hello{between}{run}{run[0]}{between}")
    assert not encoded


def test_nothing_is_encoded_of_a_prompt_that_cannot_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Path(resource("localrun/builtin/localrun-tiny.gguf"))
    with LocalClient(LoadOptions(model, name="builtin", ctx=512)) as client:
        word = "a" * 1_000_000
        asked = {"role": "user", "content": word}
        begun = (*({"role": "user", "content": "hi"},), {"role": "assistant", "content": word})
        requests = [Request(prompt=word), Request(messages=(asked,)), Request(messages=begun, continues=True)]
        client.preview(Request(messages=({"role": "user", "content": "hi"},)))  # its own texts are encoded
        encode = client.model.text.tokenizer._encode

        def short(text: str, *, special: bool) -> list[int]:
            assert len(text) < len(word)
            ids: list[int] = encode(text, special=special)
            return ids

        monkeypatch.setattr(client.model.text.tokenizer, "_encode", short)
        for request in requests:
            for ask in (client.generate, client.preview):
                with pytest.raises(PromptTooLongError, match=r"tokens or more; the context holds 512, the answer"):
                    ask(request)
