"""The model of a tokenizer.json, its vocabulary and its rules, checked before the library reads it.

The library may panic on what is not refused here, and a panic writes to the terminal.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenizers import models

from localrun.base.errors import ModelFileError
from localrun.formats.files import bad_file, shown
from localrun.text.merges import first_bad_merge
from localrun.text.vocabulary import MAX_TOKEN_LENGTH

KINDS = {"BPE": "bpe", "Unigram": "unigram", "WordPiece": "wordpiece"}
MOST_TOKENS = 1 << 19  # twice the largest vocabulary of a chat model (Gemma's); checking takes seconds a million
OTHER_KEYS = 1 << 17  # of added tokens, seven each (Gemma has 6,400 of them), and of all else
_IS_IT_THIS = "no chat model has that many: check that the file is this model's, or use the model as a GGUF"
LONGEST_WORD = 100  # characters; WordPiece takes longer ones for unknown, as its time grows with their cube


def model_kind(model: Any, path: Path) -> str:
    """The kind of model, a key of KINDS. Old files do not name it."""
    if not isinstance(model, dict):
        raise bad_tokenizer("it has no model", path)
    guess = "BPE" if "merges" in model else "Unigram" if isinstance(model.get("vocab"), list) else "WordPiece"
    kind = model.get("type") or guess
    if kind not in KINDS or model.get("end_of_word_suffix"):
        raise bad_file("UNSUPPORTED", f"localrun does not know tokenizers of the kind {shown(str(kind))}", path)
    return str(kind)


def check_entries(raw: bytes, path: Path) -> None:
    """Refuse too many tokens before anything is parsed, by counting keys and lists.

    Keys hidden behind spaces or backslashes are refused after parsing: at 64 MiB that takes seconds.
    """
    keys = raw.count(b'":') - raw.count(b'\\":') - OTHER_KEYS
    pairs = raw.count(b"[") // 2  # tokens with scores, or merges, of which Gemma has two a token
    if (n := max(keys, pairs)) > MOST_TOKENS:
        raise bad_tokenizer(f"it has more than {n:,} tokens; {MOST_TOKENS:,} can be read", path, _IS_IT_THIS)


def token_ids(kind: str, model: Mapping[str, Any], path: Path) -> dict[str, int]:
    """Text -> id of the model's own tokens."""
    if isinstance(vocab := model.get("vocab"), dict | list) and len(vocab) > MOST_TOKENS:
        raise bad_tokenizer(f"the vocabulary has {len(vocab):,} tokens; {MOST_TOKENS:,} can be read", path, _IS_IT_THIS)
    ids = _scored_ids(model, path) if kind == "Unigram" else _mapped_ids(model, path)
    if (longest := max(map(len, ids))) > MAX_TOKEN_LENGTH:
        raise bad_tokenizer(f"a token is {longest:,} characters long", path)
    return ids


def build_model(kind: str, model: Mapping[str, Any], path: Path) -> models.Model:
    """The library's model of a checked vocabulary."""
    return {"BPE": _bpe, "Unigram": _unigram, "WordPiece": _wordpiece}[kind](model, path)


def bad_tokenizer(message: str, path: Path, hint: str = "") -> ModelFileError:
    return bad_file("BAD_TOKENIZER", message, path, hint=hint)


def _mapped_ids(model: Mapping[str, Any], path: Path) -> dict[str, int]:
    vocab = model.get("vocab")
    if not isinstance(vocab, dict) or not vocab or not all(type(i) is int for i in vocab.values()):
        raise bad_tokenizer("the vocabulary is missing, empty, or not a map of tokens to whole numbers", path)
    if len(set(vocab.values())) < len(vocab):
        raise bad_tokenizer("two tokens have the same number", path)
    lowest, highest = min(vocab.values()), max(vocab.values())
    if lowest < 0 or highest >= 2 * len(vocab) + 1024:
        wrong = lowest if lowest < 0 else highest
        raise bad_tokenizer(f"a token has the number {wrong:,}, in a vocabulary of {len(vocab):,}", path)
    return dict(vocab)


def _scored_ids(model: Mapping[str, Any], path: Path) -> dict[str, int]:
    vocab = model.get("vocab")
    if not isinstance(vocab, list) or not vocab or not all(_is_scored(item) for item in vocab):
        raise bad_tokenizer("the vocabulary is missing, empty, or not a list of tokens with scores", path)
    index = {text: i for i, (text, _) in enumerate(vocab)}
    if len(index) < len(vocab):
        raise bad_tokenizer("a token appears twice", path)
    return index


def _is_scored(item: Any) -> bool:
    return isinstance(item, list) and len(item) == 2 and type(item[0]) is str and type(item[1]) in (int, float)


def _bpe(model: Mapping[str, Any], path: Path) -> models.BPE:
    merges = model.get("merges") or []
    if not isinstance(merges, list) or not set(map(type, merges)) <= {str, list}:
        raise bad_tokenizer("the merges are not a list", path)
    pairs = [tuple(merge.split(" ") if type(merge) is str else merge) for merge in merges]
    vocab, prefix = model["vocab"], model.get("continuing_subword_prefix") or ""
    bad = first_bad_merge(pairs, vocab, prefix)
    if bad is not None:
        raise bad_tokenizer(
            f"merge {bad:,}, {shown(str(merges[bad]))}, is not made of two tokens that give a third", path
        )
    flags = {name: bool(model.get(name)) for name in ("byte_fallback", "fuse_unk", "ignore_merges")}
    texts = {name: model[name] for name in ("unk_token", "continuing_subword_prefix") if model.get(name)}
    return models.BPE(vocab=vocab, merges=pairs, **texts, **flags)


def _unigram(model: Mapping[str, Any], path: Path) -> models.Unigram:
    unk_id = model.get("unk_id")
    if unk_id is not None and not (type(unk_id) is int and 0 <= unk_id < len(model["vocab"])):
        raise bad_tokenizer(f"the unknown token is number {unk_id}, outside of the vocabulary", path)
    vocab = [(text, float(score)) for text, score in model["vocab"]]
    return models.Unigram(vocab, unk_id, bool(model.get("byte_fallback")))


def _wordpiece(model: Mapping[str, Any], path: Path) -> models.WordPiece:
    unk = model.get("unk_token", "[UNK]")
    if unk not in model["vocab"]:
        raise bad_tokenizer("the unknown token is not in the vocabulary", path)
    longest = min(int(model.get("max_input_chars_per_word", LONGEST_WORD)), LONGEST_WORD)
    prefix = model.get("continuing_subword_prefix", "##")
    return models.WordPiece(
        vocab=model["vocab"], unk_token=unk, max_input_chars_per_word=longest, continuing_subword_prefix=prefix
    )
