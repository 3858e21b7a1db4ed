"""tokenizer.json folders against the `tokenizers` library itself."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.vocabularies import small_bpe, tokenizer_json
from tokenizers import AddedToken, Regex, models, normalizers, pre_tokenizers, trainers
from tokenizers import Tokenizer as Library
from tokenizers.decoders import ByteFallback, Fuse, Metaspace, Replace, Sequence, Strip
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.decoders import WordPiece as WordPieceDecoder
from tokenizers.processors import BertProcessing, TemplateProcessing

from localrun.text.tokenizer import Tokenizer, tokenizer_from_folder

CORPUS = [
    "the cat sat on the mat, and the other cat didn't",
    "hello hello world, wonderful world of 12 345 things",
    "def f(x):\n    return x + 1  # comment",
    "Größe naïve 你好 世界",
] * 20
TEXTS = (
    *CORPUS[:4],
    "",
    " leading and trailing ",
    "tabs\t\tand\n\n\nlines",
    "<|bos|> <s> </s> [SEP] <think>hm</think>",
    "e\u0301 😀 ½ \u3000 ▁",
    "x" * 500,
)
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def gpt2() -> Library:
    library = Library(models.BPE())
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.decoder = ByteLevelDecoder()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=["<|endoftext|>"], initial_alphabet=alphabet)
    library.train_from_iterator(CORPUS, trainer)
    library.add_tokens([AddedToken("<think>", normalized=False), AddedToken("</think>", normalized=False)])
    library.enable_padding(length=64)
    library.enable_truncation(4)
    return library


def llama3() -> Library:
    library = Library(models.BPE(ignore_merges=True))
    split = pre_tokenizers.Split(Regex(LLAMA3), "isolated")
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    library.pre_tokenizer = pre_tokenizers.Sequence([split, byte_level])
    library.decoder = ByteLevelDecoder()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=["<|bos|>", "<|eot_id|>"], initial_alphabet=alphabet)
    library.train_from_iterator(CORPUS, trainer)
    library.post_processor = TemplateProcessing("<|bos|> $A", None, [("<|bos|>", 0)])
    return library


def llama2() -> Library:
    library = Library(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    library.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    specials = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    library.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=400, special_tokens=specials))
    library.decoder = Sequence([Replace("▁", " "), ByteFallback(), Fuse(), Strip(" ", 1, 0)])
    library.post_processor = TemplateProcessing("<s> $A", None, [("<s>", 1)])
    return library


def gemma() -> Library:
    library = llama2()
    library.normalizer = normalizers.Replace(" ", "▁")
    library.decoder = Sequence([Replace("▁", " "), ByteFallback(), Fuse()])
    return library


def t5() -> Library:
    library = Library(models.Unigram())
    library.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    library.pre_tokenizer = pre_tokenizers.Metaspace()
    library.decoder = Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=100, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>")
    library.train_from_iterator(CORPUS, trainer)
    library.post_processor = TemplateProcessing("$A </s>", None, [("</s>", 1)])
    return library


def bert() -> Library:
    library = Library(models.WordPiece(unk_token="[UNK]"))
    library.normalizer = normalizers.BertNormalizer()
    library.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    library.decoder = WordPieceDecoder()
    trainer = trainers.WordPieceTrainer(vocab_size=200, special_tokens=["[UNK]", "[CLS]", "[SEP]"])
    library.train_from_iterator(CORPUS, trainer)
    library.post_processor = BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    return library


KINDS = (gpt2, llama3, llama2, gemma, t5, bert)


def load(library: Library, folder: Path, **files: dict[str, Any]) -> Tokenizer:
    return tokenizer_from_folder(tokenizer_json(folder, json.loads(library.to_str()), **files))


@pytest.mark.parametrize("make", KINDS)
def test_ids_are_the_librarys(make: Callable[[], Library], tmp_path: Path) -> None:
    library = make()
    tokenizer = load(library, tmp_path)
    library.no_padding()
    library.no_truncation()
    assert tokenizer.vocab_size == library.get_vocab_size()
    for text in TEXTS:
        for special in (False, True):
            library.encode_special_tokens = not special
            expected = library.encode(text, add_special_tokens=False).ids
            if special or make is not t5 or "</s>" not in text:
                assert tokenizer.encode(text, special=special) == expected
            else:  # Unigram makes </s> of plain text; we never do
                assert 1 in expected
                assert 1 not in tokenizer.encode(text)


@pytest.mark.parametrize("make", [gpt2, llama3, llama2, gemma])
def test_text_comes_back(make: Callable[[], Library], tmp_path: Path) -> None:
    tokenizer = load(make(), tmp_path)
    for text in TEXTS:
        assert tokenizer.decode(tokenizer.encode(text), special=True) == text.replace(
            "▁", " " if make in (llama2, gemma) else "▁"
        )


@pytest.mark.parametrize("make", [t5, bert])
def test_words_come_back(make: Callable[[], Library], tmp_path: Path) -> None:
    tokenizer = load(make(), tmp_path)
    assert tokenizer.decode(tokenizer.encode("the other cat")).strip() == "the other cat"


@pytest.mark.parametrize(
    ("make", "bos", "eos"),
    [
        (gpt2, None, None),
        (llama3, "<|bos|>", None),
        (llama2, "<s>", None),
        (t5, None, "</s>"),
        (bert, "[CLS]", "[SEP]"),
    ],
)
def test_bos_and_eos_are_what_the_post_processor_adds(
    make: Callable[[], Library], bos: str | None, eos: str | None, tmp_path: Path
) -> None:
    tokenizer = load(make(), tmp_path)
    assert (tokenizer.add_bos, tokenizer.add_eos) == (bos is not None, eos is not None)
    assert tokenizer.bos_id == (None if bos is None else tokenizer.control_tokens[bos])
    assert tokenizer.eos_id == (None if eos is None else tokenizer.control_tokens[eos])


def test_the_files_beside_it_name_what_ends_an_answer(tmp_path: Path) -> None:
    config = {"bos_token": None, "eos_token": {"content": "<|eot_id|>", "lstrip": False}, "add_bos_token": False}
    tokenizer = load(llama3(), tmp_path, tokenizer_config=config, generation_config={"eos_token_id": [0, 1, 10**9]})
    assert tokenizer.eos_id == 1
    assert tokenizer.eog_ids == {0, 1}
    assert not tokenizer.add_bos
    assert tokenizer.encode("cat", bos=True) == tokenizer.encode("cat")


def test_config_json_is_the_last_to_ask(tmp_path: Path) -> None:
    tokenizer = tokenizer_from_folder(
        tokenizer_json(tmp_path, small_bpe(), config={"eos_token_id": 3, "bos_token_id": 2})
    )
    assert (tokenizer.bos_id, tokenizer.eos_id, tokenizer.eog_ids) == (2, 3, frozenset({3}))


def test_an_answer_ends_at_well_known_tokens_even_if_no_file_says_so(tmp_path: Path) -> None:
    assert load(llama3(), tmp_path).eog_ids == {1}


def test_old_files_without_the_kind_of_model(tmp_path: Path) -> None:
    content = small_bpe()
    del content["model"]["type"]
    content["model"]["merges"] = ["a b"]
    assert tokenizer_from_folder(tokenizer_json(tmp_path, content)).encode("ab") == [2]


def test_ids_may_have_holes(tmp_path: Path) -> None:
    model = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 9}, "merges": [["a", "b"]]}
    tokenizer = tokenizer_from_folder(tokenizer_json(tmp_path, small_bpe(model=model, added_tokens=[])))
    assert tokenizer.encode("ab") == [9]
    assert (tokenizer.vocab_size, tokenizer.decode([5, 9])) == (10, "ab")
