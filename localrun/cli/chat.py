"""`localrun chat`: a chat in plain lines, for any terminal, screen readers and scripts."""

import sys
from contextlib import closing
from dataclasses import replace

from localrun.base.errors import LocalrunError, UsageError
from localrun.cli.chats import ContinueSwitch, KeepSwitch, begin, choice_for, open_store
from localrun.cli.console import is_terminal, note
from localrun.cli.failure import CANCELLED
from localrun.cli.groups import AnswerOptions, EngineFlags, HubOptions, ModelArgument, ModelOptions, ServerOption
from localrun.cli.line.chat import LineChat
from localrun.cli.line.commands import take
from localrun.cli.line.input import piped_messages, typed_messages
from localrun.cli.line.model import LineModel
from localrun.cli.line.shown import show_messages
from localrun.cli.line.tools import LineTools
from localrun.cli.output import OutputOptions
from localrun.cli.session import Answering, CancelOnInterrupt
from localrun.cli.tool_options import ToolOptions

_SHOWN_AT_START = 2


def chat(
    named: ModelArgument = None,
    *,
    go_on: ContinueSwitch = False,
    history: KeepSwitch = None,
    server: ServerOption = None,
    output: OutputOptions,
    model: ModelOptions,
    hub: HubOptions,
    answer: AnswerOptions,
    tools: ToolOptions,
    load: EngineFlags,
) -> int:
    """Chat line by line. With stdin from a pipe or a file, every line is one message and stdout has the answers."""
    if named and model.model:
        raise UsageError("two models are named", "leave one out")
    if go_on and history is False:
        raise UsageError("--continue writes to the last chat", "leave --no-history out")
    shared = Answering(answer, as_data=output.as_data)
    at_keyboard = is_terminal(sys.stdin)
    line_tools = LineTools(tools, at_keyboard)
    store = open_store(kept=go_on or (at_keyboard if history is None else history))
    talk = begin(store, go_on, answer.system, shared.system)
    choice = choice_for(talk, replace(model, model=named or model.model), hub, load, server)
    model_slot = LineModel(choice, load, talk)
    with closing(line_tools), model_slot:
        session = LineChat(model_slot, store, talk, shared, output, answer.show_thinking, line_tools, talks=at_keyboard)
        if not at_keyboard:
            code = _follow_script(session)
        else:
            info = model_slot.client.info
            title, notes = f"{info.name} {info.precision}".strip(), info.notes
            for line in (*notes, f"localrun chat with {title}. /help shows the commands, Ctrl-D leaves."):
                note(line)
            show_messages(talk.tree.path(talk.tree.head)[-_SHOWN_AT_START:], None)
            code = _talk(session)
        store.close()
    return code


def _talk(session: LineChat) -> int:
    """Chat with a person at the terminal: errors are shown, Ctrl-C ends at most the answer, and the chat goes on."""
    for text in typed_messages():
        try:
            with CancelOnInterrupt() as ctrl_c:  # also just before and after an answer
                take(session, text)
            if ctrl_c.pressed:
                note("(Ctrl-D or /quit leaves)")
        except EOFError:
            break
        except LocalrunError as error:
            note(f"{error.message}\n  {error.hint}".rstrip())
        session.tell_problem()
    return 0


def _follow_script(session: LineChat) -> int:
    """Answer lines from a pipe; the first error or Ctrl-C ends the chat."""
    for text in piped_messages():
        try:
            take(session, text)
        except EOFError:
            break
        session.tell_problem()
        if session.last and session.last.stop_reason == "cancelled":
            return CANCELLED
    return 0
