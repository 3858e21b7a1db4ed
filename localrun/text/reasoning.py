"""Where a model thinks aloud: the tags around it, and the splitter that keeps thinking and answer apart."""

from dataclasses import dataclass
from typing import TypeAlias

from localrun.base.events import Channel
from localrun.text.harmony import ENDS, START, HarmonySplitter
from localrun.text.stop import first_partial
from localrun.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class ReasoningTags:
    """Thinking is between `open` and `close`; `hidden` texts frame the answer and are no part of it.

    With `headers` these are the marks of a format where every message has one (Harmony).
    """

    open: str
    close: str
    hidden: tuple[str, ...] = ()
    headers: bool = False

    def starts_inside(self, prompt: str) -> bool:
        """Whether the prompt itself opens the thinking, so that the model goes on with it."""
        return prompt.rstrip().endswith(self.open.rstrip())

    def splitter(self, prompt: str, within: bool | None = None) -> "Splitter":
        """Tells thinking from answer, starting where the end of the prompt left off. `within`: the prompt ends in the
        middle of a text, which is one of thinking or not."""
        if self.headers:
            channel = f"{START}assistant<|channel|>{'analysis' if within else 'final'}<|message|>"
            return HarmonySplitter(prompt if within is None else channel)
        if within is None:
            return ReasoningSplitter(self.open, self.close, self.starts_inside(prompt), self.hidden)
        return ReasoningSplitter(self.open, self.close, within, self.hidden, after_tag=False)

    def visible_ids(self, tokenizer: Tokenizer) -> frozenset[int]:
        """Control tokens the tags are made of: a Detokenizer has to show them, or the tags are never seen."""
        texts = (self.open, self.close, *self.hidden)
        return frozenset(i for i in tokenizer.control_ids if any(tokenizer.token_text(i) in text for text in texts))


# What a template says, and the tags it means; the first that is found counts.
KNOWN_TAGS: tuple[tuple[str, ReasoningTags], ...] = (
    (
        "<|channel|>analysis",  # gpt-oss
        ReasoningTags("<|channel|>analysis<|message|>", "<|end|>", (START, *ENDS), headers=True),
    ),
    ("<|channel>thought", ReasoningTags("<|channel>thought\n", "<channel|>")),  # Gemma 4
    ("<|begin|>assistant<|think|>", ReasoningTags("<|think|>", "<|end|>", ("<|begin|>assistant", "<|content|>"))),
    (
        "<|START_THINKING|>",  # Command
        ReasoningTags("<|START_THINKING|>", "<|END_THINKING|>", ("<|START_RESPONSE|>", "<|END_RESPONSE|>")),
    ),
    ("<|inner_prefix|>", ReasoningTags("<|inner_prefix|>", "<|inner_suffix|>")),  # Apertus
    ("<seed:think>", ReasoningTags("<seed:think>", "</seed:think>")),
    ("<mm:think>", ReasoningTags("<mm:think>", "</mm:think>")),
    ("[THINK]", ReasoningTags("[THINK]", "[/THINK]")),
    (
        "Here are my reasoning steps:\\n",  # Apriel 1.6; as the template's source spells the line end
        ReasoningTags("Here are my reasoning steps:\n", "[BEGIN FINAL RESPONSE]", ("[END FINAL RESPONSE]",)),
    ),
    ("</thinking>'", ReasoningTags("<thinking>", "</thinking>")),
    ("<response></response>", ReasoningTags("<think>", "</think>", ("<response>", "</response>"))),  # Granite
    ("<think>", ReasoningTags("<think>", "</think>")),
    ("</think>", ReasoningTags("<think>", "</think>")),
)


def reasoning_tags(template_source: str) -> ReasoningTags | None:
    """The tags this chat template knows, or None for a model that does not think aloud."""
    return next((tags for mark, tags in KNOWN_TAGS if mark in template_source), None)


class ReasoningSplitter:
    """Splits a stream into thinking and answer, wherever it is cut. Tags are dropped, and the line ends after them."""

    def __init__(
        self,
        open_tag: str,
        close_tag: str,
        starts_inside: bool = False,
        hidden: tuple[str, ...] = (),
        after_tag: bool = True,
    ) -> None:
        self._open, self._close, self._hidden = open_tag, close_tag, hidden
        self._inside = starts_inside
        self._after_tag = starts_inside and after_tag
        self._held = ""

    def push(self, text: str) -> list[tuple[Channel, str]]:
        """The pieces that are certain, in order; none is empty."""
        self._held += text
        pieces: list[tuple[Channel, str]] = []
        while (tag := self._next_tag()) is not None:
            start, tag_text = tag
            self._emit(self._held[:start], pieces)
            self._held = self._held[start + len(tag_text) :]
            self._inside = tag_text == self._open
            self._after_tag = True
        safe = first_partial(self._held, self._tags())
        self._emit(self._held[:safe], pieces)
        self._held = self._held[safe:]
        return pieces

    def flush(self) -> list[tuple[Channel, str]]:
        """The rest, which turned out to be no tag."""
        pieces: list[tuple[Channel, str]] = []
        self._emit(self._held, pieces)
        self._held = ""
        return pieces

    def _tags(self) -> tuple[str, ...]:
        return (self._close,) if self._inside else (self._open, *self._hidden)

    def _next_tag(self) -> tuple[int, str] | None:
        found = [(start, tag) for tag in self._tags() if (start := self._held.find(tag)) >= 0]
        return min(found, default=None)

    def _emit(self, text: str, pieces: list[tuple[Channel, str]]) -> None:
        if self._after_tag:
            text = text.lstrip("\r\n")
        if not text:
            return
        self._after_tag = False
        pieces.append(("thinking" if self._inside else "answer", text))


Splitter: TypeAlias = ReasoningSplitter | HarmonySplitter
