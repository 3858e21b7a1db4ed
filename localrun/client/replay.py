"""Resume an answer that broke off: request it again with its seed, and skip what was sent already."""

from collections.abc import Iterator
from dataclasses import replace
from typing import assert_never

from localrun.base.errors import EngineDiedError
from localrun.base.events import (
    Accepted,
    Completion,
    Done,
    Event,
    ImageProgress,
    Loop,
    ModelInfo,
    Prefill,
    PromptLogprobs,
    Token,
    ToolCallDelta,
)
from localrun.client.rpc.answer import empty_completion

Said = Token | ToolCallDelta


class Replay:
    """The tokens and calls of an answer so far. The same request gives the same events again; each one is checked."""

    def __init__(self) -> None:
        self._said: list[Said] = []
        self._begun: set[type[Event]] = set()  # types of the events so far

    def record(self, events: Iterator[Event]) -> Iterator[Event]:
        """Yield the events and remember them."""
        for event in events:
            self._begun.add(type(event))
            if isinstance(event, Said):
                self._said.append(event)
            yield event

    def rest(self, again: Iterator[Event]) -> Iterator[Event]:
        """The rest of the same answer. Raises EngineDiedError where the answer differs."""
        expected = iter(self._said)
        if PromptLogprobs in self._begun:
            raise _broken()
        for event in again:
            match event:
                case Token() | ToolCallDelta():
                    if (before := next(expected, None)) is None:
                        yield self._same_call(event)
                    elif _content(before) != _content(event):
                        raise _broken()
                case Accepted() | ImageProgress() | Prefill() | PromptLogprobs():
                    if not self._said:
                        yield event
                case Loop():
                    if Loop not in self._begun:
                        yield event
                case Done(completion):
                    if next(expected, None) is None:
                        yield replace(event, completion=self._same_calls(completion))
                    elif completion.stop_reason == "cancelled":
                        yield replace(event, completion=self.cancelled(completion))
                    else:
                        raise _broken()
                case _:
                    assert_never(event)

    def cancelled(self, figures: Completion) -> Completion:
        """An answer that was cancelled where it broke off."""
        said = [one for one in self._said if isinstance(one, Token)]
        ids = tuple(one.token_id for one in said if one.token_id is not None)
        return replace(
            figures,
            text="".join(one.text for one in said if one.channel == "answer"),
            thinking="".join(one.text for one in said if one.channel == "thinking"),
            token_ids=ids,
            completion_tokens=len(ids),
            stop_reason="cancelled",
        )

    def cancelled_at_once(self, info: ModelInfo) -> Done:
        """The end of an answer that is not requested again."""
        return Done(self.cancelled(empty_completion(info)))

    def _same_call(self, event: Said) -> Said:
        """The call with the id that it began with."""
        return replace(event, id=self._id(event.index, event.id)) if isinstance(event, ToolCallDelta) else event

    def _same_calls(self, figures: Completion) -> Completion:
        calls = (replace(call, id=self._id(index, call.id)) for index, call in enumerate(figures.tool_calls))
        return replace(figures, tool_calls=tuple(calls))

    def _id(self, index: int, otherwise: str) -> str:
        return next((one.id for one in self._said if isinstance(one, ToolCallDelta) and one.index == index), otherwise)


def _content(event: Said) -> tuple[object, ...]:
    """The part of an event that is the same each time."""
    if isinstance(event, Token):
        return event.token_id, event.text, event.channel
    return event.index, event.name, event.arguments


def _broken() -> EngineDiedError:
    what = "the localrun whose engine this used is gone, and its answer cannot be gone on with"
    return EngineDiedError(what, "send the message again; what has arrived is kept")
