"""A chat line by line: each typed line is a message or a command, and all state is printed as text."""

from dataclasses import replace
from functools import partial

from localrun.base.content import Attachment, TextPart, attachments_in
from localrun.base.errors import UsageError
from localrun.base.events import Completion
from localrun.base.units import tps
from localrun.chat.journal import Chat, ChatStore, Policy
from localrun.chat.overflow import POLICIES
from localrun.chat.sight import require_sight
from localrun.chat.too_long import TooLong
from localrun.chat.tree import Message
from localrun.chat.turn import may_go_on
from localrun.cli.console import note, write_json
from localrun.cli.line.input import ask_line
from localrun.cli.line.model import LineModel
from localrun.cli.line.tools import LineTools
from localrun.cli.output import OutputOptions, as_fields, stream_answer
from localrun.cli.session import Answering
from localrun.cli.turn import answer_in, reuse_line
from localrun.client.interface import EngineClient


class LineChat:
    """The current chat and its actions. Changes to its tree are on disk when a method returns."""

    def __init__(
        self,
        model: LineModel,
        store: ChatStore,
        chat: Chat,
        shared: Answering,
        output: OutputOptions,
        show_thinking: bool,
        tools: LineTools,
        talks: bool = False,
    ) -> None:
        self.model = model
        self.store = store
        self.shared = shared
        self.output = output
        self.last: Completion | None = None
        self.attachments: list[Attachment] = []  # go along with the next message
        self.deleted: list[str] = []  # chats, the last one last
        self.tools = tools
        self._show_thinking = show_thinking
        self.talks = talks  # with a person
        self._told = ""
        self.enter(chat)

    @property
    def client(self) -> EngineClient:
        """The client of the current model."""
        return self.model.client

    def enter(self, chat: Chat) -> None:
        """Continue `chat`. A last message without an answer is set aside for /retry."""
        self.chat = chat
        self.tools.begin_chat()
        self.unanswered = chat.set_aside()
        if self.unanswered:
            note("(your last message there has no answer: /retry asks it again)")

    def send(self, text: str) -> None:
        """Send a message and answer it."""
        content = (*self.attachments, TextPart(text))
        require_sight(self.client.info, content)
        self.attachments = []
        self._answer(self.chat.add_user(content).id)

    def retry(self, temperature: float | None = None) -> None:
        """Answer the last message again, at another temperature if one is given."""
        self._answer(self.last_question(), temperature=temperature)

    def retry_with(self, name: str) -> None:
        """Answer the last message again with another model, which becomes the current one."""
        question = self.last_question()
        self.model.change(name, self.chat)
        self._answer(question)

    def go_on(self) -> None:
        """Continue the last answer where it was cut; the cut answer stays as a branch."""
        path = self.chat.tree.path(self.chat.tree.head)
        cut = path[-1] if path else None
        if cut is None or cut.parent is None or not may_go_on(cut):
            raise UsageError("the last answer was not cut", "/retry asks for another one")
        self._answer(cut.parent, cut)

    def edit(self, text: str) -> None:
        """Replace the text of the last message and answer it; the old message stays as a branch."""
        question = self.chat.tree[self.last_question()]
        self._answer(self.chat.edit(question.id, (*attachments_in(question.content), TextPart(text))).id)

    def undo(self) -> str:
        """Remove the last message and its answer from the branch; returns the text of the message."""
        question = self.chat.tree[self.last_question()]
        self.unanswered = None
        self.chat.rewind(question.parent)
        return question.text

    def last_question(self) -> str:
        """Id of the last user message, answered or not."""
        asked = [message.id for message in self.chat.tree.path(self.chat.tree.head) if message.role == "user"]
        if not (self.unanswered or asked):
            raise UsageError("there is no message yet")
        return self.unanswered or asked[-1]

    def tell_problem(self) -> None:
        """Report once that something could not be stored."""
        if self.chat.problem and self.chat.problem != self._told:
            note(self.chat.problem)
        self._told = self.chat.problem

    def _answer(self, question: str, begun: Message | None = None, temperature: float | None = None) -> None:
        require_sight(self.client.info, self.chat.tree[question].content)
        self.unanswered = question
        self.tell_problem()
        options = self.shared.options(self.chat, tools=self.tools.ready())
        if temperature is not None:
            options = replace(options, sampling=replace(options.sampling, temperature=temperature))
        stream = partial(
            stream_answer, show_thinking=self._show_thinking, as_text=not self.output.as_data, tools=self.tools.known
        )
        done = answer_in(self.chat, question, self.client, options, stream, self._choose, begun)
        c = self.last = done.completion
        if self.chat.tree.head != self.chat.tree[question].parent:
            self.unanswered = None
        if self.output.jsonl:
            write_json({"type": "done", **as_fields(c)})
        if c.stop_reason == "cancelled":
            note("(stopped)")
        if self.output.stats:
            from localrun.cli.stats import show_stats

            show_stats(c)
        elif self.talks:
            note(status_line(c, self.chat.policy))

    def _choose(self, told: TooLong) -> Policy:
        """Ask how to continue when the prompt is too long; in a script, stop."""
        if not self.talks:
            return "stop"
        note(f"{told.title}. {told.text}")
        if not told.plans:
            return "stop"
        for way in told.plans:
            note(f"  {way[0]}  {POLICIES[way][0]}: {told.costs[way]}")
        note("  s  Stop here: /edit TEXT shortens it, `localrun chat -c --ctx N` has more room")
        try:
            chosen = ask_line(f"[{'/'.join(way[0] for way in told.plans)}/s] ").strip().lower()
        except (EOFError, KeyboardInterrupt):
            chosen = ""
        return next((way for way in told.plans if chosen and way.startswith(chosen)), "stop")


def status_line(c: Completion, policy: Policy) -> str:
    """Format the figures of a turn that matter in a chat."""
    used = (c.prompt_tokens or 0) + c.completion_tokens
    context = f"context {used:,} of {c.ctx:,}" if c.ctx else ""  # a server may not say
    if 0 < c.ctx < used:
        context = f"rolling: the model sees the first and the newest, {c.ctx:,} of {used:,} tokens"
    rate = f", {tps(c.timings.decode_tps)}" if c.timings.decode_tps else ""
    line = f"({'; '.join(part for part in (f'{c.completion_tokens:,} tokens{rate}', reuse_line(c), context) if part)})"
    if c.stop_reason != "length":
        return line
    if used < c.ctx or not c.ctx:
        return f"{line}\n(the answer was cut at its longest length, see --max-tokens)"
    if policy == "roll":
        return line
    return f"{line}\n(the context is full, the answer was cut: /policy chooses how the chat continues)"
