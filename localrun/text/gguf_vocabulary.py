"""The vocabulary of a GGUF file, checked before anything is built from it."""

from collections.abc import Mapping, Sequence
from typing import Any

from localrun.base.dataclass import dataclass
from localrun.text.gguf_keys import SCORED, TokenizerKeys
from localrun.text.gguf_kind import KINDS
from localrun.text.pretokenize import PRETOKENIZERS, PreTokenizer
from localrun.text.specials import Specials, TokenType, find_specials, ids_of_kind
from localrun.text.vocabulary import Vocabulary

_NO_RSTRIP = {"<unk>", "<s>", "<|endoftext|>"}  # Phi-3: every other special token swallows the space after it
_UNNAMED = "the file does not name its pre-tokenizer; the default may split words unlike the model was trained on"


@dataclass(frozen=True)
class GgufVocabulary:
    """A checked vocabulary, and data that only its encoder needs."""

    vocabulary: Vocabulary
    index: dict[str, int]  # text -> id
    scores: Sequence[float]
    merges: list[tuple[str, str]]
    pre: PreTokenizer
    unk_token: str | None
    strips_right: frozenset[int]  # special tokens that swallow the white space after them
    lowercase: bool
    character_map: bytes  # SentencePiece's, how to normalize
    merges_spaces: bool  # runs of spaces are one, and none are at the ends


def read_gguf_vocabulary(metadata: Mapping[str, Any], path: str = "") -> GgufVocabulary:
    """Read and check a vocabulary.

    Raises ModelFileError: UNSUPPORTED for an unknown kind of tokenizer, BAD_VOCAB for a damaged one.
    """
    keys = TokenizerKeys.of(metadata, path)
    keys.check_kind()
    ids = {role: i for role, i in keys.ids.items() if role not in ("bos", "unk")}
    specials = find_specials(keys.index, keys.types, ids)
    keys.check_bytes()
    return GgufVocabulary(
        vocabulary=_vocabulary(keys, specials),
        index=keys.index,
        scores=keys.scores,
        merges=keys.merges,
        pre=keys.pre,
        unk_token=keys.tokens[keys.ids["unk"]] if "unk" in keys.ids else None,
        strips_right=_strips_right(keys, specials.types),
        lowercase=keys.says("normalizer.lowercase", True),
        character_map=keys.character_map,
        merges_spaces=keys.says("remove_extra_whitespaces", False),
    )


def _vocabulary(keys: TokenizerKeys, specials: Specials) -> Vocabulary:
    model, pre, ids = keys.model, keys.pre, keys.ids
    add_bos = pre is PRETOKENIZERS["gemma4"] or keys.says("add_bos_token", model in ("llama", "bert") or pre.add_bos)
    return Vocabulary(
        kind=KINDS[model],
        name=f"{model}/{keys.pre_name}" if keys.pre_name else model,
        tokens=keys.tokens,
        types=specials.types,
        spelling="byte_level" if model == "gpt2" and pre.byte_level else "metaspace",
        bos_id=ids.get("bos"),
        eos_id=ids.get("eos"),
        eog_ids=specials.eog_ids,
        add_bos=add_bos and "bos" in ids,
        add_eos=keys.says("add_eos_token", model in ("bert", "t5")) and "eos" in ids,
        space_prefix=keys.says("add_space_prefix", model == "llama") and model in SCORED,
        sha256=keys.sha256(specials.types),
        notes=(_UNNAMED,) if model == "gpt2" and not keys.pre_name else (),
    )


def _strips_right(keys: TokenizerKeys, types: Sequence[int]) -> frozenset[int]:
    name = keys.data.get_str("general.name", "").lower()
    if "phi-3" not in name and "phi3" not in name:
        return frozenset()
    special = ids_of_kind(types, TokenType.CONTROL, TokenType.UNKNOWN, TokenType.USER_DEFINED)
    return frozenset(i for i in special if keys.tokens[i] not in _NO_RSTRIP)
