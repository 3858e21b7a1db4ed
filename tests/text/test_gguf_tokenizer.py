"""Tokenizers from GGUF key-values: ids, specials, and what llama.cpp reads between the lines."""

from itertools import product
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from localrun_testing.cpu_time import within
from localrun_testing.vocabularies import CONTROL, NORMAL, SPECIALS, USER_DEFINED, byte_level, sentencepiece

from localrun.base.errors import EngineError
from localrun.text.detokenizer import Detokenizer
from localrun.text.pretokenize import PRETOKENIZERS
from localrun.text.tokenizer import Tokenizer, tokenizer_from_gguf

SAMPLES = (
    "hello world",
    "Don't stop — it's 1234567 things,  ok?\n\n  indented\tx\r\n",
    "Größe ÀÉ ǅ camelCase SHOUT'LL naïve",
    "你好，世界 한국어 こんにちは नमस्ते مرحبا ก็ 👨‍👩‍👧 e\u0301 \u3000\u00a0\u200b",
)
BYTE_LEVEL = sorted(name for name, row in PRETOKENIZERS.items() if row.byte_level)


def bpe(**changes: Any) -> Tokenizer:
    return tokenizer_from_gguf(byte_level(**changes))


def texts(tokenizer: Tokenizer, ids: list[int]) -> list[str]:
    return [tokenizer.token_text(i) for i in ids]


def test_words_are_merged_as_the_file_says() -> None:
    tokenizer = bpe()
    assert texts(tokenizer, tokenizer.encode("hello world 12")) == ["hello", "Ġworld", "Ġ", "12"]
    assert tokenizer.vocab_size == 256 + 11 + len(SPECIALS)
    assert (tokenizer.kind, tokenizer.name) == ("bpe", "gpt2/gpt-2")


def test_control_tokens_are_text_unless_asked_for() -> None:
    tokenizer = bpe()
    assert tokenizer.control_ids.isdisjoint(tokenizer.encode("<|im_end|>"))
    assert texts(tokenizer, tokenizer.encode("<|im_end|>", special=True)) == ["<|im_end|>"]
    assert texts(tokenizer, tokenizer.encode("<tag>")) == ["<tag>"]  # user-defined ones are always tokens


def test_bos_only_where_the_model_adds_it() -> None:
    assert bpe().encode("hello", bos=True) == bpe().encode("hello")
    adds = bpe(add_bos_token=True)
    assert adds.encode("hello", bos=True) == [adds.bos_id, *adds.encode("hello")]
    assert adds.encode("", bos=True) == [adds.bos_id]
    assert adds.encode("<|bos|>hello", special=True, bos=True) == [adds.bos_id, *adds.encode("hello")]
    spelled = adds.encode("<|bos|>hello", bos=True)
    assert spelled == [adds.bos_id, *adds.encode("<|bos|>hello")]
    assert bpe(pre="llama-bpe").add_bos
    assert not bpe(pre="llama-bpe", add_bos_token=False).add_bos
    assert not bpe(pre="llama-bpe", bos_token_id=None).add_bos


def test_a_whole_word_that_is_a_token_need_not_be_merged() -> None:
    changes = {"merges": [merge for merge in byte_level()["tokenizer.ggml.merges"] if merge != "he llo"]}
    assert texts(bpe(**changes), bpe(**changes).encode("hello")) == ["he", "llo"]
    assert texts(bpe(pre="llama-bpe", **changes), bpe(pre="llama-bpe", **changes).encode("hello")) == ["hello"]


@pytest.mark.parametrize("pre", BYTE_LEVEL)
def test_every_pre_tokenizer_keeps_every_byte(pre: str) -> None:
    tokenizer = bpe(pre=pre)
    for sample in SAMPLES:
        assert tokenizer.decode(tokenizer.encode(sample)) == sample


@given(st.text(max_size=60))
@example("a▁b")
def test_text_comes_back(text: str) -> None:
    """All of it, but for the character that stands for a space in a sentencepiece vocabulary."""
    for tokenizer, expected in ((ROUND_TRIP_BPE, text), (ROUND_TRIP_SPM, text.replace("▁", " "))):
        assert tokenizer.decode(tokenizer.encode(text), special=True) == expected


ROUND_TRIP_BPE = bpe(specials=("<|a|>", "<|b|>"))
ROUND_TRIP_SPM = tokenizer_from_gguf(sentencepiece())


@pytest.mark.parametrize(
    ("pre", "text", "words"),
    [
        ("tekken", "camelCase", ["camel", "Case"]),
        ("qwen2", "a 12", ["a", "Ġ", "1", "2"]),
        ("llama-bpe", "12345", ["123", "45"]),
        ("afmoe", "x12345", ["x", "12", "345"]),
        ("superbpe", "1234567", ["1", "234", "567"]),
        ("tiny_aya", "123456", ["123", "456"]),
        ("deepseek-llm", "a  \n", ["a", "ĠĠ", "Ċ"]),
        ("kimi-k2", "ab你好ab", ["ab", "ä½łå¥½", "ab"]),
        ("ufakzeka", "it's", ["it", "'s"]),
        ("exaone-moe", "to be or", ["toĠbeĠor"]),
    ],
)
def test_words_end_where_the_model_was_trained_to_end_them(pre: str, text: str, words: list[str]) -> None:
    tokenizer = tokenizer_from_gguf(byte_level(pre=pre))
    pairs = tokenizer._encoder.pre_tokenizer.pre_tokenize_str(text)
    assert [word for word, _ in pairs] == words


@pytest.mark.parametrize(
    ("text", "pre"),
    [
        *product(
            ["a" * 100_000, " " * 100_000 + "x", "1" * 100_000 + "x", "A1" * 20_000],
            ["qwen2", "deepseek-llm", "tiny_aya", "superbpe"],
        )
    ],
)
def test_long_runs_take_linear_time(pre: str, text: str) -> None:
    tokenizer = tokenizer_from_gguf(byte_level(pre=pre))
    ids = within(5, lambda: tokenizer.encode(text))
    assert sum(len(tokenizer.piece(i)) for i in ids) == len(text)


def test_sentencepiece_merges_by_score_and_prefixes_a_space() -> None:
    tokenizer = tokenizer_from_gguf(sentencepiece())
    assert texts(tokenizer, tokenizer.encode("hello hell")) == ["▁hello", "▁", "hell"]
    assert tokenizer.encode("hello", bos=True)[0] == tokenizer.bos_id == 1
    assert tokenizer.decode(tokenizer.encode("hello")) == "hello"
    without = tokenizer_from_gguf(sentencepiece(add_space_prefix=False))
    assert texts(without, without.encode("hello")) == ["hello"]


def test_sentencepiece_spells_unknown_characters_in_bytes() -> None:
    tokenizer = tokenizer_from_gguf(sentencepiece())
    assert texts(tokenizer, tokenizer.encode("é")) == ["▁", "<0xC3>", "<0xA9>"]
    assert [tokenizer.piece(i) for i in tokenizer.encode("é")] == [b" ", b"\xc3", b"\xa9"]


def test_text_never_merges_into_a_control_token() -> None:
    words = ("▁", "<", "/", "s", ">", "<s", "</", "s>", "</s", "<unk", "u", "n", "k")
    tokenizer = tokenizer_from_gguf(sentencepiece(words))
    for spelled in ("<s>", "</s>", "<unk>", "<0x0A>"):
        ids = tokenizer.encode(spelled)
        assert tokenizer.control_ids.isdisjoint(ids)
        assert tokenizer.decode(ids) == spelled


def test_a_control_token_that_is_a_plain_word_is_spelled_out() -> None:
    """With `ignore_merges` a word that is a token is that token, whatever its type."""
    tokenizer = bpe(pre="llama-bpe", specials=("user", "<tag>"))
    ids = tokenizer.encode("user")
    assert tokenizer.control_ids.isdisjoint(ids)
    assert tokenizer.decode(ids) == "user"


def test_special_tokens_of_phi_3_swallow_the_space_after_them() -> None:
    keys = byte_level(specials=("<|user|>", "<s>", "<|end|>", "<tag>"))
    plain, phi3 = tokenizer_from_gguf(keys), tokenizer_from_gguf(keys | {"general.name": "My Phi-3"})
    assert texts(plain, plain.encode("<|user|> \nhello", special=True)) == ["<|user|>", "Ġ", "Ċ", "hello"]
    assert texts(phi3, phi3.encode("<|user|> \nhello", special=True)) == ["<|user|>", "hello"]
    assert texts(phi3, phi3.encode("<s> hello", special=True))[:2] == ["<s>", "Ġ"]


def test_tokens_that_look_like_the_end_of_an_answer_are_control_tokens() -> None:
    specials = ("<|im_end|>", "<|endoftext|>", "<|fim_pad|>", "<|fim_prefix|>", "<|other|>", "<|x|>")
    types = [NORMAL] * 267 + [USER_DEFINED] * len(specials)
    tokenizer = bpe(specials=specials, token_type=types, eos_token_id=271)
    assert {tokenizer.token_text(i) for i in tokenizer.eog_ids} == {
        "<|im_end|>",
        "<|endoftext|>",
        "<|fim_pad|>",
        "<|other|>",
    }
    assert {tokenizer.token_text(i) for i in tokenizer.control_ids} == set(specials[:4])


def test_the_files_own_choice_of_a_fill_token_leaves_the_others_alone() -> None:
    specials = ("<|im_end|>", "<|fim_pad|>", "<PAD>", "<tag>")
    types = [NORMAL] * 267 + [CONTROL, USER_DEFINED, USER_DEFINED, USER_DEFINED]
    tokenizer = bpe(specials=specials, token_type=types, fim_pad_token_id=269, eos_token_id=267)
    assert {tokenizer.token_text(i) for i in tokenizer.eog_ids} == {"<|im_end|>", "<PAD>"}
    assert tokenizer.token_text(268) not in {tokenizer.token_text(i) for i in tokenizer.control_ids}


def test_in_gpt_oss_the_end_of_a_channel_is_not_the_end_of_the_answer() -> None:
    specials = ("<|return|>", "<|call|>", "<|end|>", "<|start|>")
    tokenizer = bpe(specials=specials, bos_token_id=None, eos_token_id=267)
    assert {tokenizer.token_text(i) for i in tokenizer.eog_ids} == {"<|return|>", "<|call|>"}


def test_in_gemma_4_a_closing_s_is_text() -> None:
    specials = ("<eos>", "<turn|>", "<|tool_response>", "</s>", "<tag>")
    tokenizer = bpe(specials=specials, eos_token_id=267)
    assert "</s>" not in {tokenizer.token_text(i) for i in tokenizer.eog_ids | tokenizer.control_ids}


def test_gemma_4_writes_spaces_as_marks_and_always_begins_with_bos() -> None:
    keys = sentencepiece()
    keys |= {"tokenizer.ggml.model": "gemma4", "tokenizer.ggml.merges": ["h e", "l l", "he ll", "hell o"]}
    keys |= {"tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.add_bos_token": False}
    tokenizer = tokenizer_from_gguf(keys)
    assert texts(tokenizer, tokenizer.encode("hello hello", bos=True)) == ["<s>", "hello", "▁", "hello"]
    assert tokenizer.decode(tokenizer.encode(" hello")) == " hello"


def test_bert_words_begin_with_a_mark() -> None:
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "▁hello", "▁wor", "ld", "▁!"]
    keys = {"model": "bert", "tokens": tokens, "token_type": [CONTROL] * 4 + [NORMAL] * 4, "unknown_token_id": 1}
    tokenizer = tokenizer_from_gguf({f"tokenizer.ggml.{k}": v for k, v in keys.items()})
    assert texts(tokenizer, tokenizer.encode("Hello WORLD! ?")) == ["▁hello", "▁wor", "ld", "▁!", "[UNK]"]


def test_unigram_takes_the_likeliest_split_and_merges_spaces() -> None:
    tokens = ["<pad>", "</s>", "<unk>", "▁", "▁he", "▁hello", "llo", "<tag>"]
    keys: dict[str, Any] = {
        "model": "t5",
        "tokens": tokens,
        "token_type": [CONTROL, CONTROL, 2, *[NORMAL] * 4, USER_DEFINED],
    }
    keys |= {"scores": [0.0, 0.0, 0.0, -4.0, -2.0, -1.5, -1.0, -9.0], "unknown_token_id": 2}
    keys |= {"add_space_prefix": True, "remove_extra_whitespaces": True}
    tokenizer = tokenizer_from_gguf({f"tokenizer.ggml.{name}": value for name, value in keys.items()})
    assert texts(tokenizer, tokenizer.encode("  hello   he ")) == ["▁hello", "▁he"]
    assert texts(tokenizer, tokenizer.encode("he!?")) == ["▁he", "<unk>"]
    assert texts(tokenizer, tokenizer.encode("</s>", special=True)) == ["</s>"]
    assert tokenizer.decode(tokenizer.encode("hello he")) == "hello he"
    assert (tokenizer.kind, tokenizer.add_bos, tokenizer.add_eos) == ("unigram", False, True)


def test_a_panic_of_the_library_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicError(BaseException):
        pass

    class Broken:
        def __init__(self, error: type[BaseException]) -> None:
            self.error = error

        def encode(self, text: str, add_special_tokens: bool) -> None:
            raise self.error("over")

    tokenizer = bpe()
    for raised, expected in (
        (PanicError, EngineError),
        (ValueError, EngineError),
        (KeyboardInterrupt, KeyboardInterrupt),
    ):
        monkeypatch.setattr(tokenizer, "_encoder", Broken(raised))
        with pytest.raises(expected):
            tokenizer.encode("hello")


def test_a_missing_pre_tokenizer_is_noted() -> None:
    (note,) = bpe(pre=None).vocabulary.notes
    assert "pre-tokenizer" in note
    assert not bpe().vocabulary.notes


def test_empty_tokens_have_a_name_and_text_that_is_no_unicode_is_replaced() -> None:
    keys = byte_level()
    keys["tokenizer.ggml.tokens"].append("")
    keys["tokenizer.ggml.token_type"].append(NORMAL)
    tokenizer = tokenizer_from_gguf(keys)
    assert tokenizer.token_text(tokenizer.vocab_size - 1) == f"[EMPTY_{tokenizer.vocab_size - 1}]"
    assert tokenizer.decode(tokenizer.encode("a\ud800b")) == "a\ufffdb"


def test_the_hash_depends_on_everything_that_changes_ids() -> None:
    hashes = {bpe().sha256, bpe(pre="qwen2").sha256, bpe(merges=["h e"]).sha256, bpe(specials=("<a>", "<b>")).sha256}
    assert len(hashes) == 4
    assert bpe().sha256 == bpe().sha256


def test_decoding_hides_control_tokens_unless_asked() -> None:
    tokenizer = bpe()
    ids = tokenizer.encode("<|im_start|>hello<|im_end|>", special=True)
    assert tokenizer.decode(ids) == "hello"
    assert tokenizer.decode(ids, special=True) == "<|im_start|>hello<|im_end|>"
    assert tokenizer.decode([-1, *ids, tokenizer.vocab_size]) == "hello"


def test_ids_beyond_the_vocabulary_have_no_text() -> None:
    """A padded output matrix has rows that are no token."""
    tokenizer = bpe()
    known, beyond = tokenizer.encode("a"), [tokenizer.vocab_size, -1]
    stream = Detokenizer(tokenizer)
    assert [stream.push(i) for i in [*beyond, *known]] == ["", "", "a"]
    assert tokenizer.decode([*beyond, *known]) == "a"
    assert [tokenizer.piece_text(i) for i in beyond] == ["", ""]
