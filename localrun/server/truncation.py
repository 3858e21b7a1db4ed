"""Drop the oldest turns of a conversation, for clients that prefer that to a refusal."""

from dataclasses import replace

from localrun.base.errors import PromptTooLongError
from localrun.base.request import Request
from localrun.chat.overflow import reserve_of
from localrun.client.interface import EngineClient


def drop_turns(client: EngineClient, request: Request) -> tuple[Request, int]:
    """Fit a request to the context; gives it, and the number of dropped turns. Blocks while prompts are encoded.

    The last turn stays, and so does what comes before the first. What is dropped leaves room for an answer, so that the
    next request need not drop again.
    """
    starts = [i for i, message in enumerate(request.messages) if message["role"] == "user"]

    def without(n_turns: int) -> Request:
        return replace(request, messages=(*request.messages[: starts[0]], *request.messages[starts[n_turns] :]))

    def fits(shorter: Request, room: int) -> bool:
        try:
            view = client.preview(shorter)
        except PromptTooLongError:
            return False
        return view is None or view.n_tokens < room

    ctx = client.info.ctx
    if len(starts) < 2 or fits(request, ctx):
        return request, 0
    room = ctx - reserve_of(ctx, request.max_tokens)
    low, high = 1, len(starts) - 1  # turns to drop: the fewest that are enough
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(without(middle), room) else (middle + 1, high)
    return without(low), low
