"""The question whether a tool may run: server, tool, arguments or what would change, and the answers."""

import json
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message as TextualMessage
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from localrun.base.sanitize import clean
from localrun_tui.widgets.columns import say
from localrun_tui.widgets.marked_options import MarkedOptions

if TYPE_CHECKING:
    from localrun.tools.consent import Allowed, ConsentQuestion
    from localrun_tui.state.pending_consent import PendingConsent

_WORDS: "dict[Allowed, str]" = {"once": "Once", "chat": "For this chat", "always": "Always", "no": "No"}


class ConsentCard(Vertical):
    """Above the editor while a tool waits; hidden otherwise. It takes no key that was meant for the editor."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "answer('once')", "Once", id="consent.once"),
        Binding("c", "answer('chat')", "This chat", id="consent.chat"),
        Binding("a", "answer('always')", "Always", id="consent.always"),
        Binding("n", "answer('no')", "No", id="consent.no"),
    ]

    class Answered(TextualMessage):
        """The question has its answer."""

    def __init__(self) -> None:
        super().__init__(id="consent")
        self.pending: PendingConsent | None = None
        self._what = Static("", id="consent-what")
        self.text = VerticalScroll(self._what, id="consent-scroll", can_focus=False)
        self._options = MarkedOptions(id="consent-choices", compact=True)

    def compose(self) -> ComposeResult:
        yield self.text
        yield self._options

    def show(self, pending: "PendingConsent") -> None:
        """Ask this."""
        self.pending = pending
        question = pending.question
        tool = question.tool
        self.border_title = clean(f"The model wants to call {' '.join(filter(None, (tool.server, tool.name)))}", False)
        self.border_subtitle = "F6 goes here, then Page↓ reads on; Esc stops the answer"
        self._what.update(_what(question))
        self._options.clear_options()
        self._options.add_options([Option(_choice(one, question)) for one in question.choices])
        self._options.highlighted = question.choices.index("no")
        self.display = True
        self.text.scroll_home(animate=False)
        self.refresh_bindings()

    def settle(self) -> None:
        """Hide it, where the question is answered or given up."""
        if self.pending is None or not self.pending.is_open:
            self.pending = None
            self.display = False

    def go_to(self) -> None:
        """Focus the answers."""
        self.screen.set_focus(self._options)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only answers that the question has."""
        return action != "answer" or (self.pending is not None and parameters[0] in self.pending.question.choices)

    def action_answer(self, allowed: "Allowed") -> None:
        if self.pending is not None:
            self.pending.answer(allowed)
            self.post_message(self.Answered())

    @on(OptionList.OptionSelected)
    def _choose(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if self.pending is not None:
            self.action_answer(self.pending.question.choices[event.option_index])


def _what(question: "ConsentQuestion") -> Content:
    """The arguments as a table, or what the call would do."""
    from localrun.tools.words import argument_rows

    if question.preview:
        return Content("\n").join(_preview_line(line) for line in question.preview.split("\n"))
    rows = argument_rows(json.dumps(question.arguments, ensure_ascii=False))
    width = max((len(name) for name, _ in rows), default=0)
    lines = [say(f"{name:{width}}  ", "$foreground-muted") + say(value) for name, value in rows]
    return Content("\n").join(lines or [say("no arguments", "$foreground-muted")])


def _preview_line(line: str) -> Content:
    style = {"+": "$text-success", "-": "$text-error", "@": "$foreground-muted"}.get(line[:1], "")
    return say(line, style) if style else say(line)


def _choice(choice: "Allowed", question: "ConsentQuestion") -> Content:
    scope = f"  {clean(question.scope, keep_newlines=False)}" if question.scope and choice != "no" else ""
    return say(_WORDS[choice]) + say(scope, "$foreground-muted")
