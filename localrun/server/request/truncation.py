"""Drop the oldest turns of a conversation, for clients that prefer that to a refusal."""

from dataclasses import replace
from functools import cache
from math import inf

from localrun.base.dataclass import dataclass
from localrun.base.errors import PromptTooLongError
from localrun.base.request import Json, Request
from localrun.chat.overflow import reserve_of
from localrun.client.interface import EngineClient


@dataclass(frozen=True, slots=True)
class Dropped:
    """Part of a conversation that the model does not see; None: not counted."""

    turns: int
    tokens: int | None

    def as_json(self) -> Json:
        return {"dropped_turns": self.turns, "dropped_tokens": self.tokens}


def drop_turns(client: EngineClient, request: Request) -> tuple[Request, Dropped | None]:
    """Fit a request to the context; gives it, and what was dropped for that. Blocks while prompts are encoded.

    The last turn stays, and so does what comes before the first. What is dropped leaves room for an answer, so that the
    next request need not drop again.
    """
    starts = [i for i, message in enumerate(request.messages) if message["role"] == "user"]

    def without(n_turns: int) -> Request:
        """The request without so many turns, one of which may have described a tool: they are all in the list then."""
        messages = (*request.messages[: starts[0]], *request.messages[starts[n_turns] :])
        return replace(request, messages=messages, described_tools=() if n_turns else request.described_tools)

    @cache
    def size(n_turns: int) -> float | None:
        """Tokens of the prompt without so many turns; None: not counted."""
        try:
            view = client.preview(without(n_turns))
        except PromptTooLongError as error:
            return error.n_tokens or inf  # so long that nobody counted
        return None if view is None else view.n_tokens

    def fits(n_turns: int, room: int) -> bool:
        n_tokens = size(n_turns)
        return n_tokens is None or n_tokens < room

    ctx = client.info.ctx
    if len(starts) < 2 or fits(0, ctx):
        return request, None
    room = ctx - reserve_of(ctx, request.max_tokens)
    low, high = 1, len(starts) - 1  # turns to drop: the fewest that are enough
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle, room) else (middle + 1, high)
    fitted, before, after = without(low), size(0), size(low)
    if before is None or after is None or before == inf:
        return fitted, Dropped(low, None)
    return fitted, Dropped(low, int(before - after))
