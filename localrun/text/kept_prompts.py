"""Prompts that were encoded: one that begins like an earlier one is encoded from the last control token that both have.

Text after a control token is encoded by itself, whatever stands before the token: with the token in front of it, it has
the ids that it has in the whole text.
"""

from array import array
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

LEAST, MOST = 2000, 1 << 22  # characters; a short text is encoded in no time, a very long one takes memory
MOST_KEPT = 4


class KeptPrompt(NamedTuple):
    """A text and its ids. `controls`: places of the control tokens in the ids, each of which is one of the `words`."""

    text: str
    ids: "array[int]"
    controls: "array[int]"
    words: frozenset[str]

    def cut(self, text: str) -> tuple[int, int]:
        """Place of the last control token of what `text` begins with, too: in the text, and in the ids. 0, 0: none."""
        same = common_length(self.text, text)
        start = max([self.text.rfind(word, 0, same) for word in self.words])
        return (start, self.controls[self._n_words(start)]) if start > 0 else (0, 0)

    @property
    def is_sure(self) -> bool:
        """Whether each of its words is a control token, and each control token one of its words."""
        return bool(self.words) and self._n_words(len(self.text)) == len(self.controls)

    def _n_words(self, end: int) -> int:
        return sum([self.text.count(word, 0, end) for word in self.words])


NOTHING = KeptPrompt("", array("i"), array("i"), frozenset())


class KeptPrompts:
    """The latest prompts of one tokenizer. Safe to share between threads."""

    def __init__(self, controls: Mapping[int, str], added: Iterable[str]) -> None:
        """`controls`: texts of control tokens by id; `added`: of all tokens that are found before a text is split."""
        self._controls, self._added = controls, tuple(added)
        self._kept: tuple[KeptPrompt, ...] = ()  # the latest last
        self._is_whole = dict[str, bool]()  # whether no longer token has this one inside it

    def encode(self, text: str, encode: Callable[[str], list[int]]) -> list[int]:
        """The ids that `encode` gives for `text`, from those of an earlier prompt and of the rest."""
        if not self._controls or not LEAST <= len(text) <= MOST:
            return encode(text)
        cuts = [(*kept.cut(text), kept) for kept in self._kept]
        start, n_ids, begun = max(cuts, key=lambda cut: cut[0], default=(0, 0, NOTHING))
        ids, controls = begun.ids[:n_ids], array("i", [place for place in begun.controls if place < n_ids])
        ids.extend(encode(text[start:]))
        controls.extend([place for place in range(n_ids, len(ids)) if ids[place] in self._controls])
        self._keep(KeptPrompt(text, ids, controls, frozenset([self._controls[ids[place]] for place in controls])))
        return ids.tolist()

    def _keep(self, prompt: KeptPrompt) -> None:
        """Keep a prompt whose control tokens are found wherever they are written."""
        for word in prompt.words - self._is_whole.keys():
            self._is_whole[word] = all(token.find(word, 1) < 0 for token in self._added)
        if prompt.is_sure and all(self._is_whole[word] for word in prompt.words):
            self._kept = (*[kept for kept in self._kept if kept.text != prompt.text][1 - MOST_KEPT :], prompt)


def common_length(a: str, b: str) -> int:
    """Number of characters that two texts begin with alike."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if a.startswith(b[low:middle], low) else (low, middle - 1)
    return low
