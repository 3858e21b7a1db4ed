"""Numbers that a chat may have of its own: a box each, empty for what holds anyway."""

from collections.abc import Mapping
from typing import Any

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Input, Static

from localrun.base.request import DEFAULT_SAMPLING
from localrun.base.setting_rows import SETTINGS
from localrun.base.settings import Settings
from localrun.chat.chat_settings import NUMBERS
from localrun.chat.presets import sampling_of
from localrun_tui.widgets.columns import say
from localrun_tui.widgets.fields import LineField

_TITLES = {"temperature": "Temperature", "top_p": "Top-p", "max_tokens": "Longest answer", "seed": "Seed"}
_UNSET = {"max_tokens": "no limit", "seed": "random"}


class NumberRow(Vertical):
    """The line below says what the box with the focus takes, or what is wrong with what is in it."""

    def __init__(self, numbers: Mapping[str, Any]) -> None:
        super().__init__()
        self._numbers = numbers

    def compose(self) -> ComposeResult:
        with Horizontal(classes="numbers"):
            for name in NUMBERS:
                with Vertical(classes="number"):
                    yield Static(_TITLES[name], classes="name")
                    yield LineField(number_text(self._numbers.get(name)), id=name, compact=True)
        yield Static("", id="number-help", classes="help")

    def show_usual(self, settings: Settings, preset: str, own: Mapping[str, Any]) -> None:
        """Show in each empty box the value that holds: of the preset, config.toml, or the model's `own`."""
        sampling = sampling_of(settings, preset)
        for name in NUMBERS:
            value = getattr(settings if name == "max_tokens" else sampling, name)
            self._box(name).placeholder = _unset(name, own) if value is None else number_text(value)

    def numbers(self) -> dict[str, Any]:
        """The valid numbers that are set."""
        typed = {name: self._box(name).value.strip() for name in NUMBERS}
        return {name: SETTINGS[name].parse(text) for name, text in typed.items() if text and not wrong(name, text)}

    def to_wrong(self) -> bool:
        """Go to the first box with something wrong in it, if there is any."""
        for name in NUMBERS:
            if wrong(name, self._box(name).value):
                self._box(name).focus()
                return True
        return False

    @on(Input.Changed)
    def _check(self, event: Input.Changed) -> None:
        if event.input.has_focus:
            self._tell(event.input)

    def on_descendant_focus(self) -> None:
        if isinstance(focused := self.screen.focused, Input):
            self._tell(focused)

    def on_descendant_blur(self) -> None:
        self.query_one("#number-help", Static).update("")

    @on(Input.Submitted)
    def _go_on(self, event: Input.Submitted) -> None:
        event.stop()
        self.screen.focus_next()

    def _tell(self, box: Input) -> None:
        name = str(box.id)
        problem = wrong(name, box.value)
        setting = SETTINGS[name]
        words = say(f"✕ {problem}", "$text-error") if problem else say(f"{setting.help}; {setting.range}")
        self.query_one("#number-help", Static).update(words)

    def _box(self, name: str) -> LineField:
        return self.query_one(f"#{name}", LineField)


def wrong(name: str, text: str) -> str:
    """The problem of a number as typed; empty when there is none, and for an empty box."""
    try:
        if text.strip():
            SETTINGS[name].parse(text.strip())
    except ValueError as error:
        return str(error)
    return ""


def _unset(name: str, own: Mapping[str, Any]) -> str:
    """The value that counts where nothing is set."""
    if own.get(name) is not None:
        return f"{number_text(own[name])}, its own"
    if name in _UNSET:
        return _UNSET[name]
    return number_text(DEFAULT_SAMPLING[name]) + ("" if name in own else " or own")


def number_text(value: object) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
