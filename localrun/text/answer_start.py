"""Start of the answer in a model's output: after its thinking, and after the header of a message."""

from collections.abc import Container, Sequence

from localrun.base.events import Channel
from localrun.text.detokenizer import Detokenizer
from localrun.text.marks import Marks
from localrun.text.reasoning import ReasoningSplitter, Splitter
from localrun.text.tokenizer import Tokenizer


class AnswerStart:
    """Finds the start of the answer: ids go in one at a time until `has_begun`; the next one belongs to the answer.

    `opening` are ids of a thought that may still come first; empty for a model that has finished its thoughts, or has
    none. A token of `triggers` begins the answer wherever it comes.
    """

    may_end = False  # before the answer has begun

    def __init__(
        self,
        tokenizer: Tokenizer,
        marks: Marks,
        splitter: Splitter | None,
        opening: Sequence[int] = (),
        triggers: Container[int] = (),
    ) -> None:
        self._detokenizer = Detokenizer(tokenizer, marks)
        self._splitter, self._triggers = splitter, triggers
        self.opening = tuple(opening)
        self.trigger: int | None = None  # that has come
        self.is_after_thought = False  # in a format where line ends stand between thought and answer

    @property
    def has_begun(self) -> bool:
        return self.trigger is not None or self._splitter is None or self._splitter.in_answer

    def push(self, token_id: int) -> None:
        """Take the next id before the answer."""
        if token_id in self._triggers:
            self.trigger = token_id
            return
        assert self._splitter is not None
        self.opening = ()
        self.is_after_thought = isinstance(self._splitter, ReasoningSplitter)
        self._splitter.push(self._detokenizer.push(token_id))


class PromptStart:
    """An answer that begins at the end of the prompt."""

    opening: tuple[int, ...] = ()
    has_begun, trigger, is_after_thought, may_end = True, None, False, False

    def push(self, token_id: int) -> None:
        """Do nothing: no id comes before the answer."""


class TriggeredStart:
    """An answer that begins with one of some tokens, after any text, and may never begin."""

    opening: tuple[int, ...] = ()
    is_after_thought = False
    may_end = True

    def __init__(self, triggers: Container[int]) -> None:
        self._triggers = triggers
        self.trigger: int | None = None

    @property
    def has_begun(self) -> bool:
        return self.trigger is not None

    def push(self, token_id: int) -> None:
        """Take the next unconstrained id."""
        self.trigger = token_id if token_id in self._triggers else None


class UpToAnswer:
    """A splitter for constrained answers: from their first character on, everything is text of the answer."""

    def __init__(self, splitter: Splitter) -> None:
        self._splitter: Splitter | None = splitter

    def push(self, text: str) -> list[tuple[Channel, str]]:
        """Take text; returns the pieces that are certain, in order, none of them empty."""
        if self._splitter is None:
            return [("answer", text)] if text else []
        pieces = self._splitter.push(text)
        if any(channel == "answer" for channel, _ in pieces):
            pieces += self.flush()
            self._splitter = None
        return pieces

    def flush(self) -> list[tuple[Channel, str]]:
        """Return the text that was held back."""
        return [] if self._splitter is None else self._splitter.flush()
