"""Damaged tokenizers: one kind of error, soon, whatever is wrong."""

import json
import math
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from localrun_testing.cpu_time import within
from localrun_testing.vocabularies import byte_level, sentencepiece, small_bpe, tokenizer_json

from localrun.base.errors import ModelFileError, NotFoundError
from localrun.text.tokenizer import tokenizer_from_folder, tokenizer_from_gguf
from localrun.text.tokenizer_model import MOST_TOKENS, OTHER_KEYS, check_entries

N_TOKENS = len(byte_level()["tokenizer.ggml.tokens"])
TOKENS: list[str] = byte_level()["tokenizer.ggml.tokens"]
TYPES: list[int] = byte_level()["tokenizer.ggml.token_type"]

BAD_GGUF: dict[str, tuple[str, dict[str, Any]]] = {
    "no tokenizer": ("UNSUPPORTED", {}),
    "no vocabulary": ("UNSUPPORTED", byte_level(model="no_vocab")),
    "unknown tokenizer": ("UNSUPPORTED", byte_level(model="rwkv")),
    "unknown pre-tokenizer": ("UNSUPPORTED", byte_level(pre="made-up")),
    "no merges": ("UNSUPPORTED", byte_level(merges=None)),
    "no tokens": ("BAD_VOCAB", byte_level(tokens=None)),
    "empty tokens": ("BAD_VOCAB", byte_level(tokens=[], token_type=[])),
    "tokens of another type": ("BAD_TYPE", byte_level(tokens=[1] * N_TOKENS)),
    "tokens as one text": ("BAD_TYPE", byte_level(tokens="abc")),
    "duplicate tokens": ("BAD_VOCAB", byte_level(tokens=[*TOKENS[:-1], TOKENS[0]])),
    "all tokens empty": ("BAD_VOCAB", byte_level(tokens=[""] * N_TOKENS, merges=[])),
    "no byte tokens": ("BAD_VOCAB", byte_level(tokens=[f"word{i}" for i in range(N_TOKENS)], merges=[])),
    "not Unicode": ("BAD_VOCAB", byte_level(tokens=[*TOKENS[:-1], "\udcff"])),
    "too few types": ("BAD_VOCAB", byte_level(token_type=TYPES[:-1])),
    "type 99": ("BAD_VOCAB", byte_level(token_type=[*TYPES[:-1], 99])),
    "types as text": ("BAD_TYPE", byte_level(token_type=["1"] * N_TOKENS)),
    "byte that is none": ("BAD_VOCAB", byte_level(token_type=[6, *TYPES[1:]])),
    "BOS out of range": ("BAD_VOCAB", byte_level(bos_token_id=N_TOKENS)),
    "EOS out of range": ("BAD_VOCAB", byte_level(eos_token_id=2**32 - 1)),
    "negative EOS": ("BAD_VOCAB", byte_level(eos_token_id=-1)),
    "BOS as text": ("BAD_TYPE", byte_level(bos_token_id="<s>")),
    "garbage merges": ("BAD_VOCAB", byte_level(merges=["h e", "qqqq zzzz"])),
    "merge of one": ("BAD_VOCAB", byte_level(merges=["he"])),
    "empty merge": ("BAD_VOCAB", byte_level(merges=[""])),
    "merge without result": ("BAD_VOCAB", byte_level(merges=["h h"])),
    "merges of another type": ("BAD_TYPE", byte_level(merges=[1])),
    "NaN scores": ("BAD_VOCAB", byte_level(scores=[math.nan] * N_TOKENS)),
    "add_bos as text": ("BAD_TYPE", byte_level(add_bos_token="yes")),
    "SPM without scores": ("BAD_VOCAB", sentencepiece(scores=None)),
    "SPM, too few scores": ("BAD_VOCAB", sentencepiece(scores=[0.0])),
    "SPM, NaN score": ("BAD_VOCAB", sentencepiece(scores=[math.nan] * 269)),
    "SPM, scores as text": ("BAD_VOCAB", sentencepiece(scores=["a"] * 269)),
    "SPM, EOS out of range": ("BAD_VOCAB", sentencepiece(eos_token_id=300)),
    "SPM without bytes": (
        "BAD_VOCAB",
        sentencepiece(tokens=["<unk>", "<s>", "</s>", "a"], token_type=[2, 3, 3, 1], scores=[0.0] * 4),
    ),
    "SPM, all tokens empty": ("BAD_VOCAB", sentencepiece(tokens=[""] * 269, token_type=[1] * 269)),
    "character map of numbers": ("BAD_VOCAB", byte_level(precompiled_charsmap=[1000])),
    "character map that is cut": ("BAD_VOCAB", byte_level(precompiled_charsmap=[1, 0, 0])),
    "character map that grows": ("BAD_VOCAB", byte_level(precompiled_charsmap=[0, 0, 0, 0, *[97] * 1000, 0])),
    "character map without a trie": ("BAD_VOCAB", sentencepiece(model="t5", precompiled_charsmap=[0] * 8)),
    "Unigram without scores": ("BAD_VOCAB", sentencepiece(model="t5", scores=None)),
    "SPM, merges of another type": ("BAD_TYPE", sentencepiece(merges=[1])),
    "SPM, pre-tokenizer of another type": ("BAD_TYPE", sentencepiece(pre=[1])),
    "SPM, endless token": ("BAD_VOCAB", sentencepiece(("a" * 100_000,))),
}


def refusal(load: Callable[[], object]) -> ModelFileError:
    with pytest.raises(ModelFileError) as caught:
        load()
    return caught.value


@pytest.mark.parametrize(("code", "metadata"), BAD_GGUF.values(), ids=BAD_GGUF)
def test_a_damaged_gguf_vocabulary_is_an_error_of_the_file(code: str, metadata: dict[str, Any]) -> None:
    error = within(1, lambda: refusal(lambda: tokenizer_from_gguf(metadata, "model.gguf")))
    assert error.code == code
    assert error.message


def test_an_id_that_only_some_models_have_may_be_out_of_range() -> None:
    """Published files have padding ids beyond the vocabulary; nobody uses them."""
    assert tokenizer_from_gguf(byte_level(padding_token_id=2**32 - 1, eot_token_id=N_TOKENS)).eos_id is not None


@given(
    st.dictionaries(
        st.sampled_from(sorted(byte_level())),
        st.none() | st.integers() | st.text() | st.lists(st.text() | st.integers(), max_size=3),
    )
)
def test_any_other_values_give_a_tokenizer_or_that_error(changes: dict[str, Any]) -> None:
    with suppress(ModelFileError):
        assert tokenizer_from_gguf(byte_level() | changes).vocab_size


def _model(**changes: Any) -> dict[str, Any]:
    return {"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]} | changes}


def _added(*tokens: tuple[Any, Any]) -> dict[str, Any]:
    return {"added_tokens": [{"id": i, "content": text, "special": True} for i, text in tokens]}


def _split(pattern: Any) -> dict[str, Any]:
    return {"pre_tokenizer": {"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False}}


def _replace(pattern: dict[str, str], content: str, n_times: int) -> dict[str, Any]:
    step = {"type": "Replace", "pattern": pattern, "content": content}
    return {"normalizer": {"type": "Sequence", "normalizers": [step] * n_times}}


NESTED: dict[str, Any] = {"type": "Sequence", "normalizers": []}
for _ in range(30):
    NESTED = {"type": "Sequence", "normalizers": [NESTED]}

BAD_JSON: dict[str, tuple[str, dict[str, Any]]] = {
    "no model": ("BAD_TOKENIZER", {"model": None}),
    "unknown model": ("UNSUPPORTED", _model(type="Magic")),
    "end of word suffix": ("UNSUPPORTED", _model(end_of_word_suffix="</w>")),
    "no vocabulary": ("BAD_TOKENIZER", _model(vocab=None)),
    "empty vocabulary": ("BAD_TOKENIZER", _model(vocab={}, merges=[])),
    "ids as text": ("BAD_TOKENIZER", _model(vocab={"a": "0"}, merges=[])),
    "ids as truth": ("BAD_TOKENIZER", _model(vocab={"a": False, "b": True}, merges=[])),
    "negative id": ("BAD_TOKENIZER", _model(vocab={"a": -1}, merges=[])),
    "duplicate ids": ("BAD_TOKENIZER", _model(vocab={"a": 0, "b": 0}, merges=[])),
    "id 2^32-1": ("BAD_TOKENIZER", _model(vocab={"a": 0, "b": 2**32 - 1}, merges=[])),
    "id 2^70": ("BAD_TOKENIZER", _model(vocab={"a": 0, "b": 2**70}, merges=[])),
    "endless token": ("BAD_TOKENIZER", _model(vocab={"a" * 3000: 0}, merges=[])),
    "merge of unknown tokens": ("BAD_TOKENIZER", _model(merges=[["a", "z"]])),
    "merge without result": ("BAD_TOKENIZER", _model(merges=[["b", "a"]])),
    "merge of three": ("BAD_TOKENIZER", _model(merges=["a b ab"])),
    "merge of numbers": ("BAD_TOKENIZER", _model(merges=[[1, 2]])),
    "merges as a map": ("BAD_TOKENIZER", _model(merges={"a": "b"})),
    "unknown token as number": ("BAD_TOKENIZER", _model(unk_token=5)),
    "added token gap": ("BAD_TOKENIZER", _added((50, "<x>"))),
    "added token in place of another": ("BAD_TOKENIZER", _added((0, "<x>"))),
    "added tokens with one id": ("BAD_TOKENIZER", _added((3, "<x>"), (3, "<y>"))),
    "added token twice": ("BAD_TOKENIZER", _added((3, "<x>"), (4, "<x>"))),
    "added token without text": ("BAD_TOKENIZER", _added((3, ""))),
    "added token without id": ("BAD_TOKENIZER", _added((None, "<x>"))),
    "added tokens as a map": ("BAD_TOKENIZER", {"added_tokens": {"a": 1}}),
    "wrong pattern": ("BAD_TOKENIZER", _split({"Regex": "(a"})),
    "no pattern": ("BAD_TOKENIZER", _split(None)),
    "pattern of two kinds": ("BAD_TOKENIZER", _split({"Regex": "a", "String": "a"})),
    "endless pattern": ("BAD_TOKENIZER", _split({"Regex": "(a+)+$"})),
    "endless choice": ("BAD_TOKENIZER", _split({"Regex": "(?:a|a)*b"})),
    "endless stacked": ("BAD_TOKENIZER", _split({"Regex": "a+*b"})),
    "unknown pre-tokenizer": ("UNSUPPORTED", {"pre_tokenizer": {"type": "Magic"}}),
    "unknown normalizer": ("UNSUPPORTED", {"normalizer": {"type": "Magic"}}),
    "normalizer as text": ("BAD_TOKENIZER", {"normalizer": "NFC"}),
    "endlessly nested": ("BAD_TOKENIZER", {"normalizer": NESTED}),
    "doubling": ("BAD_TOKENIZER", _replace({"String": "a"}, "aa", 30)),
    "doubling by a pattern": ("BAD_TOKENIZER", _replace({"Regex": "a"}, "aa", 30)),
    "inserting everywhere": ("BAD_TOKENIZER", _replace({"Regex": "()"}, "a", 30)),
    "doubling bytes": (
        "BAD_TOKENIZER",
        {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}] * 30}},
    ),
    "bad character map": ("BAD_TOKENIZER", {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "!"}}),
    "Unigram with a map": ("BAD_TOKENIZER", {"model": {"type": "Unigram", "vocab": {"a": 0}}}),
    "Unigram, unknown out of range": (
        "BAD_TOKENIZER",
        {"model": {"type": "Unigram", "vocab": [["a", 0.0]], "unk_id": 9}, "added_tokens": []},
    ),
    "Unigram, token twice": ("BAD_TOKENIZER", {"model": {"type": "Unigram", "vocab": [["a", 0.0]] * 2}}),
    "WordPiece without unknown": (
        "BAD_TOKENIZER",
        {"model": {"type": "WordPiece", "vocab": {"a": 0}}, "added_tokens": []},
    ),
}


@pytest.mark.parametrize(("code", "changes"), BAD_JSON.values(), ids=BAD_JSON)
def test_a_damaged_tokenizer_json_is_an_error_of_the_file(
    code: str, changes: dict[str, Any], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tokenizer_json(tmp_path, small_bpe(**changes))
    error = within(1, lambda: refusal(lambda: tokenizer_from_folder(folder)))
    assert error.code == code
    assert "tokenizer.json" in error.message
    assert not capfd.readouterr().err  # a panic of the library would be seen here


@pytest.mark.parametrize("kind", ["BPE", "Unigram", "WordPiece"])
def test_an_oversized_vocabulary_is_refused_unread(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localrun.text.tokenizer_model.MOST_TOKENS", 2)
    looked_at: list[str] = []
    for work in ("_mapped_ids", "_scored_ids"):
        monkeypatch.setattr(f"localrun.text.tokenizer_model.{work}", lambda *_, work=work: looked_at.append(work))
    vocab = [["a", 0.0], ["b", 0.0], ["c", 0.0]] if kind == "Unigram" else {"a": 0, "b": 1, "ab": 2}
    model = {"type": kind, "vocab": vocab, "merges": []}
    with pytest.raises(ModelFileError, match="3 tokens; 2 can be read"):
        tokenizer_from_folder(tokenizer_json(tmp_path, small_bpe(model=model)))
    assert looked_at == []


def entries(n: int) -> bytes:
    vocab = b",\n".join(b'"t%d": %d' % (i, i) for i in range(n))
    return b'{"model": {"type": "BPE", "merges": [], "vocab": {' + vocab + b"}}}"


def scored(n: int) -> bytes:
    vocab = b",\n".join(b'["t%d", -1.5]' % i for i in range(n))
    return b'{"model": {"type": "Unigram", "vocab": [' + vocab + b"]}}"


@pytest.mark.parametrize(
    ("write", "n"),
    [(entries, MOST_TOKENS + OTHER_KEYS + 10), (scored, 2 * MOST_TOKENS + 2)],
    ids=["map", "list"],
)
def test_a_tokenizer_json_of_too_many_tokens_is_refused_before_it_is_parsed(
    write: Callable[[int], bytes], n: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def parse(*arguments: object, **options: object) -> None:
        raise AssertionError("it was parsed")

    monkeypatch.setattr("localrun.text.folder_tokenizer.parse_json", parse)
    (tmp_path / "tokenizer.json").write_bytes(write(n))
    with pytest.raises(ModelFileError, match=f"tokens; {MOST_TOKENS:,} can be read") as caught:
        tokenizer_from_folder(tmp_path)
    assert caught.value.code == "BAD_TOKENIZER"
    assert "GGUF" in caught.value.hint


def test_the_largest_vocabulary_of_a_chat_model_may_be_read(tmp_path: Path) -> None:
    """As many keys and lists as in the tokenizer.json of Gemma 3, and quoted colons, as vocabularies of code have."""
    flags = ["single_word", "lstrip", "rstrip", "normalized", "special"]
    added = [{"id": i, "content": f"<unused{i}>", **dict.fromkeys(flags, False)} for i in range(6_415)]
    vocab = {f'token{i}":': i for i in range(262_144)}
    merges = [["a", f"b{i}"] for i in range(514_906)]
    check_entries(json.dumps({"added_tokens": added, "model": {"vocab": vocab, "merges": merges}}).encode(), tmp_path)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"{}",
        b'{"model": {',
        b"\xff\xfe",
        b'{"a":' * 300 + b"1" + b"}" * 300,
        b"[" * 100_000,
        b'{"model": {"type": "BPE", "vocab": {"a": 0, "a": 1}, "merges": []}}',
        b'{"model": {"type": "BPE", "vocab": {"\\ud800": 0}, "merges": []}}',
        b'{"model": {"type": "Unigram", "vocab": [["a", NaN]]}}',
        b'{"x": [' + b"[]," * 3_000_000 + b"[]]}",
    ],
    ids=range(11),
)
def test_a_file_that_is_not_even_json_is_one_too(raw: bytes, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(raw)
    with pytest.raises(ModelFileError) as caught:
        tokenizer_from_folder(tmp_path)
    assert caught.value.code in {"BAD_TOKENIZER", "BAD_UTF8", "DUP_KEY"}


def test_a_folder_without_tokenizer_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        tokenizer_from_folder(tmp_path)


def test_padding_and_truncation_are_none_of_our_business(tmp_path: Path) -> None:
    padding = {"strategy": {"Fixed": 10**9}, "direction": "Right", "pad_id": 0, "pad_type_id": 0, "pad_token": "a"}
    truncation = {"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 0}
    folder = tokenizer_json(tmp_path, small_bpe(padding=padding, truncation=truncation))
    assert tokenizer_from_folder(folder).encode("abab") == [2, 2]


def test_dropout_is_left_out(tmp_path: Path) -> None:
    tokenizer = tokenizer_from_folder(tokenizer_json(tmp_path, small_bpe(**_model(dropout=1.0))))
    assert tokenizer.encode("ab" * 50) == [2] * 50
