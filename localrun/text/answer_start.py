"""Where the answer itself begins in what a model writes: after its thinking, and after the header of a message."""

from collections.abc import Container, Sequence

from localrun.base.events import Channel
from localrun.text.detokenizer import Detokenizer
from localrun.text.marks import Marks
from localrun.text.reasoning import ReasoningSplitter, Splitter
from localrun.text.tokenizer import Tokenizer


class AnswerStart:
    """Ids go in one at a time until `has_begun`: the next one is of the answer.

    `opening` are ids of a thought that may come first nevertheless; none where the model has its thoughts behind it, or
    has none. One of `triggers` begins the answer wherever it comes, as the first token of it.
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
        """Take the next id that is none of the answer."""
        if token_id in self._triggers:
            self.trigger = token_id
            return
        assert self._splitter is not None
        self.opening = ()
        self.is_after_thought = isinstance(self._splitter, ReasoningSplitter)
        self._splitter.push(self._detokenizer.push(token_id))


class PromptStart:
    """Beginning at the end of the prompt."""

    opening: tuple[int, ...] = ()
    has_begun, trigger, is_after_thought, may_end = True, None, False, False

    def push(self, token_id: int) -> None:
        """Nothing comes before it."""


class TriggeredStart:
    """Beginning with one of some tokens, whatever is written before it; there need not be any of it."""

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
        """Take the next id that is free."""
        self.trigger = token_id if token_id in self._triggers else None


class UpToAnswer:
    """A splitter for answers that are held to a constraint: from their first character on, all is text of them."""

    def __init__(self, splitter: Splitter) -> None:
        self._splitter: Splitter | None = splitter

    def push(self, text: str) -> list[tuple[Channel, str]]:
        """The pieces that are certain, in order; none is empty."""
        if self._splitter is None:
            return [("answer", text)] if text else []
        pieces = self._splitter.push(text)
        if any(channel == "answer" for channel, _ in pieces):
            pieces += self.flush()
            self._splitter = None
        return pieces

    def flush(self) -> list[tuple[Channel, str]]:
        """Text that was held back."""
        return [] if self._splitter is None else self._splitter.flush()
