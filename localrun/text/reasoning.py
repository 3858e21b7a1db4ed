"""Reasoning tags around a model's thinking, and the splitter that separates thinking from answer."""

from typing import TypeAlias

from localrun.base.dataclass import dataclass
from localrun.base.events import Channel
from localrun.text.harmony import ASSISTANT, HARMONY, MESSAGE, MUSE, HarmonySplitter, HeaderForm
from localrun.text.marks import NO_MARKS, Marks
from localrun.text.stop import first_partial


@dataclass(frozen=True, slots=True)
class ReasoningTags:
    """Thinking is between `open` and `close`; `hidden` texts frame the answer and do not belong to it.

    With `headers` these are the marks of a format where every message has a header.
    """

    open: str
    close: str
    hidden: tuple[str, ...] = ()
    headers: HeaderForm | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """All tags."""
        return self.open, self.close, *self.hidden

    def splitter(
        self, prompt: str = "", *, inside: bool = False, goes_on: bool = False, marks: Marks = NO_MARKS
    ) -> "Splitter":
        """Splitter of thinking and answer for a stream in which the tokens among `marks` are stand-ins.

        `inside`: it begins within a thought; `goes_on`: in the middle of a text, thinking or answer. A format with
        headers begins where the end of `prompt` stopped, which is text of the stream, too.
        """
        if self.headers:
            header = f"{ASSISTANT}{self.headers.thought if inside else self.headers.answer}{MESSAGE}"
            return HarmonySplitter(marks.spell(header) if goes_on else prompt, marks.spell, self.headers)
        spelled = map(marks.spell, self.texts)
        return ReasoningSplitter(next(spelled), next(spelled), inside, tuple(spelled), after_tag=not goes_on)


# What a template says, and the tags it means; the first that is found counts.
KNOWN_TAGS: tuple[tuple[str, ReasoningTags], ...] = (
    (
        "<|channel|>analysis",  # gpt-oss
        ReasoningTags("<|channel|>analysis<|message|>", "<|end|>", HARMONY.texts, HARMONY),
    ),
    (
        "<|start|>assistant to=self<|message|>",  # Muse
        ReasoningTags(" to=self<|message|>", "<|eom|>", MUSE.texts, MUSE),
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
    """The tags of this chat template, or None for a model without thinking."""
    return next((tags for mark, tags in KNOWN_TAGS if mark in template_source), None)


class ReasoningSplitter:
    """Splits a stream into thinking and answer, wherever it is cut. Tags and line breaks after them are dropped."""

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

    @property
    def in_answer(self) -> bool:
        """Whether the next text belongs to the answer, unless it opens a thought."""
        return not self._inside and not self._held

    @property
    def is_inside(self) -> bool:
        """Whether the stream is within a thought."""
        return self._inside

    def push(self, text: str) -> list[tuple[Channel, str]]:
        """Take text; returns the pieces that are certain, in order, none of them empty."""
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
        """Return the rest, which turned out not to be a tag."""
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
