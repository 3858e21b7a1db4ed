"""Name a chat while the model is idle."""

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from localrun.base.errors import LocalrunError
from localrun.base.events import Done
from localrun.base.settings import read_settings
from localrun.chat.titles import short_title_request, title_in, title_request, wants_short_title, wants_title

if TYPE_CHECKING:
    from localrun.client.interface import Generation
    from localrun_tui.state.session import Session

IDLE = 4.0  # seconds after an answer
_LOOK = 0.05  # seconds between two looks at whether the model is needed
_LEAST_BYTES = 150 << 20  # of weights: how the chat begins is a better title than what a smaller model writes


async def give_title(session: "Session") -> None:
    """Let the model name the current chat, if it has no name; given up as soon as there is something to answer. A
    server is asked once a chat, and shown only how it begins."""
    chat, client, info = session.chat, session.model.client, session.info
    if chat is None or client is None or info is None or session.answering or session.asking or not wants_title(chat):
        return
    wanted = (await session.disk.run(read_settings)).titles is not False
    is_remote = info.backend == "remote"
    if not wanted or (not wants_short_title(chat) if is_remote else info.weights_bytes < _LEAST_BYTES):
        return
    wanted_from = short_title_request if is_remote else partial(title_request, sees=not info.why_blind)
    request = await session.disk.run(wanted_from, chat)
    try:
        generation = client.generate(request)
        answer = asyncio.create_task(asyncio.to_thread(_text_of, generation))
        while not answer.done():
            if session.answering or session.asking or session.model.client is not client:
                await asyncio.to_thread(generation.cancel)
            await asyncio.wait([answer], timeout=_LOOK)
        title = title_in(answer.result())
    except LocalrunError:  # the next answer will report it
        return
    if title and session.chat is chat and wants_title(chat):
        await session.shelf.change(chat.id, title=title)


def _text_of(generation: "Generation") -> str:
    """Empty where it was given up."""
    for event in generation:
        if isinstance(event, Done):
            return "" if event.completion.stop_reason == "cancelled" else event.completion.text
    return ""
