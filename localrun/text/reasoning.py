"""Thinking and answer, told apart by the tags a model puts around its thoughts."""

import re
from dataclasses import dataclass

from localrun.base.events import Channel
from localrun.text.stop import StopStrings

# Tags that chat templates in use spell out. The first pair whose two tags a template names is its own.
KNOWN_TAGS = (
    ("<think>", "</think>"),
    ("[THINK]", "[/THINK]"),
    ("<seed:think>", "</seed:think>"),
    ("<mm:think>", "</mm:think>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    ("<|channel>thought", "<channel|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("<thinking>", "</thinking>"),
    ("<reasoning>", "</reasoning>"),
)
_PARTS = re.compile(r"<[^<>]+>|\[[^\[\]]+\]")


@dataclass(frozen=True, slots=True)
class ReasoningTags:
    """What opens and what closes a thought."""

    open: str
    close: str


    @property
    def tokens(self) -> frozenset[str]:
        """The single tags they consist of; a vocabulary may hold them as control tokens."""
        return frozenset(_PARTS.findall(self.open + self.close))


def reasoning_tags(template: str) -> ReasoningTags | None:
    """The tags a chat template uses, or None when it knows of no thinking."""
    for pair in KNOWN_TAGS:
        tags = ReasoningTags(*pair)
        if all(part in template for part in tags.tokens):
            return tags
    return None


class ReasoningSplitter:
    """Cuts streamed text into channels. The tags themselves and the line breaks after them are not shown."""

    def __init__(self, open_tag: str, close_tag: str, starts_inside: bool = False) -> None:
        self._tags: dict[Channel, str] = {"answer": open_tag, "thinking": close_tag}
        self._channel: Channel = "thinking" if starts_inside else "answer"
        self._search = StopStrings([self._tags[self._channel]])
        self._at_start = starts_inside  # of a channel: line breaks are dropped

    def push(self, text: str) -> list[tuple[Channel, str]]:
        """The pieces that are certain now, none of them empty."""
        pieces: list[tuple[Channel, str]] = []
        while True:
            shown, met = self._search.push(text)
            self._add(pieces, shown)
            if not met:
                return pieces
            text = self._search.rest
            self._turn()

    def flush(self) -> list[tuple[Channel, str]]:
        """What was held back, once no more text comes."""
        pieces: list[tuple[Channel, str]] = []
        self._add(pieces, self._search.flush())
        return pieces

    def _add(self, pieces: list[tuple[Channel, str]], text: str) -> None:
        if self._at_start:
            text = text.lstrip("\r\n")
        if text:
            self._at_start = False
            pieces.append((self._channel, text))

    def _turn(self) -> None:
        self._channel = "answer" if self._channel == "thinking" else "thinking"
        self._search = StopStrings([self._tags[self._channel]])
        self._at_start = True
