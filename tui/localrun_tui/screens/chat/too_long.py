"""A prompt longer than the context: the user chooses among the policies that would work."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.app import App

from localrun.base.content import files_in, typed_text
from localrun.base.errors import LocalrunError, PromptTooLongError
from localrun.base.settings import read_settings
from localrun.chat.overflow import POLICIES, adopt, drop_turn
from localrun.chat.too_long import describe_too_long, first_unanswered
from localrun_tui.screens.chat.long_file import choose_part
from localrun_tui.screens.dialogs.ask import AskOne
from localrun_tui.state.branches import Branches

if TYPE_CHECKING:
    from localrun.base.events import ModelInfo
    from localrun.chat.turn import Answer
    from localrun_tui.state.session import Session

_LARGER = "Ctrl+O loads the model with a larger context, where memory has room for it."
_LONGEST = "The model was made for no longer context; another one may hold more (Ctrl+O)."


async def mend_too_long(app: App[Any], session: "Session", answer: "Answer", error: PromptTooLongError) -> bool:
    """A prompt was too long: go on as the chat's policy says, or as the user chooses. Gives whether the user wants to
    shorten the message."""
    chat, question = answer.chat, answer.question
    if chat.policy == "drop" and await session.disk.run(drop_turn, chat, question):
        await session.answer(chat, question)
        return False
    max_tokens = read_settings().max_tokens
    found = await session.disk.run(describe_too_long, chat, question, session.info, error, max_tokens)
    content = chat.tree[question].content
    longest = max(files_in(content), key=lambda file: len(file.text), default=None)
    name = longest.name if longest else ""
    rows = [("part", f"A part of {name}, or all in parts", "the next screen says what that takes")] if longest else []
    first = first_unanswered(chat, question)
    if first != question:
        rows += [("alone", "Ask this message alone", "in a branch without those before it that have no answer")]
    rows += [("edit", "Shorten the message", "it comes back into the editor")]
    rows += [(way, POLICIES[way][0], found.costs[way]) for way in found.plans]
    rows += [("stop", "Leave it as it is", "the message stays without an answer")]
    way_out = _LONGEST if await asyncio.to_thread(_is_at_longest, session.info) else _LARGER
    text = f"{found.text}\n{way_out}" if error.ctx else found.text
    choice = await app.push_screen_wait(AskOne(found.title, rows, text, unasked=True))
    policy = next((policy for policy in found.plans if policy == choice), None)
    if policy:
        await session.disk.run(adopt, chat, policy, found.plans[policy])
        await session.answer(chat, question)
    if choice == "alone":
        await Branches(session).edit(first, content)
    if choice == "part" and longest is not None:
        part = await choose_part(app, session, longest.name, longest.text, typed_text(content))
        if part is None:
            return True
        await Branches(session).edit(question, tuple(part if one is longest else one for one in content))
    return choice == "edit"


def _is_at_longest(info: "ModelInfo | None") -> bool:
    """Whether the loaded model holds as much as it was made for; False where its file cannot tell."""
    from localrun.fit.shape import shape_of
    from localrun.formats.detect import open_model_file

    if info is None or not info.path:
        return False
    try:
        return info.ctx >= shape_of(open_model_file(Path(info.path))).config.max_context
    except LocalrunError:
        return False
