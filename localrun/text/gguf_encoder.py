"""A GGUF vocabulary as a `tokenizers.Tokenizer` with llama.cpp's ids."""

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

from localrun.base.errors import ModelFileError
from localrun.text.gguf_vocabulary import GgufVocabulary
from localrun.text.specials import TokenType, ids_of_kind
from localrun.text.spm_merges import spm_merges
from localrun.text.tokenizer_errors import tokenizer_errors
from localrun.text.tokenizer_model import LONGEST_WORD

_NEVER = -1e5  # a score that makes any other way to write a text the better one
_ESCAPE_SPACES = normalizers.Replace(" ", "▁")


def build_encoder(source: GgufVocabulary, path: str = "") -> Tokenizer:
    """Build an encoder; decoding uses `Vocabulary.piece`. Raises ModelFileError BAD_VOCAB."""
    build = {"bpe": _bpe, "spm": _spm, "unigram": _unigram, "wordpiece": _wordpiece}[source.vocabulary.kind]
    with tokenizer_errors(
        lambda reason: ModelFileError("BAD_VOCAB", f"no tokenizer can be built: {reason}", path=path)
    ):
        encoder = build(source)
        _add_specials(encoder, source)
    return encoder


def _bpe(source: GgufVocabulary) -> Tokenizer:
    pre = source.pre
    splits: list[pre_tokenizers.PreTokenizer] = [
        pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in pre.patterns
    ]
    if pre.byte_level:
        model = models.BPE(vocab=source.index, merges=source.merges, ignore_merges=pre.ignore_merges)
        encoder = Tokenizer(model)
        splits.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False))
    else:
        encoder = Tokenizer(_bpe_with_bytes(source, source.merges))
        encoder.normalizer = _ESCAPE_SPACES
    encoder.pre_tokenizer = pre_tokenizers.Sequence(splits)
    return encoder


def _spm(source: GgufVocabulary) -> Tokenizer:
    words = source.vocabulary
    merges = spm_merges(words.tokens, source.index, words.types, source.scores, words.sha256)
    encoder = Tokenizer(_bpe_with_bytes(source, merges))
    prefix = [normalizers.Prepend("▁")] if words.space_prefix else []
    encoder.normalizer = normalizers.Sequence([*prefix, _ESCAPE_SPACES])
    return encoder


def _bpe_with_bytes(source: GgufVocabulary, merges: list[tuple[str, str]]) -> models.BPE:
    return models.BPE(vocab=source.index, merges=merges, byte_fallback=True, unk_token=source.unk_token, fuse_unk=True)


def _unigram(source: GgufVocabulary) -> Tokenizer:
    words = source.vocabulary
    unk_id = source.index[source.unk_token] if source.unk_token else None
    scores: dict[int, float] = {TokenType.USER_DEFINED: 0.0, TokenType.CONTROL: _NEVER, TokenType.UNKNOWN: _NEVER}
    rows = zip(words.tokens, words.types, source.scores, strict=False)
    encoder = Tokenizer(models.Unigram([(text, scores.get(kind, score)) for text, kind, score in rows], unk_id, False))
    steps: list[normalizers.Normalizer] = []
    if source.character_map:
        steps.append(normalizers.Precompiled(source.character_map))
    if source.merges_spaces:
        steps += [normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip()]
    encoder.normalizer = normalizers.Sequence(steps)
    scheme = "always" if words.space_prefix else "never"
    encoder.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    return encoder


def _wordpiece(source: GgufVocabulary) -> Tokenizer:
    """WordPiece model. GGUF marks the first piece of a word with ▁; WordPiece marks the others with ##."""
    words = source.vocabulary
    vocab: dict[str, int] = {}
    for i, (text, kind) in enumerate(zip(words.tokens, words.types, strict=True)):
        if kind == TokenType.CONTROL or (text.startswith("[") and text.endswith("]")):
            vocab[text] = i
        else:
            vocab[text[1:] if text.startswith("▁") else f"##{text}"] = i
    unk = source.unk_token or "[UNK]"
    encoder = Tokenizer(models.WordPiece(vocab, unk_token=unk, max_input_chars_per_word=LONGEST_WORD))
    encoder.normalizer = normalizers.BertNormalizer(lowercase=source.lowercase)
    encoder.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return encoder


def _add_specials(encoder: Tokenizer, source: GgufVocabulary) -> None:
    def added(special: bool, *kinds: TokenType) -> list[AddedToken]:
        return [
            AddedToken(words.tokens[i], special=special, normalized=False, rstrip=i in source.strips_right)
            for i in ids_of_kind(words.types, *kinds)
        ]

    words = source.vocabulary
    encoder.add_special_tokens(added(True, TokenType.CONTROL, TokenType.UNKNOWN))
    encoder.add_tokens(added(False, TokenType.USER_DEFINED))
