"""Marks: tags that are tokens of their own, in the text of a stream.

In the stream such a token is one character that no text has, a lone surrogate, so that it differs from the same
letters. Tags are searched for as the vocabulary spells them; a tag that a model writes in letters is text.
"""

import re
from collections.abc import Iterable, Mapping

from localrun.base.dataclass import dataclass
from localrun.text.tokenizer import Tokenizer

# What may be a token in a tag: `<|channel>` in `<|channel>thought`. MiniMax and DeepSeek have one before each tag.
_MARK = re.compile(r"\]<\]minimax\[>\[|｜DSML｜|<[^<>｜]*｜(?!DSML)[^<>]*>|<[^<>｜]+>|\[[^\[\]]+\]")
_FIRST_STAND_IN = 0xD800


@dataclass(frozen=True, slots=True)
class Marks:
    """The tokens that tags are made of: token id -> stand-in character, and text -> that character."""

    by_id: Mapping[int, str]
    by_text: Mapping[str, str]

    @classmethod
    def of(cls, tokenizer: Tokenizer, tags: Iterable[str]) -> "Marks":
        """The marks in `tags` that this vocabulary has as tokens of any type; the others stay letters."""
        texts = cls.texts_in(tags)
        stand_ins = {text: chr(_FIRST_STAND_IN + n) for n, text in enumerate(texts)}
        by_id = {i: stand_ins[text] for i, text in enumerate(tokenizer.vocabulary.tokens) if text in stand_ins}
        return cls(by_id, {text: char for text, char in stand_ins.items() if char in by_id.values()})

    @staticmethod
    def texts_in(tags: Iterable[str]) -> list[str]:
        """Texts in `tags` that may be tokens."""
        return list(dict.fromkeys(match[0] for tag in tags for match in _MARK.finditer(tag)))

    def spell(self, tag: str) -> str:
        """A tag as it appears in the stream."""
        return _MARK.sub(lambda match: self.by_text.get(match[0], match[0]), tag)

    def plain(self, text: str) -> str:
        """Text of the stream with readable tags."""
        for mark, stand_in in self.by_text.items():
            text = text.replace(stand_in, mark)
        return text


NO_MARKS = Marks({}, {})  # every tag is letters
