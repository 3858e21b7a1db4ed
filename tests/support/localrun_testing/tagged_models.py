"""Vocabularies of bytes, and of the tags around thoughts."""

import re
from functools import cache

from localrun.base.request import Sampling
from localrun.text.model_text import ModelText
from localrun.text.reasoning import ReasoningTags
from localrun.text.template import CHATML, ChatTemplate
from localrun.text.tokenizer import tokenizer_from_gguf
from localrun.text.vocabulary import BYTE_TO_CHAR
from localrun_testing.vocabularies import CONTROL, NORMAL, USER_DEFINED, byte_level

THINK = ReasoningTags("<think>", "</think>")
KINDS = {"letters": NORMAL, "not special": USER_DEFINED, "special": CONTROL}


def marks_in(tags: ReasoningTags) -> list[str]:
    """The parts of the tags that may be tokens."""
    return sorted({part for tag in tags.texts for part in re.findall(r"<[^<>]+>|\[[^][]+\]", tag)})


@cache
def tagged_model(tags: ReasoningTags, kind: str, template: str = CHATML) -> ModelText:
    """Every byte is a token, and so are halves of the tags, in letters; tags are tokens but for `letters`."""
    texts = [text for tag in tags.texts for text in (tag, *marks_in(tags))]
    halves = {half for text in texts for n in range(2, len(text)) for half in (text[:n], text[n:]) if len(half) > 1}
    halves -= set(marks_in(tags))
    words = sorted("".join(BYTE_TO_CHAR[byte] for byte in half.encode()) for half in halves)
    specials = ["<|im_start|>", "<|im_end|>", *(marks_in(tags) if kind != "letters" else [])]
    keys = byte_level(
        tokens=[*(BYTE_TO_CHAR[byte] for byte in range(256)), *words, *specials],
        token_type=[NORMAL] * (256 + len(words)) + [CONTROL] * 2 + [KINDS[kind]] * (len(specials) - 2),
        merges=[],
        bos_token_id=None,
        eos_token_id=256 + len(words) + 1,
    )
    return ModelText(tokenizer_from_gguf(keys), ChatTemplate(template), tags, Sampling(), ())
