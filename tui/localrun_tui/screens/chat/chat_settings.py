"""Settings screen of one chat: system prompt, sampling, and policy for a full context."""

from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Button, RadioButton, RadioSet, Static, TextArea

from localrun.base.dataclass import dataclass
from localrun.base.request import Think
from localrun.base.sanitize import clean
from localrun.base.settings import Settings, read_settings
from localrun.chat.chat_settings import NUMBERS, numbers_of, think_of
from localrun.chat.overflow import POLICIES
from localrun.chat.presets import PRESETS
from localrun_tui.screens.chat.number_row import NumberRow
from localrun_tui.screens.dialogs.ask import AskOne
from localrun_tui.widgets.fields import TextField
from localrun_tui.widgets.key_hint import KeyHint
from localrun_tui.widgets.leaving import Dialog

if TYPE_CHECKING:
    from localrun_tui.state.session import Session

THINK: dict[str, tuple[str, str]] = {
    "auto": ("As the model does", "thinking models think"),
    "on": ("Think", "better on hard questions, slower"),
    "off": ("Do not think", "answers come at once"),
}


@dataclass(frozen=True, slots=True)
class ChatSettings:
    """The answers of the screen. `numbers` are the chat's own, by the names of settings."""

    system: str
    preset: str
    policy: str
    think: Think
    numbers: Mapping[str, Any] = field(default_factory=dict)


async def change_chat_settings(app: App[Any], session: "Session") -> None:
    """Let the user change the settings of the current chat, and keep them."""
    from localrun_tui.screens.settings.settings_rows import sampling_of_loaded

    chat = session.chat or await session.new_chat()
    before = ChatSettings(chat.system, chat.preset, chat.policy, think_of(chat), numbers_of(chat))
    usual = await session.disk.run(read_settings)
    own = await session.disk.run(sampling_of_loaded, session.info)
    after = await app.push_screen_wait(ChatSettingsScreen(before, usual, own))
    if after is not None and after != before:
        numbers = {name: after.numbers.get(name) for name in NUMBERS}
        rest = {"system": after.system, "preset": after.preset, "policy": after.policy, "think": after.think}
        await session.disk.run(lambda: chat.set(**rest, **numbers))


class MarkedRadioButton(RadioButton):
    """A radio button whose state also shows without colour. Textual draws the sides of a button in its background."""

    BUTTON_LEFT = BUTTON_RIGHT = ""

    @property
    def BUTTON_INNER(self) -> str:  # type: ignore[override]
        return "(●)" if self.value else "( )"


class ChatSettingsScreen(Dialog[ChatSettings | None]):
    """Returns the settings, or None when they are unchanged. `usual`: those of all chats; `own`: sampling that the
    loaded model brings along."""

    CSS_PATH = "chat_settings.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (72, "-wide")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave", id="chat-settings.leave"),
        Binding("ctrl+s", "save", "Save", id="chat-settings.save"),
    ]

    def __init__(self, settings: ChatSettings, usual: Settings, own: Mapping[str, Any]) -> None:
        super().__init__()
        preset = settings.preset if settings.preset in PRESETS else next(iter(PRESETS))
        self.settings = replace(settings, system=clean(settings.system).strip(), preset=preset)
        self.usual, self.own = usual, own

    def compose(self) -> ComposeResult:
        with Vertical(id="box") as box:
            box.border_title = "This chat"
            with VerticalScroll(can_focus=False):
                yield Static("System prompt: what the model should be like", classes="label")
                yield TextField(self.settings.system, id="system", compact=True, tab_behavior="focus")
                yield Static("Sampling", classes="label")
                presets = {key: (preset.title, preset.help) for key, preset in PRESETS.items()}
                yield from _choices("preset", presets, self.settings.preset)
                yield NumberRow(self.settings.numbers)
                yield Static("When the context is full", classes="label")
                yield from _choices("policy", POLICIES, self.settings.policy)
                yield Static("Thinking", classes="label")
                yield from _choices("think", THINK, self.settings.think)
            with Horizontal(id="buttons"):
                yield Button("Save  (Ctrl+S)", variant="primary", compact=True, id="save")
                yield Button("Leave  (Esc)", compact=True, id="leave")
        yield KeyHint("Tab goes on, ←→ and Space choose, Ctrl+S saves, Escape leaves")

    def on_mount(self) -> None:
        self._explain()

    @on(RadioSet.Changed)
    def _explain(self) -> None:
        """Describe each choice below it, and show the defaults in empty number boxes."""
        chosen = self._chosen()
        for name, rows, key in (
            ("preset", {key: (preset.title, preset.help) for key, preset in PRESETS.items()}, chosen.preset),
            ("policy", POLICIES, chosen.policy),
            ("think", THINK, chosen.think),
        ):
            self.query_one(f"#{name}-help", Static).update(rows[key][1])  # type: ignore[index]
        self.query_one(NumberRow).show_usual(self.usual, chosen.preset, self.own)

    @on(Button.Pressed, "#save")
    def action_save(self) -> None:
        """Return the settings if every number is valid."""
        if not self.query_one(NumberRow).to_wrong():
            self.dismiss(self._chosen())

    @on(Button.Pressed, "#leave")
    def action_leave(self) -> None:
        """Leave; ask first where changes would be lost."""
        if self.app.screen is not self:  # a second Escape, behind the question
            return
        if self._chosen() == self.settings:
            self.dismiss(None)
            return
        rows = [("save", "Save them", ""), ("discard", "Discard them", ""), ("stay", "Go on editing", "")]
        self.app.push_screen(AskOne("Save the changes to this chat?", rows), self._leave)

    def _leave(self, answer: str | None) -> None:
        if answer == "save":
            self.action_save()
        elif answer == "discard":
            self.dismiss(None)

    def _chosen(self) -> ChatSettings:
        think: tuple[Think, ...] = ("auto", "on", "off")
        return ChatSettings(
            system=self.query_one("#system", TextArea).text.strip(),
            preset=list(PRESETS)[self._pressed("preset")],
            policy=list(POLICIES)[self._pressed("policy")],
            think=think[self._pressed("think")],
            numbers=self.query_one(NumberRow).numbers(),
        )

    def _pressed(self, name: str) -> int:
        return max(self.query_one(f"#{name}", RadioSet).pressed_index, 0)


def _choices(name: str, rows: Mapping[Any, tuple[str, str]], current: str) -> ComposeResult:
    """The choices in a line, and one below for what the chosen one does."""
    current = current if current in rows else next(iter(rows))
    yield RadioSet(
        *(MarkedRadioButton(Content(title), value=key == current) for key, (title, _) in rows.items()),
        id=name,
        compact=True,
    )
    yield Static("", id=f"{name}-help", classes="help")
