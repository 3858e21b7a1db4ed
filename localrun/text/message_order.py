"""Messages in an order that a template accepts and shows completely.

Templates are written for one system message and alternating turns. Clients send more: two system messages, one in the
middle, two turns of a user in a row. Some templates refuse that, others silently drop a message. Rendering a few marked
messages shows what a template does; messages that it would lose are joined to those it shows.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

from localrun.base.content import parts_of
from localrun.base.dataclass import dataclass
from localrun.base.errors import LocalrunError
from localrun.base.request import TemplateMessage
from localrun.text.template import ChatTemplate

WRITTEN = "written_calls"  # of a message: the calls to be put into its text once it is rendered
_MARKS = ("zqalpha", "zqbravo", "zqcharlie", "zqdelta", "zqecho")  # words that no template has of its own
_ANSWERED = "Done."  # what agents say for a model that has to answer first
_GREETING = "Hello."  # before an answer that nobody asked for, as a character in a chat may begin
_REMINDER = "<system-reminder>\n{}\n</system-reminder>"


@dataclass(frozen=True, slots=True)
class MessageOrder:
    """Which orders a template shows completely."""

    developer: bool  # a message of the developer's
    system: bool  # a system message
    systems: bool  # two of them in the beginning
    later_systems: bool  # one after the first turn
    same_role: bool  # turns of the same role in a row
    after_results: bool  # a turn of the user's right after results of calls
    answer_first: bool  # a turn of the assistant's before any of the user's


@dataclass(frozen=True, slots=True)
class Arranged:
    """Messages for a template; `notes` say what was changed."""

    messages: list[TemplateMessage]
    notes: tuple[str, ...] = ()


def arrange(template: ChatTemplate, messages: Sequence[TemplateMessage]) -> Arranged:
    """Arrange the messages so that none is lost. Usual ones stay unchanged, and cost nothing."""
    if not all(isinstance(message, Mapping) for message in messages) or _is_usual(messages):
        return Arranged(list(messages))
    order = order_of(template)
    notes: list[str] = []
    if not order.developer:
        messages = [{**m, "role": "system"} if m.get("role") == "developer" else m for m in messages]
    n_leading = next((i for i, m in enumerate(messages) if m.get("role") not in _SYSTEM), len(messages))
    leading, turns = list(messages[:n_leading]), list(messages[n_leading:])
    if len(leading) > 1 and not order.systems:
        leading = [_joined(leading)]
        notes.append(f"the chat template takes one system message: {n_leading} were joined")
    if leading and not order.system:
        turns = [{**message, "role": "user"} for message in leading] + turns
        leading = []
        notes.append("the chat template has no place for a system message: it was put before the first turn")
    if not order.later_systems and any(m.get("role") in _SYSTEM for m in turns):
        turns = [_as_reminder(m) if m.get("role") in _SYSTEM else m for m in turns]
        notes.append("the chat template takes no system message after the first turn: it is given as the user's")
    if not order.answer_first and turns and turns[0].get("role") == "assistant":
        turns = [{"role": "user", "content": _GREETING}, *turns]
        notes.append(f"the chat template wants the user to begin: {_GREETING!r} was put before the first answer")
    if not order.same_role:
        turns = _alternating(turns)
    if not order.after_results and any(map(_follows_result, turns, turns[1:])):
        turns = _answered(turns)
        notes.append(f"the chat template wants an answer after results: {_ANSWERED!r} was put before the user's turn")
    return Arranged(leading + turns, tuple(notes))


def order_of(template: ChatTemplate) -> MessageOrder:
    """The orders that a template shows, found once by rendering."""
    return _found_order(template.source, template.bos_token, template.eos_token)


@lru_cache(maxsize=16)
def _found_order(source: str, bos_token: str, eos_token: str) -> MessageOrder:
    template = ChatTemplate(source, bos_token, eos_token)

    def is_shown(messages: Sequence[TemplateMessage]) -> bool:
        try:
            text = template.render(messages)
        except LocalrunError:
            return False
        places = [text.find(message["content"]) for message in messages if message["content"]]
        return -1 not in places and places == sorted(places)

    def shows(*roles: str) -> bool:
        return is_shown([{"role": role, "content": mark} for role, mark in zip(roles, _MARKS, strict=False)])

    first, result, later = _MARKS[:3]
    after: list[TemplateMessage] = [
        {"role": "user", "content": first},
        _CALL,
        {**_RESULT, "content": result},
        {"role": "user", "content": later},
    ]
    system = shows("system", "user")
    return MessageOrder(
        developer=shows("developer", "user"),
        system=system,
        systems=system and shows("system", "system", "user", "assistant", "user"),
        later_systems=system and shows("system", "user", "assistant", "system", "user"),
        same_role=shows("user", "user", "assistant", "assistant", "user"),
        after_results=is_shown(after) or not is_shown(_answered(after)),
        answer_first=shows("assistant", "user") and (not system or shows("system", "assistant", "user")),
    )


_NUMBER = "call12345"  # as long as Mistral's have to be
_FUNCTION = {"name": "zqcall", "arguments": {}}
_CALL = {"role": "assistant", "content": "", "tool_calls": [{"id": _NUMBER, "type": "function", "function": _FUNCTION}]}
_RESULT = {"role": "tool", "tool_call_id": _NUMBER, "name": "zqcall"}
_SYSTEM = ("system", "developer")
_TURNS = ("user", "assistant")


def _is_usual(messages: Sequence[TemplateMessage]) -> bool:
    """Whether there is at most one system message, at the beginning, and turns alternate, of which the user's is the
    first; after results comes no user.

    Calls and their results are turns of their own.
    """
    roles = [message.get("role") for message in messages]
    turns = roles[1:] if roles[:1] == ["system"] else roles
    repeats = any(a == b and a in _TURNS for a, b in pairwise(turns))
    interrupts = any(map(_follows_result, messages, messages[1:]))
    begins_late = turns[:1] == ["assistant"]
    return not repeats and not interrupts and not begins_late and not any(role in _SYSTEM for role in turns)


def _joined(messages: Sequence[TemplateMessage]) -> TemplateMessage:
    """Several messages as one with the first's role, separated by blank lines."""
    first, *others = messages
    if all(isinstance(message.get("content"), str) for message in messages):
        return {**first, "content": "\n\n".join(message["content"] for message in messages)}
    parts: list[Any] = parts_of(first.get("content"))
    for message in others:
        parts += [{"type": "text", "text": "\n\n"}, *parts_of(message.get("content"))]
    return {**first, "content": parts}


def _as_reminder(message: TemplateMessage) -> TemplateMessage:
    content = message.get("content")
    if isinstance(content, str):
        return {**message, "role": "user", "content": _REMINDER.format(content)}
    before, after = ({"type": "text", "text": tag} for tag in _REMINDER.split("{}"))
    return {**message, "role": "user", "content": [before, *parts_of(content), after]}


def _alternating(turns: Sequence[TemplateMessage]) -> list[TemplateMessage]:
    """Join consecutive turns of the same role, unless there are calls in them."""
    arranged: list[TemplateMessage] = []
    for turn in turns:
        last = arranged[-1] if arranged else {}
        same = turn.get("role") in _TURNS and turn.get("role") == last.get("role")
        if same and not any(name in message for message in (turn, last) for name in ("tool_calls", WRITTEN)):
            arranged[-1] = _joined([last, turn])
        else:
            arranged.append(turn)
    return arranged


def _follows_result(message: TemplateMessage, turn: TemplateMessage) -> bool:
    """Whether `turn`, the user's, follows the result of a call."""
    return is_result(message) and turn.get("role") == "user"


def _answered(turns: Sequence[TemplateMessage]) -> list[TemplateMessage]:
    """The turns with an answer wherever the user speaks after results."""
    arranged: list[TemplateMessage] = []
    for turn in turns:
        if arranged and _follows_result(arranged[-1], turn):
            arranged.append({"role": "assistant", "content": _ANSWERED})
        arranged.append(turn)
    return arranged


def has_calls(messages: Sequence[TemplateMessage]) -> bool:
    """Whether there are calls of tools, or results, among messages."""
    return any(
        isinstance(message, Mapping) and (is_result(message) or message.get("tool_calls")) for message in messages
    )


def is_result(message: TemplateMessage) -> bool:
    """Whether a message is the result of a call."""
    return message.get("role") in ("tool", "function")
