"""Control tokens, and the tokens that end an answer.

Files give wrong types to tokens and rarely list every end-of-generation token, so both are also known by their text;
the texts and the exceptions are llama.cpp's.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum

import numpy as np

from localrun.base.dataclass import dataclass


class TokenType(IntEnum):
    """Values of GGUF's `tokenizer.ggml.token_type`."""

    UNDEFINED = 0
    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


def ids_of_kind(types: Sequence[int], *kinds: TokenType) -> list[int]:
    """Ids of the tokens of these types, ascending; fast, since vocabularies are long."""
    ids: list[int] = np.flatnonzero(np.isin(np.frombuffer(bytes(types), np.uint8), kinds)).tolist()
    return ids


END_OF_GENERATION = (
    *("<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>", "<end_of_turn>"),
    *("<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>", "<eos>"),
    *("<end_of_utterance>", "<turn|>", "<|tool_response>", "<｜end▁of▁sentence｜>", "[e~["),
)
FILL_IN_MIDDLE: dict[str, tuple[str, ...]] = {
    "fim_pre": (
        *("<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>"),
        *("<|code_prefix|>", "<|prefix|>"),
    ),
    "fim_suf": (
        *("<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>"),
        *("<|code_suffix|>", "<|suffix|>"),
    ),
    "fim_mid": (
        *("<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>"),
        *("<|code_middle|>", "<|middle|>"),
    ),
    "fim_pad": ("<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"),
    "fim_rep": ("<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"),
    "fim_sep": ("<|file_sep|>",),
}
_ENDS_GENERATION = ("eos", "eot", "eom", "fim_pad", "fim_rep", "fim_sep")


@dataclass(frozen=True, slots=True)
class Specials:
    """Corrected `types`, one per token, and the ids that end an answer."""

    types: list[int]
    eog_ids: frozenset[int]


def find_specials(index: Mapping[str, int], types: Sequence[int], ids: Mapping[str, int]) -> Specials:
    """Find the control tokens. `index` is text -> id, `ids` what the file says: eos, eot, eom, fim_pre … -> id."""
    types = list(types)
    ids = dict(ids)
    for role, texts in FILL_IN_MIDDLE.items():
        found = next((index[text] for text in texts if text in index), None)
        if role not in ids and found is not None:
            ids[role] = found
            types[found] = TokenType.CONTROL
    eog = {index[text] for text in END_OF_GENERATION if text in index}
    for token_id in eog:
        types[token_id] = TokenType.CONTROL
    eog |= {ids[role] for role in _ENDS_GENERATION if role in ids}

    def ends(*texts: str) -> bool:
        return any(index.get(text) in eog for text in texts)

    # In gpt-oss and Solar Open <|end|> closes a channel, not the answer.
    if (ends("<|return|>") and ends("<|call|>", "<|calls|>")) or (ends("<|flush|>") and ends("<|call|>", "<|calls|>")):
        eog.discard(index.get("<|end|>", -1))
    # In Gemma 4 and PLaMo </s> is plain text.
    if ends("<|tool_response>", "<|plamo:eos|>") and ends("</s>"):
        eog.discard(index["</s>"])
        types[index["</s>"]] = TokenType.NORMAL
    return Specials(types, frozenset(eog))
